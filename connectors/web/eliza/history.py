"""What was said in the channels, kept in the database beside everything else.

A row of its own for each message, whose id sorts the newest first; and one by the
message's id, that says where that row is. Both are written and forgotten together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.people_rows import part_of
from connectors.web.eliza.shapes import Message
from runtime.entries import Entry
from runtime.errors import CorruptError
from runtime.rows import Commit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runtime.clock import Clock
    from runtime.entries import StoredEntry
    from runtime.store import Store

SAID = "web_message"
PLACE = "web_message_place"

PAGE = 200
"""Rows read or forgotten at once."""

LAST = 10**15
"""Milliseconds; a date that nobody writes."""


class History:
    """The messages of one connector.

    Args:
        store: the database.
        clock: gives Unix seconds.
        connector: the name of the connector.
    """

    def __init__(self, store: Store, clock: Clock, connector: str) -> None:
        self._store = store
        self._clock = clock
        self._connector = connector

    async def add(self, message: Message) -> None:
        """Keep a new message.

        Raises:
            SequenceConflictError: there is one of this id.
            StoreError: the disk fails.
        """
        place = self._place(message)
        known = self._entry(PLACE, self._id(message.id), place.encode(), message)
        await self._commit(
            self._entry(SAID, place, msgspec.json.encode(message), message),
            msgspec.structs.replace(known, expected=0),
        )

    async def change(self, message: Message) -> None:
        """Keep what a message reads from now on."""
        body = msgspec.json.encode(message)
        await self._commit(self._entry(SAID, self._place(message), body, message))

    async def get(self, message_id: str) -> Message | None:
        """Give one message."""
        place = await self._store.entry(PLACE, self._id(message_id))
        if place is None:
            return None
        row = await self._store.entry(SAID, place.body.decode())
        return None if row is None else read(row)

    async def page(
        self, channel: str, *, before: int = 0, after: int = 0, limit: int = 50
    ) -> tuple[Message, ...]:
        """Give messages of a channel, the newest first.

        Args:
            channel: its id.
            before: only those of before this time (ms); 0 from the newest.
            after: only those of after this time (ms).
            limit: most of them.
        """
        start = self._before(channel, before) if before else ""
        rows = await self._store.entries(SAID, self._owner(channel), start, limit)
        found = (read(row) for row in rows)
        return tuple(each for each in found if each.at > after)

    async def forget(self, messages: Iterable[Message]) -> None:
        """Forget some messages for good."""
        rows: list[Entry] = []
        for message in messages:
            rows.append(self._entry(SAID, self._place(message), None, message))
            rows.append(self._entry(PLACE, self._id(message.id), None, message))
        if rows:
            await self._commit(*rows)

    async def clear(self, channel: str, before: int = 0) -> int:
        """Forget all of a channel, or what was said before a time (ms); count it."""
        count = 0
        while found := await self.page(channel, before=before, limit=PAGE):
            await self.forget(found)
            count += len(found)
        return count

    async def keep_newest(self, channel: str, most: int) -> int:
        """Forget what is beyond so many messages of a channel; count it."""
        before, left = 0, most
        while left > 0:
            found = await self.page(channel, before=before, limit=min(PAGE, left))
            if not found:
                return 0
            before, left = found[-1].at, left - len(found)
        return await self.clear(channel, before)

    def _place(self, message: Message) -> str:
        turned = LAST - message.at
        return f"{self._owner(message.channel)}/{turned:015d}/{message.id}"

    def _before(self, channel: str, at: int) -> str:
        """Give what sorts behind all of one moment."""
        return f"{self._owner(channel)}/{LAST - min(at, LAST):015d}/~"

    def _owner(self, channel: str) -> str:
        return f"{self._connector}/{channel}"

    def _id(self, message_id: str) -> str:
        return f"{self._connector}/{message_id}"

    def _entry(
        self, kind: str, name: str, body: bytes | None, message: Message
    ) -> Entry:
        owner = self._owner(message.channel)
        return Entry(kind=kind, id=name, owner=owner, part=part_of(owner), body=body)

    async def _commit(self, *entries: Entry) -> None:
        await self._store.commit(Commit(at=self._clock.wall(), entries=entries))


def read(row: StoredEntry) -> Message:
    """Read a row.

    Raises:
        CorruptError: it is no message.
    """
    try:
        return msgspec.json.decode(row.body, type=Message)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorruptError(f"{row.kind} {row.id!r} cannot be read: {error}") from error
