"""How far each bot was heard, and which groups have moved; kept in the database.

Telegram itself remembers what was not confirmed, for a day. The place kept here spares
us to hear again what was taken but not confirmed when the process ended. It counts for
that day only: after a week without anything new, Telegram begins to count elsewhere,
and an old place would make the bot deaf.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from connectors.chat.bookmarks import ConnectorShelf, KeptRows

OFFSETS, MOVES = "telegram_offset", "telegram_moved"

KEPT_FOR = 24 * 3600.0
"""Seconds that Telegram keeps what was not confirmed. Source: "Getting updates"."""


class TelegramBookmarks(Protocol):
    """Remembers where a bot continues reading after a restart."""

    async def read(self, bot: int) -> int:
        """Return the number of the first update that was not taken; 0: not known."""
        ...

    async def write(self, bot: int, offset: int) -> None:
        """Keep that number; call it only after all before it was accepted."""
        ...

    async def moved(self, chat: int) -> int:
        """Return the id that a group had before it moved; 0: it did not."""
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


class StoredTelegramBookmarks:
    """Keeps them in the database; see the port. All raise `StoreError`."""

    def __init__(self, shelf: ConnectorShelf) -> None:
        self._clock = shelf.clock
        self._offsets = KeptRows(shelf, OFFSETS, Offset)
        self._moves = KeptRows(shelf, MOVES, Move)

    async def read(self, bot: int) -> int:
        """Return how far a bot was heard; if it is not known, all is heard again."""
        found = await self._offsets.read(bot)
        if found is None:
            return 0
        is_fresh = 0 <= self._clock.wall() - found.at < KEPT_FOR
        return found.offset if is_fresh else 0

    async def write(self, bot: int, offset: int) -> None:
        """Keep how far a bot was heard; see the port."""
        # Why it may wait: an older place only repeats what the database knows.
        found = Offset(offset, self._clock.wall())
        await self._offsets.write(bot, found, may_wait=True)

    async def moved(self, chat: int) -> int:
        """Return what a group was called before; see the port."""
        found = await self._moves.read(chat)
        return 0 if found is None else found.old

    async def move(self, old: int, new: int) -> None:
        """Keep that a group moved; see the port."""
        await self._moves.write(new, Move(old), may_wait=False)
