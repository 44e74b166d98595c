"""What a child does to itself between fork and exec: gives everything up, then runs.

Runs in the launcher's child, a process with one thread and nothing of Callboard in
its memory. Only the standard library, and little of it.
"""

from __future__ import annotations

import ctypes
import os
import resource

from connectors.sandbox.linux import landlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import TypedDict

    class Plan(TypedDict):
        """What the launcher is told; `connectors/sandbox/orders.py` writes it."""

        abi: int
        paths: list[tuple[str, int]]
        ports: list[int] | None
        filter: bytes
        is_brokered: bool
        roots: list[str]
        limits: dict[str, int]
        processes: int
        memory: int
        command: list[str]
        env: dict[str, str]
        cwd: str
else:
    # Why: what `signal` adds to it are enumerations, a fifth of the start.
    import _signal as signal


SECCOMP_SET_MODE_FILTER = 1
FLAG_NEW_LISTENER = 1 << 3
SECCOMP = {"x86_64": 317, "aarch64": 277}

PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_CAP_AMBIENT = 1, 24, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION_3 = 0x20080522
HIGHEST_CAPABILITY = 63

IGNORED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT)
"""What Python or the launcher does not listen to; programs expect to die of it."""

NICENESS = 5
"""Less than the company's own share of the processor."""

FIRST_TO_DIE = "500"
"""When memory runs out, the kernel ends confined programs first."""


class FilterProgram(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


class CapabilityHeader(ctypes.Structure):
    """`struct __user_cap_header_struct`."""

    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def confine(plan: Plan, keep: int) -> int:
    """Give up everything that the plan does not allow, for good.

    Args:
        keep: the one descriptor besides 0, 1 and 2 that stays open until exec.

    Returns:
        A descriptor at which the kernel asks about calls, or -1; for the launcher.

    Raises:
        OSError: something cannot be given up; nothing must be run then.
    """
    os.setsid()
    # Why: were the launcher killed, its child would go on without anybody.
    landlock.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    close_all(keep)
    os.umask(0o077)
    os.chdir(plan["cwd"])
    os.nice(NICENESS)
    die_first()
    limit(plan["limits"])
    drop_capabilities()
    landlock.refuse_privileges()
    if plan["abi"]:
        landlock.restrict(plan["abi"], plan["paths"], plan["ports"])
    listener = -1
    if plan["filter"]:
        listener = install(plan["filter"], is_heard=plan["is_brokered"])
    return listener


def run(plan: Plan) -> None:
    """Become the program.

    Raises:
        OSError: it cannot be run.
    """
    for number in IGNORED:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execve(plan["command"][0], plan["command"], plan["env"])  # noqa: S606  its purpose


def close_all(keep: int) -> None:
    """Close every descriptor but 0, 1, 2 and one more."""
    for name in os.listdir("/dev/fd"):  # noqa: PTH208  no pathlib here
        number = int(name)
        if number > 2 and number != keep:
            try:
                os.close(number)
            except OSError:
                continue  # the one of the listing itself


def die_first() -> None:
    """Ask the kernel to end this first when memory runs out; it may say no."""
    try:
        found = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    except OSError:
        return
    try:
        os.write(found, FIRST_TO_DIE.encode())
    except OSError:
        return
    finally:
        os.close(found)


def limit(limits: dict[str, int]) -> None:
    """Set limits, by their names in `resource`; none is raised above what it is."""
    for name, value in limits.items():
        which: int = getattr(resource, name)
        _, most = resource.getrlimit(which)
        bound = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(which, (bound, bound))


def drop_capabilities() -> None:
    """Give up what root may do more than others; who has none loses none."""
    for number in range(HIGHEST_CAPABILITY + 1):
        try:
            landlock.prctl(PR_CAPBSET_DROP, number)
        except OSError:
            # Not root, and so nothing that exec could give back; or no such one.
            continue
    clear = ctypes.c_ulong(PR_CAP_AMBIENT_CLEAR_ALL)
    zero = ctypes.c_ulong(0)
    landlock.LIBC.prctl(PR_CAP_AMBIENT, clear, zero, zero, zero)
    header = CapabilityHeader(CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    if landlock.LIBC.capset(ctypes.byref(header), ctypes.byref(nothing)):
        code = ctypes.get_errno()
        raise OSError(code, f"capabilities: {os.strerror(code)}")


def install(program: bytes, *, is_heard: bool) -> int:
    """Have the kernel run a filter at each call from now on.

    Returns:
        With `is_heard`, the descriptor where calls wait for a verdict; else -1.

    Raises:
        OSError: it cannot be installed.
    """
    number = SECCOMP[os.uname().machine]
    flags = FLAG_NEW_LISTENER if is_heard else 0
    attr = FilterProgram(len(program) // 8, program)
    mode, word = landlock.Word(SECCOMP_SET_MODE_FILTER), landlock.Word(flags)
    listener = landlock.call(number, mode, word, ctypes.byref(attr))
    return listener if is_heard else -1
