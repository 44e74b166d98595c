"""Things of one kind that are few: all in memory, each change on the disk first.

Servers, channels, sessions and jobs are such. There is one writer, the transport, and
`limit` bounds them.
"""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import msgspec

from actors.people_rows import part_of
from runtime.clock import Clock
from runtime.entries import Entry
from runtime.logs import EventLog
from runtime.rows import Commit
from runtime.store import Store

LOG = EventLog("web")

PAGE = 1000


class Thing(Protocol):
    """What has an id."""

    @property
    def id(self) -> str:
        """Unique in its kind."""
        ...


T = TypeVar("T", bound=Thing)


class Room(msgspec.Struct, frozen=True):
    """Where things are kept."""

    store: Store
    clock: Clock
    connector: str


class Shelf(Generic[T]):
    """The things of one kind, by id.

    Args:
        room: where they are kept.
        kind: the kind of their rows.
        shape: what they are.
        limit: most of them.
    """

    def __init__(self, room: Room, kind: str, shape: type[T], limit: int) -> None:
        self._room = room
        self._kind = kind
        self._shape = shape
        self._things: dict[str, T] = {}
        self.limit = limit

    async def load(self) -> None:
        """Read all of them; what cannot be read is left out, and said.

        Raises:
            StoreError: the disk fails.
        """
        found: dict[str, T] = {}
        after = ""
        while True:
            rows = await self._room.store.entries(
                self._kind, self._room.connector, after, PAGE
            )
            for row in rows:
                after = row.id
                try:
                    thing = msgspec.json.decode(row.body, type=self._shape)
                except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                    LOG.fault("row cannot be read", error, kind=row.kind, id=row.id)
                else:
                    found[thing.id] = thing
            if len(rows) < PAGE:
                break
        self._things = found

    def get(self, name: str) -> T | None:
        """Give one; None: there is none."""
        return self._things.get(name)

    def all(self) -> tuple[T, ...]:
        """Give all of them."""
        return tuple(self._things.values())

    @property
    def is_full(self) -> bool:
        """Whether no more may be made."""
        return len(self._things) >= self.limit

    async def put(self, thing: T) -> None:
        """Keep one, as it is from now on.

        Raises:
            StoreError: the disk fails; nothing has changed.
        """
        await self._write(thing.id, msgspec.json.encode(thing))
        self._things[thing.id] = thing

    async def drop(self, name: str) -> None:
        """Forget one.

        Raises:
            StoreError: the disk fails; nothing has changed.
        """
        await self._write(name, None)
        self._things.pop(name, None)

    async def _write(self, name: str, body: bytes | None) -> None:
        room = self._room
        key = f"{room.connector}/{name}"
        entry = Entry(
            kind=self._kind,
            id=key,
            owner=room.connector,
            part=part_of(key),
            body=body,
        )
        await room.store.commit(Commit(at=room.clock.wall(), entries=(entry,)))
