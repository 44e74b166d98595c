"""Landlock: a process gives up rights to files, ports and signals, for good.

Only the standard library, and little of it: the launcher imports this in a fresh
interpreter for every program. Source: the kernel's `include/uapi/linux/landlock.h`
and `Documentation/userspace-api/landlock.rst`, up to ABI 10 (Linux 7.2).
"""

from __future__ import annotations

import ctypes
import os

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
"""Numbers of the system calls; the same on every architecture."""

CREATE_RULESET_VERSION = 1
RULE_PATH_BENEATH, RULE_NET_PORT = 1, 2
PR_SET_NO_NEW_PRIVS = 38

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR = 1 << 4, 1 << 5, 1 << 6, 1 << 7
MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK = 1 << 8, 1 << 9, 1 << 10, 1 << 11
MAKE_SYM, REFER, TRUNCATE, IOCTL_DEV = 1 << 12, 1 << 13, 1 << 14, 1 << 15
RESOLVE_UNIX = 1 << 16

BIND_TCP, CONNECT_TCP, BIND_UDP, SEND_UDP = 1 << 0, 1 << 1, 1 << 2, 1 << 3
SCOPE_ABSTRACT_SOCKET, SCOPE_SIGNAL = 1 << 0, 1 << 1

FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV | RESOLVE_UNIX
"""What a rule on something that is no folder may speak of."""

READ = EXECUTE | READ_FILE | READ_DIR
CHANGE = (
    READ | WRITE_FILE | TRUNCATE | REFER
    | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_FIFO | MAKE_SYM
)  # fmt: skip
"""No devices and no sockets are made, not even where all else may be."""
REMOVE = READ | REMOVE_DIR | REMOVE_FILE
USE_DEVICE = READ_FILE | WRITE_FILE | TRUNCATE

# Which rights a kernel of this ABI knows besides those of the ABI before.
FILES_SINCE = (
    (1, (1 << 13) - 1),
    (2, REFER),
    (3, TRUNCATE),
    (5, IOCTL_DEV),
    (9, RESOLVE_UNIX),
)
PORTS_SINCE = ((4, BIND_TCP | CONNECT_TCP), (10, BIND_UDP | SEND_UDP))
SCOPES_SINCE = ((6, SCOPE_ABSTRACT_SOCKET | SCOPE_SIGNAL),)


class RulesetAttr(ctypes.Structure):
    """`struct landlock_ruleset_attr`; older kernels take its beginning only."""

    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class PathBeneathAttr(ctypes.Structure):
    """`struct landlock_path_beneath_attr`, which is packed."""

    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


class NetPortAttr(ctypes.Structure):
    """`struct landlock_net_port_attr`."""

    _fields_ = (("allowed_access", ctypes.c_uint64), ("port", ctypes.c_uint64))


LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
Word = ctypes.c_long


def call(number: int, *arguments: object) -> int:
    """Make a system call.

    Raises:
        OSError: it failed. The number of the error counts only then: a call that
            went well leaves whatever an earlier one wrote there.
    """
    result: int = LIBC.syscall(Word(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def abi() -> int:
    """Ask the kernel for its version of Landlock; 0: there is none, or it is off."""
    try:
        version = Word(CREATE_RULESET_VERSION)
        return call(CREATE_RULESET, None, Word(0), version)
    except OSError:
        return 0


def known(since: tuple[tuple[int, int], ...], version: int) -> int:
    """Put together the rights that a kernel of this ABI knows."""
    rights = 0
    for first, added in since:
        if version >= first:
            rights |= added
    return rights


def restrict(
    version: int, paths: list[tuple[str, int]], ports: list[int] | None
) -> None:
    """Give up all rights that this kernel can take, but those named; for good.

    Args:
        version: the kernel's ABI, at least 1.
        paths: what may be done beneath each; of what is no folder, its own part.
        ports: TCP ports that may be connected to; None: all.

    Raises:
        OSError: it cannot be done; nothing must be started then.

    Only this thread and what it starts is held by it, so it is for a process that
    has no other thread.
    """
    files = known(FILES_SINCE, version)
    network = known(PORTS_SINCE, version)
    if ports is None:
        network &= ~CONNECT_TCP
    attr = RulesetAttr(files, network, known(SCOPES_SINCE, version))
    ruleset = create(version, attr)
    try:
        for path, rights in paths:
            allow_path(ruleset, path, rights & files)
        for port in ports or ():
            if network & CONNECT_TCP:
                rule = NetPortAttr(CONNECT_TCP, port)
                add_rule(ruleset, RULE_NET_PORT, rule)
        enter(ruleset)
    finally:
        os.close(ruleset)


def scope_signals(version: int) -> bool:
    """Give up signals to all but what this process will start; tell if it worked.

    What it starts may give up more. Then `kill(-1)` reaches exactly all of that, and
    nothing forks away under it.
    """
    scopes = known(SCOPES_SINCE, version) & SCOPE_SIGNAL
    if not scopes:
        return False
    ruleset = create(version, RulesetAttr(0, 0, scopes))
    try:
        enter(ruleset)
    finally:
        os.close(ruleset)
    return True


def create(version: int, attr: RulesetAttr) -> int:
    """Make an empty ruleset; give its descriptor."""
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    return call(CREATE_RULESET, ctypes.byref(attr), Word(size), Word(0))


def allow_path(ruleset: int, path: str, rights: int) -> None:
    """Allow something beneath a path."""
    found = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not os.path.isdir(f"/proc/self/fd/{found}"):  # noqa: PTH112  no pathlib here
            rights &= FILE_RIGHTS
        add_rule(ruleset, RULE_PATH_BENEATH, PathBeneathAttr(rights, found))
    finally:
        os.close(found)


def add_rule(ruleset: int, kind: int, rule: ctypes.Structure) -> None:
    """Add one rule."""
    call(ADD_RULE, Word(ruleset), Word(kind), ctypes.byref(rule), Word(0))


def enter(ruleset: int) -> None:
    """Hold this thread to a ruleset, from now on."""
    refuse_privileges()
    call(RESTRICT_SELF, Word(ruleset), Word(0))


def refuse_privileges() -> None:
    """Make sure that no program started from here gains rights (`no_new_privs`).

    Raises:
        OSError: the kernel does not do it.
    """
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def prctl(option: int, value: int) -> None:
    """Set something of this process.

    Raises:
        OSError: the kernel refuses.
    """
    zero = ctypes.c_ulong(0)
    if LIBC.prctl(option, ctypes.c_ulong(value), zero, zero, zero):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
