"""What time it is: the only module that asks the machine.

Everything else takes a `Clock`, or `now` as an argument, so that a test can set
it. Two clocks, because they answer different questions: `monotonic` measures how
long something took and never goes back; `wall` says when something happened and
jumps whenever somebody sets the machine's clock. `thread_time` tells how much of that
time a thread could use.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple, Protocol

NANOSECONDS = 1e9
"""In a second."""

THREADS = Path("/proc/self/task")
"""Where Linux tells of each thread of this process. Source: proc(5)."""


class Clock(Protocol):
    """Tells the time. Implemented by `SystemClock`, and settable ones in tests."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment; only differences mean anything."""
        ...

    def wall(self) -> float:
        """Unix seconds; may jump either way."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment; does not count while suspended."""
        return time.monotonic()

    def wall(self) -> float:
        """Unix seconds as the machine's clock has them."""
        return time.time()


class ThreadTime(NamedTuple):
    """What the machine knows of one thread's time; all of it only grows."""

    ran: float
    """Seconds on a processor."""

    waited: float
    """Seconds in which it could have run and had no processor. What it waits for now
    is not in it before it has one."""

    is_ready: bool
    """Whether it runs now, or waits for a processor; else it sleeps."""


def thread_time(native_id: int) -> ThreadTime | None:
    """Tell how one thread of this process spent its time.

    Args:
        native_id: as `threading.get_native_id` gives it.

    Returns:
        None: the machine does not tell, or there is no such thread.
    """
    folder = THREADS / str(native_id)
    try:
        state = folder.joinpath("stat").read_text("ascii", "replace")
        spent = folder.joinpath("schedstat").read_text("ascii")
        ran, waited, times = [int(each) for each in spent.split()]
    except (OSError, ValueError):
        return None
    if not times:  # "0 0 0", where the kernel does not count it
        return None
    # Why from the right: the thread's name stands in brackets and may hold any.
    is_ready = state.rpartition(")")[2].split()[:1] == ["R"]
    return ThreadTime(ran / NANOSECONDS, waited / NANOSECONDS, is_ready)


def had_processor(
    before: ThreadTime | None, after: ThreadTime | None, seconds: float
) -> float:
    """Tell for how much of a time a thread ran, or slept by its own will.

    Args:
        before: its time at the beginning.
        after: its time at the end.

    Returns:
        All of `seconds` where one of both is not known.
    """
    if before is None or after is None:
        return seconds
    if after.is_ready:
        return min(seconds, after.ran - before.ran)
    return max(0.0, seconds - (after.waited - before.waited))
