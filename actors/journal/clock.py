"""The clock that deletions by age go by: never ahead of time that has surely passed.

What is deleted by age is gone for good, dedup keys among it. So a clock that jumps
ahead is not believed at once, only as far as running time, or a stop of one day,
explains it. A wrongly set clock cannot be told from a machine that was off for longer,
so a jump that persists for a day of running is believed in the end. A clock that goes
back does no harm and is believed. `SureTime` is pure; `SureClock` stores what it knows,
so that a restart does not make a wrong clock believable.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import msgspec

from runtime.clock import Clock
from runtime.store.port import Store
from runtime.store.rows import Commit, Entry, StoredEntry
from runtime.telemetry.logs import EventLog

DAY = 86_400.0

# Chosen: dedup keys are kept a day longer than any platform redelivers, and a laptop
# that sleeps at night, or a program that is off that long, is believed at once.
LEAP = DAY
"""Most seconds by which the clock may jump ahead unexplained and still be believed."""

LONG_ENOUGH = DAY
"""Seconds of running after which an unexplained clock is believed."""

Change = Literal["", "doubted", "believed"]
"""What a look has changed about the clock."""


class KnownTime(msgspec.Struct, frozen=True):
    """What is known of the time as of the last look; stored over restarts."""

    at: float
    """Unix seconds that had surely passed."""

    doubted_for: float | None = None
    """Seconds of running since the clock is doubted; None: it is believed."""


class SureTime:
    """Compares the wall clock with running time; pure.

    Args:
        wall: Unix seconds of the wall clock at the start; believed for now.
        monotonic: the same moment in monotonic seconds.
    """

    __slots__ = ("_known", "_looked_at")

    def __init__(self, wall: float, monotonic: float) -> None:
        self._known = KnownTime(wall)
        self._looked_at = monotonic

    @property
    def known(self) -> KnownTime:
        """What is to be stored."""
        return self._known

    def go_on(self, known: KnownTime, monotonic: float) -> None:
        """Go on with what an earlier process has stored."""
        self._known = known
        self._looked_at = monotonic

    def now(self, wall: float, monotonic: float) -> float:
        """Give the wall clock's time; while it is doubted, what surely passed."""
        surely = self._surely(monotonic)
        return wall if wall <= surely + LEAP else surely

    def look(self, wall: float, monotonic: float) -> Change:
        """Compare both clocks again; call it now and then."""
        surely, waited = self._surely(monotonic), self._known.doubted_for
        if waited is not None:
            waited += monotonic - self._looked_at
        self._looked_at = monotonic
        is_over = waited is not None and waited >= LONG_ENOUGH
        if is_over or wall <= surely + LEAP:
            self._known = KnownTime(wall)
            return "" if waited is None else "believed"
        self._known = KnownTime(surely, waited or 0.0)
        return "doubted" if waited is None else ""

    def _surely(self, monotonic: float) -> float:
        return self._known.at + monotonic - self._looked_at


LOG = EventLog("clock")

KIND = "clock"
NAME = "wall"


class SureClock:
    """Gives the time that has surely passed; implements `runtime.clock.Clock`.

    Only the keeper calls `load` and `look`.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._is_loaded = False

    @cached_property
    def _time(self) -> SureTime:
        """Made at the first use: clocks may not run before."""
        return SureTime(self._clock.wall(), self._clock.monotonic())

    def monotonic(self) -> float:
        """Seconds since some fixed moment; only differences mean anything."""
        return self._clock.monotonic()

    def wall(self) -> float:
        """Unix seconds of the wall clock, or fewer while it is doubted."""
        return self._time.now(self._clock.wall(), self._clock.monotonic())

    async def load(self, store: Store) -> None:
        """Go on with what an earlier process knew, once.

        Raises:
            runtime.errors.StoreError: it cannot be read now.
        """
        if self._is_loaded:
            return
        time = self._time  # made here, at the first use
        row = await store.entry(KIND, NAME)
        self._is_loaded = True
        if row is not None:
            time.go_on(read(row), self._clock.monotonic())

    async def look(self, store: Store) -> None:
        """Compare the clocks, log a change, and store the result.

        Raises:
            runtime.errors.StoreError: it cannot be read, or written, now.
        """
        await self.load(store)
        wall = self._clock.wall()
        ahead = wall - self.wall()
        match self._time.look(wall, self._clock.monotonic()):
            case "doubted":
                LOG.warning(
                    "the clock went ahead, by more than the time this program ran or"
                    " stood; what is old is kept until the clock has gone on like"
                    " this for a day of running, or is set right",
                    seconds=round(ahead),
                )
            case "believed":
                LOG.info("the clock is believed again")
            case _:
                pass
        body = msgspec.json.encode(self._time.known)
        entry = Entry(kind=KIND, id=NAME, part=0, body=body)
        await store.commit(Commit(at=wall, entries=(entry,)))


def read(row: StoredEntry) -> KnownTime:
    """Decode what was stored; if that fails, nothing is known."""
    try:
        return msgspec.json.decode(row.body, type=KnownTime)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        LOG.fault("what was known of the clock cannot be read", error)
        return KnownTime(0.0, 0.0)
