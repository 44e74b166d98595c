"""A small table in memory, written through to the database.

Servers, channels, sessions and jobs are kept so. There is one writer, the transport,
and `limit` bounds the number of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from connectors.web.history import ConnectorStore

import msgspec

from actors.people.rows import part_of
from runtime.store.rows import Entry
from runtime.telemetry.logs import EventLog

LOG = EventLog("web")

PAGE = 1000


class HasId(Protocol):
    """An object with an id."""

    @property
    def id(self) -> str:
        """Unique in its kind."""
        ...


T = TypeVar("T", bound=HasId)


class StoredTable(Generic[T]):
    """The things of one kind, by id.

    Args:
        place: where they are kept.
        kind: the kind of their rows.
        shape: their type.
        limit: most objects.
    """

    def __init__(
        self, place: ConnectorStore, kind: str, shape: type[T], limit: int
    ) -> None:
        self._place = place
        self._kind = kind
        self._shape = shape
        self._things: dict[str, T] = {}
        self.limit = limit

    async def load(self) -> None:
        """Read all rows; unreadable ones are logged and left out.

        Raises:
            StoreError: the disk fails.
        """
        found: dict[str, T] = {}
        after = ""
        while True:
            rows = await self._place.store.entries(
                self._kind, self._place.connector, after, PAGE
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
        """Give one object; None: it does not exist."""
        return self._things.get(name)

    def all(self) -> tuple[T, ...]:
        """Give all objects."""
        return tuple(self._things.values())

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return len(self._things) >= self.limit

    async def put(self, thing: T) -> None:
        """Write an object, on the disk first.

        Raises:
            StoreError: the disk fails; nothing has changed.
        """
        await self._write(thing.id, msgspec.json.encode(thing))
        self._things[thing.id] = thing

    async def drop(self, name: str) -> None:
        """Delete an object, on the disk first.

        Raises:
            StoreError: the disk fails; nothing has changed.
        """
        await self._write(name, None)
        self._things.pop(name, None)

    async def _write(self, name: str, body: bytes | None) -> None:
        owner = self._place.connector
        key = f"{owner}/{name}"
        part = part_of(key)
        await self._place.commit(
            Entry(kind=self._kind, id=key, owner=owner, part=part, body=body)
        )
