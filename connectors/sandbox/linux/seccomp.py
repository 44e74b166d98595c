"""The filter of system calls, a program of the kernel's BPF machine; their numbers.

Pure: it gives bytes, `connectors/sandbox/child/confine.py` installs them. What Landlock
cannot take away is taken here: UDP, raw and netlink sockets, namespaces, tracing, keys,
and calls that reach other processes of the same user.

Source: the kernel's `Documentation/userspace-api/seccomp_filter.rst`; numbers from
`arch/x86/entry/syscalls/syscall_64.tbl` and `scripts/syscall.tbl` (aarch64), up to
Linux 6.18.
"""

from __future__ import annotations

import errno
import struct

import msgspec

HIGHEST_CALL = 468
"""`file_getattr`: the last call that was looked at. Newer ones are not there, as on an
older kernel."""

DENIED_NAMES = """
    ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd
    perf_event_open bpf userfaultfd mount umount2 pivot_root chroot move_mount
    fsopen fsconfig fsmount fspick open_tree open_tree_attr mount_setattr
    statmount listmount setns keyctl add_key request_key io_uring_setup
    io_uring_enter io_uring_register kexec_load kexec_file_load init_module
    finit_module delete_module reboot swapon swapoff acct quotactl quotactl_fd
    syslog settimeofday clock_settime clock_adjtime adjtimex iopl ioperm
    modify_ldt sethostname setdomainname vhangup lookup_dcookie fanotify_init
    fanotify_mark open_by_handle_at uselib ustat create_module get_kernel_syms
    query_module nfsservctl migrate_pages move_pages _sysctl shmget shmat shmctl
    msgget msgsnd msgrcv msgctl semget semop semtimedop semctl mq_open mq_unlink
    chown lchown fchown fchownat setxattr lsetxattr fsetxattr setxattrat
    removexattr lremovexattr fremovexattr removexattrat file_setattr vserver
"""
DENIED = frozenset(DENIED_NAMES.split())
"""Never allowed: they reach other processes, the kernel or the machine, or outlive the
program."""

BROKERED_NAMES = """
    chmod fchmod fchmodat fchmodat2 utime utimes futimesat utimensat
"""
BROKERED = frozenset(BROKERED_NAMES.split())
"""What changes a file's mode and times by path, which Landlock does not see."""


class Architecture(msgspec.Struct, frozen=True):
    """One kind of processor, as the kernel counts its calls."""

    audit: int
    """`AUDIT_ARCH_...`: which table of numbers a call was made by."""

    numbers: dict[str, int]
    has_x32: bool = False
    """Whether a bit in the number chooses yet another table."""


