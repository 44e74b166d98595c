"""Tries, from inside, what a sandbox should prevent; says what it did.

Run by `connectors/sandbox/runner.py` as a confined program, so that nothing is claimed
which was not seen. Each line it prints is a protection's name and `1` if it holds.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import sys
from collections.abc import Callable
from functools import partial

TYPE_CHECKING = False

CLONE_NEWUSER = 0x10000000
PTRACE_TRACEME = 0
TCGETS = 0x5401
FORBIDDEN_PORT = 2
"""Not the one that this trial is given."""


def main(canary: str, outsider: str) -> None:
    """Try everything.

    Args:
        canary: path of a file that was not given to this program.
        outsider: number of a process that is none of its own.
    """
    checks: dict[str, Callable[[], bool]] = {
        "files": lambda: denied(lambda: os.close(os.open(canary, os.O_RDONLY))),
        "truncation": lambda: denied(lambda: os.truncate(canary, 0)),
        "metadata": lambda: denied(lambda: os.chmod(canary, 0o600)),  # noqa: PTH101
        "device_commands": is_ioctl_denied,
        "tcp_ports": is_port_denied,
        "sockets": are_sockets_denied,
        "signals": lambda: denied(lambda: os.kill(int(outsider), 0)),
        "system_calls": are_calls_denied,
        "privileges": are_privileges_gone,
        "hidden_paths": lambda: not os.path.lexists(canary),
        "hidden_processes": lambda: not os.path.exists(f"/proc/{outsider}"),  # noqa: PTH110
    }
    # Whether that was the real folder is seen from outside.
    denied(lambda: os.mkdir(canary + ".made"))  # noqa: PTH102
    for name, holds in checks.items():
        print(name, int(holds()))  # noqa: T201  read by the one who started this


def denied(attempt: Callable[[], object]) -> bool:
    """Whether an attempt fails."""
    try:
        attempt()
    except OSError:
        return True
    return False


def is_ioctl_denied() -> bool:
    """Whether a device does not even hear a command: it would say it has none such."""
    found = os.open("/dev/null", os.O_RDONLY)
    try:
        fcntl.ioctl(found, TCGETS, b"\0" * 64)
    except OSError as error:
        return error.errno == errno.EACCES
    finally:
        os.close(found)
    return False


def is_port_denied() -> bool:
    """Whether a port that was not given is refused by the kernel, not by nobody."""
    with socket.socket() as found:
        return found.connect_ex(("127.0.0.1", FORBIDDEN_PORT)) in {
            errno.EACCES,
            errno.EPERM,
        }


def are_sockets_denied() -> bool:
    """Whether there are neither UDP nor raw, netlink or Unix sockets."""
    kinds = [
        (socket.AF_INET, socket.SOCK_DGRAM),
        (socket.AF_INET, socket.SOCK_RAW),
        (socket.AF_NETLINK, socket.SOCK_RAW),
        (socket.AF_UNIX, socket.SOCK_STREAM),
    ]
    return all(denied(partial(socket.socket, *kind)) for kind in kinds)


def are_calls_denied() -> bool:
    """Whether namespaces, tracing and keys are out of reach."""
    libc = ctypes.CDLL(None, use_errno=True)
    nothing = ctypes.c_long(0)
    calls = (
        libc.unshare(CLONE_NEWUSER),
        libc.ptrace(ctypes.c_long(PTRACE_TRACEME), nothing, nothing, nothing),
    )
    return all(result < 0 for result in calls)


def are_privileges_gone() -> bool:
    """Whether this process has none, and nothing it starts can get some."""
    wanted = {"NoNewPrivs": "1", "CapEff": "0" * 16, "CapBnd": "0" * 16}
    found: dict[str, str] = {}
    with open("/proc/self/status") as status:  # noqa: PTH123
        for line in status:
            name, _, value = line.partition(":")
            found[name] = value.strip()
    if os.getuid():
        # Who is not root can give up nothing of the bound, nor use it.
        del wanted["CapBnd"]
    return all(found.get(name) == value for name, value in wanted.items())


main(sys.argv[1], sys.argv[2])
