"""Rows that connectors keep for each account, such as how far it has read.

Rows of the database, not files: what was read and how far come from one disk, are
backed up together, and never contradict each other by more than a repeated message.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec
import trio

from actors.people.rows import part_of
from runtime.clock import Clock
from runtime.errors import StoreError
from runtime.store.port import Store
from runtime.store.rows import Commit, Entry, decoded
from runtime.telemetry.logs import EventLog

T = TypeVar("T")
Value = TypeVar("Value", bound=msgspec.Struct)

AGAIN_AFTER = 1.0
"""Seconds until a disk that fails is asked again."""


@dataclass(frozen=True)
class ConnectorShelf:
    """The store as one connector uses it: all its rows carry its name."""

    store: Store
    clock: Clock
    connector: str
    """Its name: each has its own rows."""


class KeptRows(Generic[Value]):
    """A table of values by name. Every method raises `StoreError` if the disk fails."""

    def __init__(self, shelf: ConnectorShelf, kind: str, shape: type[Value]) -> None:
        self._shelf = shelf
        self._kind = kind
        self._shape = shape

    async def read(self, name: object) -> Value | None:
        """Return a value; None: there is none, or it cannot be read."""
        row = await self._shelf.store.entry(self._kind, self._id(name))
        return None if row is None else decoded(row, self._shape)

    async def write(self, name: object, value: Value, *, may_wait: bool) -> None:
        """Keep a value.

        Args:
            may_wait: whether it may be lost with the machine: then an older one is
                there again.
        """
        shelf, row = self._shelf, self._id(name)
        entry = Entry(
            kind=self._kind,
            id=row,
            owner=shelf.connector,
            part=part_of(row),
            body=msgspec.json.encode(value),
        )
        commit = Commit(at=shelf.clock.wall(), entries=(entry,), may_wait=may_wait)
        await shelf.store.commit(commit)

    def _id(self, name: object) -> str:
        return f"{self._shelf.connector}/{name}"


class Bookmarks(Protocol):
    """Remembers where an account continues reading after a restart."""

    async def read(self, user: str) -> str:
        """Return the account's token; empty if it has none."""
        ...

    async def write(self, user: str, token: str) -> None:
        """Keep the account's token; call it only after all before it was accepted."""
        ...


class BookmarkRow(msgspec.Struct, frozen=True):
    """The body of a row: one reading position."""

    token: str


async def read_bookmark(read: Callable[[], Awaitable[T]], log: EventLog) -> T:
    """Read a bookmark, again and again while the disk fails."""
    while True:
        try:
            return await read()
        except StoreError as error:
            log.warning("place not read yet", why=str(error))
            await trio.sleep(AGAIN_AFTER)


class StoredBookmarks:
    """Bookmarks in the database; see the port. Both methods raise `StoreError`."""

    def __init__(self, shelf: ConnectorShelf, kind: str) -> None:
        self._places = KeptRows(shelf, kind, BookmarkRow)

    async def read(self, user: str) -> str:
        """Return the account's token; one that cannot be read is none."""
        place = await self._places.read(user)
        return "" if place is None else place.token

    async def write(self, user: str, token: str) -> None:
        """Keep the account's token."""
        # Why it may wait: a token that is a little old only repeats messages, which
        # the database knows.
        await self._places.write(user, BookmarkRow(token), may_wait=True)


class ReadMarks:
    """Messages being submitted, and the id up to which all were.

    Args:
        place: an id; all up to it was accepted.
    """

    def __init__(self, place: int) -> None:
        self._newest = place
        self._under_way: dict[int, int] = {}
        self._held_at: int | None = None

    @property
    def place(self) -> int:
        """The id up to which all was accepted; it never goes back."""
        return self._free_place if self._held_at is None else self._held_at

    @property
    def _free_place(self) -> int:
        if not self._under_way:
            return self._newest
        return min(self._newest, min(self._under_way) - 1)

    @property
    def is_held(self) -> bool:
        """Whether the place stays, whatever is accepted."""
        return self._held_at is not None

    def begin(self, message: int) -> None:
        """Note that a message came; call it in the order in which they came."""
        if message > self.place:
            self._under_way[message] = self._under_way.get(message, 0) + 1

    def end(self, message: int) -> None:
        """Note that a message was accepted, or will never be."""
        left = self._under_way.pop(message, 0) - 1
        if left > 0:
            self._under_way[message] = left
        elif left == 0:
            self._newest = max(self._newest, message)

    def hold(self) -> None:
        """Let the place stay: something behind it may be missing."""
        if self._held_at is None:
            self._held_at = self._free_place

    def release(self) -> None:
        """Let the place go on: nothing is missing any more."""
        self._held_at = None
