"""How far each account has read, kept beside the messages themselves.

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

KIND = "matrix_sync"


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
    """Keeps them in the database.

    Args:
        store: the database.
        clock: gives Unix seconds.
        connector: the name of the connector.
        kind: of the rows; each kind of connector has its own.
    """

    def __init__(
        self, store: Store, clock: Clock, connector: str, kind: str = KIND
    ) -> None:
        self._kind = kind
        self._store = store
        self._clock = clock
        self._connector = connector

    async def read(self, user: str) -> str:
        """Give the account's token; see the port.

        Raises:
            StoreError: the disk fails.
        """
        row = await self._store.entry(self._kind, self._id(user))
        if row is None:
            return ""
        try:
            return msgspec.json.decode(row.body, type=Place).token
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return ""  # it begins anew: nothing old is answered

    async def write(self, user: str, token: str) -> None:
        """Keep the account's token; see the port.

        Raises:
            StoreError: the disk fails.
        """
        entry = Entry(
            kind=self._kind,
            id=self._id(user),
            owner=self._connector,
            part=part_of(self._id(user)),
            body=msgspec.json.encode(Place(token)),
        )
        # Why it may wait: a token that is a little old only repeats messages, which
        # the database knows.
        commit = Commit(at=self._clock.wall(), entries=(entry,), may_wait=True)
        await self._store.commit(commit)

    def _id(self, user: str) -> str:
        return f"{self._connector}/{user}"