# Name, then its number on x86_64 and on aarch64; -1: it is not there.
NUMBERS: tuple[tuple[str, int, int], ...] = (
    ("_sysctl", 156, -1),
    ("acct", 163, 89),
    ("add_key", 248, 217),
    ("adjtimex", 159, 171),
    ("bind", 49, 200),
    ("bpf", 321, 280),
    ("chmod", 90, -1),
    ("chown", 92, -1),
    ("chroot", 161, 51),
    ("clock_adjtime", 305, 266),
    ("clock_settime", 227, 112),
    ("clone", 56, 220),
    ("clone3", 435, 435),
    ("creat", 85, -1),
    ("create_module", 174, -1),
    ("delete_module", 176, 106),
    ("fanotify_init", 300, 262),
    ("fanotify_mark", 301, 263),
    ("fchmod", 91, 52),
    ("fchmodat", 268, 53),
    ("fchmodat2", 452, 452),
    ("fchown", 93, 55),
    ("fchownat", 260, 54),
    ("file_setattr", 469, 469),
    ("finit_module", 313, 273),
    ("fremovexattr", 199, 16),
    ("fsconfig", 431, 431),
    ("fsetxattr", 190, 7),
    ("fsmount", 432, 432),
    ("fsopen", 430, 430),
    ("fspick", 433, 433),
    ("futimesat", 261, -1),
    ("get_kernel_syms", 177, -1),
    ("init_module", 175, 105),
    ("io_uring_enter", 426, 426),
    ("io_uring_register", 427, 427),
    ("io_uring_setup", 425, 425),
    ("ioctl", 16, 29),
    ("ioperm", 173, -1),
    ("iopl", 172, -1),
    ("ioprio_set", 251, 30),
    ("kcmp", 312, 272),
    ("kexec_file_load", 320, 294),
    ("kexec_load", 246, 104),
    ("keyctl", 250, 219),
    ("lchown", 94, -1),
    ("listen", 50, 201),
    ("listmount", 458, 458),
    ("lookup_dcookie", 212, 18),
    ("lremovexattr", 198, 15),
    ("lsetxattr", 189, 6),
    ("migrate_pages", 256, 238),
    ("mknod", 133, -1),
    ("mknodat", 259, 33),
    ("modify_ldt", 154, -1),
    ("mount", 165, 40),
    ("mount_setattr", 442, 442),
    ("move_mount", 429, 429),
    ("move_pages", 279, 239),
    ("mq_open", 240, 180),
    ("mq_unlink", 241, 181),
    ("msgctl", 71, 187),
    ("msgget", 68, 186),
    ("msgrcv", 70, 188),
    ("msgsnd", 69, 189),
    ("nfsservctl", 180, 42),
    ("open", 2, -1),
    ("open_by_handle_at", 304, -1),
    ("open_tree", 428, 428),
    ("open_tree_attr", 467, 467),
    ("openat", 257, 56),
    ("openat2", 437, 437),
    ("perf_event_open", 298, 241),
    ("personality", 135, 92),
    ("pidfd_getfd", 438, 438),
    ("pivot_root", 155, 41),
    ("prlimit64", 302, 261),
    ("process_madvise", 440, 440),
    ("process_vm_readv", 310, 270),
    ("process_vm_writev", 311, 271),
    ("ptrace", 101, 117),
    ("query_module", 178, -1),
    ("quotactl", 179, 60),
    ("quotactl_fd", 443, 443),
    ("reboot", 169, 142),
    ("removexattr", 197, 14),
    ("removexattrat", 466, 466),
    ("request_key", 249, 218),
    ("sched_setaffinity", 203, 122),
    ("sched_setattr", 314, 274),
    ("sched_setparam", 142, 118),
    ("sched_setscheduler", 144, 119),
    ("semctl", 66, 191),
    ("semget", 64, 190),
    ("semop", 65, 193),
    ("semtimedop", 220, 192),
    ("sendmmsg", 307, 269),
    ("sendmsg", 46, 211),
    ("sendto", 44, 206),
    ("setdomainname", 171, 162),
    ("sethostname", 170, 161),
    ("setns", 308, 268),
    ("setpriority", 141, 140),
    ("settimeofday", 164, 170),
    ("setxattr", 188, 5),
    ("setxattrat", 463, 463),
    ("shmat", 30, 196),
    ("shmctl", 31, 195),
    ("shmget", 29, 194),
    ("socket", 41, 198),
    ("socketpair", 53, 199),
    ("statmount", 457, 457),
    ("swapoff", 168, 225),
    ("swapon", 167, 224),
    ("syslog", 103, 116),
    ("truncate", 76, 45),
    ("umount2", 166, 39),
    ("unshare", 272, 97),
    ("uselib", 134, -1),
    ("userfaultfd", 323, 282),
    ("ustat", 136, -1),
    ("utime", 132, -1),
    ("utimensat", 280, 88),
    ("utimes", 235, -1),
    ("vhangup", 153, 58),
    ("vserver", 236, -1),
)

ARCHITECTURES = {
    "x86_64": Architecture(
        0xC000003E, {name: number for name, number, _ in NUMBERS}, has_x32=True
    ),
    "aarch64": Architecture(0xC00000B7, {name: number for name, _, number in NUMBERS}),
}
"""By what `os.uname().machine` says."""


LOAD, AND, RETURN = 0x20, 0x54, 0x06
JUMP_EQUAL, JUMP_ABOVE, JUMP_AT_LEAST, JUMP_BITS = 0x15, 0x25, 0x35, 0x45

ALLOW, KILL, ERROR, NOTIFY = 0x7FFF0000, 0x80000000, 0x00050000, 0x7FC00000
NOT_PERMITTED = ERROR | errno.EPERM
NO_ACCESS = ERROR | errno.EACCES
NOT_THERE = ERROR | errno.ENOSYS

