"""How far each bot was heard, and which groups have moved; kept in the database.

Telegram itself remembers what was not confirmed, for a day. The place kept here spares
us to hear again what was taken but not confirmed when the process ended. It counts for
that day only: after a week without anything new, Telegram begins to count elsewhere,
and an old place would make the bot deaf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from actors.people_rows import part_of
from runtime.entries import Entry
from runtime.rows import Commit

if TYPE_CHECKING:
    from runtime.clock import Clock
    from runtime.store import Store

OFFSETS, MOVES = "telegram_offset", "telegram_moved"

KEPT_FOR = 24 * 3600.0
"""Seconds that Telegram keeps what was not confirmed. Source: "Getting updates"."""


class Bookmarks(Protocol):
    """Where a bot goes on after a restart."""

    async def read(self, bot: int) -> int:
        """Give the number of the first update that was not taken; 0: not known."""
        ...

    async def write(self, bot: int, offset: int) -> None:
        """Keep that number; call it only after all before it was accepted."""
        ...

    async def moved(self, chat: int) -> int:
        """Give the id that a group had before it moved; 0: it did not."""
        ...

    async def move(self, old: int, new: int) -> None:
        """Keep that a group has another id from now on."""
        ...


class Offset(msgspec.Struct, frozen=True):
    """The body of a row: how far a bot was heard."""

    offset: int
    at: float
    """Unix seconds."""


class Move(msgspec.Struct, frozen=True):
    """The body of a row: what a group was called before."""

    old: int


class StoredBookmarks:
    """Keeps them in the database; see the port. All raise `StoreError`.

    Args:
        store: the database.
        clock: gives Unix seconds.
        connector: the name of the connector.
    """

    def __init__(self, store: Store, clock: Clock, connector: str) -> None:
        self._store = store
        self._clock = clock
        self._connector = connector

    async def read(self, bot: int) -> int:
        """Give how far a bot was heard; see the port."""
        row = await self._store.entry(OFFSETS, self._id(bot))
        if row is None:
            return 0
        try:
            found = msgspec.json.decode(row.body, type=Offset)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return 0  # all is heard again that was not confirmed
        is_fresh = 0 <= self._clock.wall() - found.at < KEPT_FOR
        return found.offset if is_fresh else 0

    async def write(self, bot: int, offset: int) -> None:
        """Keep how far a bot was heard; see the port."""
        # Why it may wait: an older place only repeats what the database knows.
        body = msgspec.json.encode(Offset(offset, self._clock.wall()))
        await self._put(OFFSETS, bot, body, may_wait=True)

    async def moved(self, chat: int) -> int:
        """Give what a group was called before; see the port."""
        row = await self._store.entry(MOVES, self._id(chat))
        if row is None:
            return 0
        try:
            return msgspec.json.decode(row.body, type=Move).old
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return 0

    async def move(self, old: int, new: int) -> None:
        """Keep that a group moved; see the port."""
        await self._put(MOVES, new, msgspec.json.encode(Move(old)), may_wait=False)

    async def _put(
        self, kind: str, number: int, body: bytes, *, may_wait: bool
    ) -> None:
        name = self._id(number)
        entry = Entry(
            kind=kind, id=name, owner=self._connector, part=part_of(name), body=body
        )
        at = self._clock.wall()
        await self._store.commit(Commit(at=at, entries=(entry,), may_wait=may_wait))

    def _id(self, number: int) -> str:
        return f"{self._connector}/{number}"
