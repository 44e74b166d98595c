"""What connectors keep of each account, beside the messages themselves.

Rows of the database, not files: what was read and how far come from one disk, are
backed up together, and never contradict each other by more than a repeated message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from actors.people_rows import part_of
from runtime.entries import Entry
from runtime.rows import Commit

if TYPE_CHECKING:
    from runtime.clock import Clock
    from runtime.store import Store

Value = TypeVar("Value", bound=msgspec.Struct)


@dataclass(frozen=True)
class Shelf:
    """Where the rows of one connector lie."""

    store: Store
    clock: Clock
    connector: str
    """Its name: each has its own rows."""


class Kept(Generic[Value]):
    """One value for each name. All raise `StoreError` if the disk fails.

    Args:
        shelf: where they lie.
        kind: of the rows.
        shape: of the values.
    """

    def __init__(self, shelf: Shelf, kind: str, shape: type[Value]) -> None:
        self._shelf = shelf
        self._kind = kind
        self._shape = shape

    async def read(self, name: object) -> Value | None:
        """Give a value; None: there is none, or it cannot be read."""
        row = await self._shelf.store.entry(self._kind, self._id(name))
        if row is None:
            return None
        try:
            return msgspec.json.decode(row.body, type=self._shape)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None

    async def write(self, name: object, value: Value, *, may_wait: bool) -> None:
        """Keep a value.

        Args:
            name: whose it is.
            value: what is kept in the place of an earlier one.
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
