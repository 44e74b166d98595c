"""What time it is: the only module that asks the machine.

Everything else takes a `Clock`, or `now` as an argument, so that a test can set
it. Two clocks, because they answer different questions: `monotonic` measures how
long something took and never goes back; `wall` says when something happened and
jumps whenever somebody sets the machine's clock.
"""

from __future__ import annotations

import time
from typing import Protocol


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
