"""How far each account has read, where its platform says so by a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from connectors.chat.kept import Kept

if TYPE_CHECKING:
    from connectors.chat.kept import Shelf


class Bookmarks(Protocol):
    """Where an account goes on after a restart."""

    async def read(self, user: str) -> str:
        """Give the account's token; empty if it has none."""
        ...

    async def write(self, user: str, token: str) -> None:
        """Keep the account's token; call it only after all before it was accepted."""
        ...


class Place(msgspec.Struct, frozen=True):
    """The body of a row."""

    token: str


class StoredBookmarks:
    """Keeps them in the database; see the port. Both raise `StoreError`.

    Args:
        shelf: where the connector's rows lie.
        kind: of the rows; each platform has its own.
    """

    def __init__(self, shelf: Shelf, kind: str) -> None:
        self._places = Kept(shelf, kind, Place)

    async def read(self, user: str) -> str:
        """Give the account's token; one that cannot be read is none."""
        place = await self._places.read(user)
        return "" if place is None else place.token

    async def write(self, user: str, token: str) -> None:
        """Keep the account's token."""
        # Why it may wait: a token that is a little old only repeats messages, which
        # the database knows.
        await self._places.write(user, Place(token), may_wait=True)
