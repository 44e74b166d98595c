"""How far each bot has read, kept beside the messages themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from connectors.chat.kept import Kept

if TYPE_CHECKING:
    from connectors.chat.kept import Shelf

KIND = "discord_place"

# Chosen: chats that are alive; of the others, what was said during an outage alone.
MOST_SIDE_CHANNELS = 500
"""Direct chats and threads that are remembered; the longest silent is forgotten."""


class Place(msgspec.Struct, frozen=True):
    """Where a bot stands; the body of a row."""

    after: int = 0
    """Id up to which all was accepted; 0: it was never here."""

    user: str = ""
    """The bot's own id."""

    side: tuple[str, ...] = ()
    """Channels that Discord does not list at the start: direct chats, and threads,
    which fall asleep; the latest last."""


class Bookmarks(Protocol):
    """Where a bot goes on after a restart."""

    async def read(self, agent: str) -> Place:
        """Give where a bot stands."""
        ...

    async def write(self, agent: str, place: Place) -> None:
        """Keep where a bot stands; call it only after all before was accepted."""
        ...


class StoredBookmarks:
    """Keeps them in the database; see the port. Both raise `StoreError`.

    Args:
        shelf: where the connector's rows lie.
    """

    def __init__(self, shelf: Shelf) -> None:
        self._places = Kept(shelf, KIND, Place)

    async def read(self, agent: str) -> Place:
        """Give where a bot stands; what cannot be read is a beginning."""
        return await self._places.read(agent) or Place()

    async def write(self, agent: str, place: Place) -> None:
        """Keep where a bot stands."""
        # Why it may wait: a place that is a little old only repeats messages, which
        # the database knows.
        await self._places.write(agent, place, may_wait=True)
