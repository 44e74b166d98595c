"""Which time has surely come, whatever the clock on the wall says; pure.

What is forgotten by its age is gone for good, dedup keys among it. So a clock that
goes ahead is not believed at once: only as far as running time explains it, or a stop
of a day. Nobody can tell a clock that was set wrong from a machine that slept, or a
program that was off, for longer; therefore what stays as it is for a day of running
is believed in the end. A clock that goes back does no harm, and is believed.
"""

from __future__ import annotations

from typing import Literal

import msgspec

DAY = 86_400.0

# Chosen: dedup keys are kept a day longer than any platform redelivers, and a laptop
# that sleeps at night, or a program that is off that long, need not wait.
LEAP = DAY
"""Seconds by which the clock may have gone ahead unexplained since the last look."""

LONG_ENOUGH = DAY
"""Seconds of running after which a clock is believed that nothing explains."""

Change = Literal["", "doubted", "believed"]
"""What a look has changed about the clock."""


class Known(msgspec.Struct, frozen=True):
    """What is known of the time as of the last look; kept over restarts."""

    at: float
    """Unix seconds that had surely come."""

    doubted_for: float | None = None
    """Seconds of running since the clock is not believed; None: it is."""


class SureTime:
    """Compares the clock on the wall with running time.

    Args:
        wall: Unix seconds as the clock has them at the start; believed for now.
        monotonic: the same moment, in seconds on the clock of running time.
    """

    __slots__ = ("_known", "_looked_at")

    def __init__(self, wall: float, monotonic: float) -> None:
        self._known = Known(wall)
        self._looked_at = monotonic

    @property
    def known(self) -> Known:
        """What is to be written down."""
        return self._known

    def go_on(self, known: Known, monotonic: float) -> None:
        """Begin with what an earlier process has written down."""
        self._known = known
        self._looked_at = monotonic

    def now(self, wall: float, monotonic: float) -> float:
        """Give the clock's time, or, if that is not believed, what has surely come."""
        surely = self._surely(monotonic)
        return wall if wall <= surely + LEAP else surely

    def look(self, wall: float, monotonic: float) -> Change:
        """Learn how both clocks went on; call it every now and then."""
        surely, waited = self._surely(monotonic), self._known.doubted_for
        if waited is not None:
            waited += monotonic - self._looked_at
        self._looked_at = monotonic
        is_over = waited is not None and waited >= LONG_ENOUGH
        if is_over or wall <= surely + LEAP:
            self._known = Known(wall)
            return "" if waited is None else "believed"
        self._known = Known(surely, waited or 0.0)
        return "doubted" if waited is None else ""

    def _surely(self, monotonic: float) -> float:
        return self._known.at + monotonic - self._looked_at
