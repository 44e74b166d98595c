"""How far each bot has read, kept beside the messages themselves.

A row of the database, not a file: what was read and how far come from one disk, are
backed up together, and never contradict each other by more than a repeated message.
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
    """Keeps them in the database.

    Args:
        store: the database.
        clock: gives Unix seconds.
        connector: the name of the connector.
    """

    def __init__(self, store: Store, clock: Clock, connector: str) -> None:
        self._store = store
        self._clock = clock
        self._connector = connector

    async def read(self, agent: str) -> Place:
        """Give where a bot stands; see the port.

        Raises:
            StoreError: the disk fails.
        """
        row = await self._store.entry(KIND, self._id(agent))
        if row is None:
            return Place()
        try:
            return msgspec.json.decode(row.body, type=Place)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return Place()  # it begins anew: nothing old is answered

    async def write(self, agent: str, place: Place) -> None:
        """Keep where a bot stands; see the port.

        Raises:
            StoreError: the disk fails.
        """
        entry = Entry(
            kind=KIND,
            id=self._id(agent),
            owner=self._connector,
            part=part_of(self._id(agent)),
            body=msgspec.json.encode(place),
        )
        # Why it may wait: a place that is a little old only repeats messages, which
        # the database knows.
        commit = Commit(at=self._clock.wall(), entries=(entry,), may_wait=True)
        await self._store.commit(commit)

    def _id(self, agent: str) -> str:
        return f"{self._connector}/{agent}"