NUMBER, ARCHITECTURE = 0, 4
"""Where they stand in `struct seccomp_data`; the arguments follow from 16 on."""

AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
SOCK_STREAM, SOCK_DGRAM, SOCK_TYPE_MASK = 1, 2, 0xF
IPPROTO_TCP = 6
MSG_FASTOPEN = 0x20000000

CLONE_NAMESPACES = 0x7E020080
"""All flags that make a namespace: mount, cgroup, uts, ipc, user, pid, net, time."""

SET_USER_OR_GROUP = 0o6000
CREATES = 0o100 | 0o20000000
"""`O_CREAT` and the part of `O_TMPFILE` that says so."""

ACCESS_MODE, O_TRUNC = 0o3, 0o1000

TIOCSTI, TIOCLINUX = 0x5412, 0x541C
FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR = 0x40086602, 0x401C5820
PERSONALITY_ASKS = 0xFFFFFFFF
X32 = 0x40000000

Instruction = tuple[int, int, int, int]
"""Code, how far to jump if true, if false, and the constant."""

Guard = list[Instruction]


def argument(index: int) -> Instruction:
    """Load the lower 32 bits of an argument; all that is checked is no longer."""
    return (LOAD, 0, 0, 16 + 8 * index)


def answer(verdict: int) -> Instruction:
    """End with a verdict."""
    return (RETURN, 0, 0, verdict)


def when(code: int, constant: int, *then: Instruction) -> Guard:
    """Run a few instructions only if a comparison holds."""
    return [(code, 0, len(then), constant), *then]


def unless(code: int, constant: int, *then: Instruction) -> Guard:
    """Run a few instructions only if a comparison does not hold."""
    return [(code, len(then), 0, constant), *then]


def deny_nonzero(index: int) -> Guard:
    """Allow a call only about the caller itself: this argument must be 0."""
    return [argument(index), *unless(JUMP_EQUAL, 0, answer(NOT_PERMITTED))]


def deny_bits(index: int, bits: int) -> Guard:
    """Refuse a call that sets any of these bits."""
    return [argument(index), *when(JUMP_BITS, bits, answer(NOT_PERMITTED))]


def sockets(*, tcp: bool) -> Guard:
    """Allow TCP sockets, or none at all.

    An argument that `socket` ignores must not let another kind through: the family
    is an int, the type's lower bits are the kind.
    """
    if not tcp:
        return [answer(NO_ACCESS)]
    mask = (AND, 0, 0, SOCK_TYPE_MASK)
    return [
        argument(0),
        (JUMP_EQUAL, 2, 0, AF_INET),
        *unless(JUMP_EQUAL, AF_INET6, answer(NO_ACCESS)),
        argument(1),
        mask,
        *unless(JUMP_EQUAL, SOCK_STREAM, answer(NO_ACCESS)),
        argument(2),
        # Neither SCTP nor MPTCP: Landlock's port rules speak of TCP only.
        (JUMP_EQUAL, 2, 0, 0),
        *unless(JUMP_EQUAL, IPPROTO_TCP, answer(NO_ACCESS)),
    ]


def socket_pairs() -> Guard:
    """Allow pairs that stay connected to each other.

    A datagram socket, also one of a pair, could be sent to any path of the machine.
    """
    mask = (AND, 0, 0, SOCK_TYPE_MASK)
    return [
        argument(0),
        *unless(JUMP_EQUAL, AF_UNIX, answer(NO_ACCESS)),
        argument(1),
        mask,
        *when(JUMP_EQUAL, SOCK_DGRAM, answer(NO_ACCESS)),
    ]


def opens(flags: int, mode: int) -> Guard:
    """Refuse to empty a file that is opened for reading, and strange modes.

    Landlock asks for the right to truncate since ABI 3 only.
    """
    only_truncates = [
        argument(flags),
        (AND, 0, 0, ACCESS_MODE | O_TRUNC),
        *when(JUMP_EQUAL, O_TRUNC, answer(NOT_PERMITTED)),
    ]
    return [*only_truncates, *modes(flags, mode)]


