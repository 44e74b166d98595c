"""Finds and ends every process that comes from this one.

Orphans are handed to the launcher (a subreaper, or the first process of its own
namespace), so whoever comes from it is found below it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    # Why: what `signal` adds to it are enumerations, a fifth of the start.
    import _signal as signal


def children(pid: int) -> list[int]:
    """Give the processes that one has started and that are still there."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  no pathlib here
            place = f"/proc/{pid}/task/{thread}/children"
            descriptor = os.open(place, os.O_RDONLY)
            try:
                text = b""
                while piece := os.read(descriptor, 65536):
                    text += piece
                found += [int(word) for word in text.split()]
            finally:
                os.close(descriptor)
    except OSError:
        return found  # it has ended meanwhile
    return found


def descendants(pid: int) -> list[int]:
    """Give all that come from a process, nearest first."""
    found: list[int] = []
    left = [pid]
    while left:
        new = children(left.pop())
        found += new
        left += new
    return found


def resident(pids: list[int]) -> int:
    """Add up the bytes of memory that processes hold."""
    pages = 0
    for pid in pids:
        try:
            descriptor = os.open(f"/proc/{pid}/statm", os.O_RDONLY)
        except OSError:
            continue
        try:
            pages += int(os.read(descriptor, 4096).split()[1])
        except (OSError, IndexError):
            continue
        finally:
            os.close(descriptor)
    return pages * os.sysconf("SC_PAGE_SIZE")


def end_all(*, is_scoped: bool) -> None:
    """Kill all that come from this process, and wait until they are gone.

    Args:
        is_scoped: whether signals reach nothing but what comes from this process.
            Then all can be killed in one go, which nothing can fork away from.
    """
    while True:
        if is_scoped and reaches_only_its_own():
            kill(-1)
        else:
            for pid in descendants(os.getpid()):
                kill(pid)
        if not reap_some():
            return


def reaches_only_its_own() -> bool:
    """Make sure, before a signal goes to everybody that can be reached.

    Why: with the right to signal others, `kill(-1)` would end all of them.
    """
    if os.getpid() == 1:
        return True
    try:
        os.kill(os.getppid(), 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return False


def kill(pid: int) -> None:
    """Kill; whoever has ended already is left alone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def reap_some() -> bool:
    """Wait for a child to end, and take note of all that have; False: there is none.

    Whoever a child left behind is ours from then on: look again.
    """
    try:
        os.waitpid(-1, 0)
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
