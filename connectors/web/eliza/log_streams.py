"""Lines of the log, told to clients of Socket.IO that have asked for them.

Lives on the edge's loop, but for `wake`. What is told is bounded: so many lines at
once, and so many times a second; who gets fewer is told how many are left out, and
finds them at `/api/server/logs`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from connectors.web.eliza.errors import full, wrong
from connectors.web.eliza.log_ring import LEVELS, Entry, Filter

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectors.web.eliza.log_ring import LogRing
    from connectors.web.eliza.shapes import Json

# Chosen: 2,000 lines a second for each client, more than eyes follow.
PACE = 0.1
"""Seconds between two times at which lines are told."""

MOST_AT_ONCE = 200

MOST_LISTENING = 50
"""Clients that are told lines; one more is refused."""


class FilterAsked(msgspec.Struct, frozen=True, rename="camel"):
    """Which lines a client wants from now on."""

    agent_name: Annotated[str, Meta(max_length=200)] = "all"
    level: str = "all"


class LogStreams:
    """All who are told lines.

    Args:
        ring: has the lines.
        tell: tells a client something; never waits.
    """

    def __init__(self, ring: LogRing, tell: Callable[[str, Json], None]) -> None:
        self._ring = ring
        self._tell = tell
        self._filters: dict[str, Filter] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_due = False
        self._seen = 0

    def __len__(self) -> int:
        """Count them."""
        return len(self._filters)

    def subscribe(self, sid: str) -> None:
        """Tell a client lines from now on.

        Raises:
            ApiError: too many are told already.
        """
        if sid not in self._filters and len(self._filters) >= MOST_LISTENING:
            raise full(f"{MOST_LISTENING} clients read the log already")
        if not self._filters:
            self._loop = asyncio.get_running_loop()
            self._seen = self._ring.newest
            self._ring.wake_by(self._wake)
        self._filters.setdefault(sid, Filter())

    def unsubscribe(self, sid: str) -> None:
        """Tell a client no more lines; one that is told none stays so."""
        self._filters.pop(sid, None)
        if not self._filters:
            self._ring.wake_by(None)

    def change(self, sid: str, asked: object) -> Json:
        """Tell a client other lines from now on; give which.

        Raises:
            ApiError: it is told none, or there are no such lines.
        """
        if sid not in self._filters:
            raise wrong("subscribe first: emit subscribe_logs")
        self._filters[sid] = filter_of(asked)
        found = msgspec.convert(asked or {}, FilterAsked)
        return {"agentName": found.agent_name, "level": found.level}

    def stop(self) -> None:
        """Tell nobody any more."""
        self._filters.clear()
        self._ring.wake_by(None)

    def _wake(self) -> None:
        """Have lines told soon; on any thread."""
        if self._is_due or self._loop is None:
            return
        self._is_due = True
        try:
            self._loop.call_soon_threadsafe(self._soon)
        except RuntimeError:
            self._is_due = False  # the loop has ended, and with it all who listen

    def _soon(self) -> None:
        if self._loop is not None:
            self._loop.call_later(PACE, self._flush)

    def _flush(self) -> None:
        self._is_due = False
        found = self._ring.entries(self._seen)
        if not found:
            return
        left_out = found[0].number - self._seen - 1
        left_out += max(0, len(found) - MOST_AT_ONCE)
        self._seen = found[-1].number
        if left_out > 0:
            gap = Entry(
                number=0,
                time=found[-1].time,
                level=LEVELS["warn"],
                msg=f"{left_out} lines left out",
            )
            found = [gap, *found[-MOST_AT_ONCE:]]
        for sid, wanted in self._filters.items():
            for entry in found:
                if wanted.fits(entry) or not entry.number:
                    told: Json = {"type": "log_entry", "payload": entry.shown()}
                    self._tell(sid, told)


def filter_of(asked: object) -> Filter:
    """Read which lines a client wants.

    Raises:
        ApiError: 400: there are none such.
    """
    try:
        found = msgspec.convert(asked or {}, FilterAsked)
    except msgspec.ValidationError as error:
        raise wrong(f"no filter: {error}") from None
    agent = "" if found.agent_name == "all" else found.agent_name
    return Filter(level_of(found.level), agent)


def level_of(name: str) -> int:
    """Give the number of a level; of `all` it is 0.

    Raises:
        ApiError: 400: there is none of this name.
    """
    if name.lower() in {"", "all"}:
        return 0
    number = LEVELS.get(name.lower())
    if number is None:
        raise wrong(f"{name!r} is none of all, {', '.join(LEVELS)}", "level")
    return number