def modes(flags: int | None, mode: int) -> Guard:
    """Refuse to make a file that runs as somebody else.

    Args:
        flags: which argument holds `O_CREAT`; without it, `mode` counts always.
        mode: which argument holds the mode.
    """
    check = deny_bits(mode, SET_USER_OR_GROUP)
    if flags is None:
        return check
    return [argument(flags), (JUMP_BITS, 0, len(check), CREATES), *check]


def ioctls() -> Guard:
    """Refuse typing into a terminal, and the flags of files."""
    commands = (TIOCSTI, TIOCLINUX, FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR)
    refusals = [
        step
        for command in commands
        for step in when(JUMP_EQUAL, command, answer(NOT_PERMITTED))
    ]
    return [argument(1), *refusals]


def personalities() -> Guard:
    """Allow asking for the personality, and Linux's own."""
    return [
        argument(0),
        (JUMP_EQUAL, 2, 0, 0),
        *unless(JUMP_EQUAL, PERSONALITY_ASKS, answer(NOT_PERMITTED)),
    ]


def guards(*, tcp: bool) -> dict[str, Guard]:
    """Give what is checked of a call's arguments, by its name."""
    priority = [*deny_nonzero(0), *deny_nonzero(1)]
    return {
        "socket": sockets(tcp=tcp),
        "socketpair": socket_pairs(),
        "clone": deny_bits(0, CLONE_NAMESPACES),
        "unshare": deny_bits(0, CLONE_NAMESPACES),
        "clone3": [answer(NOT_THERE)],
        "openat2": [answer(NOT_THERE)],
        "personality": personalities(),
        "ioctl": ioctls(),
        "prlimit64": deny_nonzero(0),
        "setpriority": priority,
        "ioprio_set": deny_nonzero(1),
        "sched_setaffinity": deny_nonzero(0),
        "sched_setattr": deny_nonzero(0),
        "sched_setparam": deny_nonzero(0),
        "sched_setscheduler": deny_nonzero(0),
        "open": opens(1, 2),
        "openat": opens(2, 3),
        "creat": modes(None, 1),
        "mknod": modes(None, 1),
        "mknodat": modes(None, 2),
        "chmod": modes(None, 1),
        "fchmod": modes(None, 1),
        "fchmodat": modes(None, 2),
        "fchmodat2": modes(None, 2),
        # Why: it connects without asking Landlock for the port.
        "sendto": deny_bits(3, MSG_FASTOPEN),
        "sendmsg": deny_bits(2, MSG_FASTOPEN),
        "sendmmsg": deny_bits(3, MSG_FASTOPEN),
        "listen": [answer(NO_ACCESS)],
        "bind": [answer(NO_ACCESS)],
    }


def program(machine: str, *, tcp: bool, may_truncate: bool, is_brokered: bool) -> bytes:
    """Write the filter.

    Args:
        machine: as `os.uname().machine` has it.
        tcp: whether TCP sockets may be made.
        may_truncate: whether `truncate` by path is somebody else's to judge.
        is_brokered: whether calls that change a file's mode and times, which
            Landlock does not see, are handed to the launcher to decide.

    Raises:
        KeyError: there is no filter for this machine.
    """
    found = ARCHITECTURES[machine]
    steps: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE),
        *unless(JUMP_EQUAL, found.audit, answer(KILL)),
        (LOAD, 0, 0, NUMBER),
    ]
    if found.has_x32:
        steps += when(JUMP_AT_LEAST, X32, answer(KILL))
    # What a newer kernel adds is looked at before it is allowed.
    steps += when(JUMP_ABOVE, HIGHEST_CALL, answer(NOT_THERE))
    for name, guard in guards(tcp=tcp).items():
        last = answer(NOTIFY) if is_brokered and name in BROKERED else answer(ALLOW)
        steps += step_for(found, name, [*guard, last])
    if is_brokered:
        for name in sorted(BROKERED - guards(tcp=tcp).keys()):
            steps += step_for(found, name, [answer(NOTIFY)])
    denied = DENIED if may_truncate else DENIED | {"truncate"}
    for name in sorted(denied):
        steps += step_for(found, name, [answer(NOT_PERMITTED)])
    steps.append(answer(ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def step_for(machine: Architecture, name: str, then: Guard) -> Guard:
    """Run `then` if the call is this one; a call that it has not is left out."""
    number = machine.numbers.get(name, -1)
    return [] if number < 0 else when(JUMP_EQUAL, number, *then)
