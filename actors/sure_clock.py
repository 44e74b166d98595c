"""The clock for whoever forgets what is old; the shell of `rules/sure_time.py`.

What was known of the time when the last process ended stands in the store, so that a
restart makes no clock believable.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from actors.rules.sure_time import Known, SureTime
from runtime.entries import Entry
from runtime.logs import EventLog
from runtime.rows import Commit

if TYPE_CHECKING:
    from runtime.clock import Clock
    from runtime.entries import StoredEntry
    from runtime.store import Store

LOG = EventLog("clock")

KIND = "clock"
NAME = "wall"


class SureClock:
    """Tells the time that has surely come; implements `runtime.clock.Clock`.

    The keeper alone loads it and has it look; all others only ask what time it is.

    Args:
        clock: the machine's clocks.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._is_loaded = False

    @cached_property
    def _time(self) -> SureTime:
        """What is known; begins when it is asked first: clocks may not run before."""
        return SureTime(self._clock.wall(), self._clock.monotonic())

    def monotonic(self) -> float:
        """Seconds since some fixed moment; only differences mean anything."""
        return self._clock.monotonic()

    def wall(self) -> float:
        """Unix seconds: the clock's, or fewer while it is not believed."""
        return self._time.now(self._clock.wall(), self._clock.monotonic())

    async def load(self, store: Store) -> None:
        """Go on with what an earlier process knew, once.

        Raises:
            runtime.errors.StoreError: it cannot be read now.
        """
        if self._is_loaded:
            return
        time = self._time  # begins here, if it has not
        row = await store.entry(KIND, NAME)
        self._is_loaded = True
        if row is not None:
            time.go_on(read(row), self._clock.monotonic())

    async def look(self, store: Store) -> None:
        """See how the clock went on, say what is new about it, and write it down.

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


def read(row: StoredEntry) -> Known:
    """Read what was written down; if that cannot be done, nothing is known."""
    try:
        return msgspec.json.decode(row.body, type=Known)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        LOG.fault("what was known of the clock cannot be read", error)
        return Known(0.0, 0.0)
