"""What was said in the chats of the page, kept in the database beside everything else.

A row of its own for each message, whose id sorts the newest first; and one by the
message's id, that says where that row is. Both are written and forgotten together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules.keys import chat_partition
from connectors.web.page.messages import Message
from runtime.entries import Entry
from runtime.errors import CorruptError
from runtime.rows import Commit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runtime.clock import Clock
    from runtime.entries import StoredEntry
    from runtime.store import Store

SAID = "page_message"
PLACE = "page_message_place"

PAGE = 200
"""Rows read or forgotten at once."""

LAST = 10**15
"""Milliseconds; a date that nobody writes."""


class ChatLog:
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
        """Keep what a message reads from now on.

        Raises:
            StoreError: the disk fails.
        """
        body = msgspec.json.encode(message)
        await self._commit(self._entry(SAID, self._place(message), body, message))

    async def get(self, message_id: str) -> Message | None:
        """Give one message; None: there is none (any more).

        Raises:
            StoreError: the disk fails.
        """
        place = await self._store.entry(PLACE, self._id(message_id))
        if place is None:
            return None
        row = await self._store.entry(SAID, place.body.decode())
        return None if row is None else read(row)

    async def page(
        self, chat: str, *, before: int = 0, limit: int = PAGE
    ) -> tuple[Message, ...]:
        """Give messages of a chat, the newest first.

        Args:
            chat: which.
            before: only those of before this time (ms); 0: from the newest.
            limit: most of them.

        Raises:
            StoreError: the disk fails.
        """
        start = f"{self._owner(chat)}/{LAST - before:015d}/~" if before else ""
        rows = await self._store.entries(SAID, self._owner(chat), start, limit)
        return tuple(map(read, rows))

    async def keep_newest(self, chat: str, most: int) -> int:
        """Forget what is beyond so many messages of a chat; count it.

        Raises:
            StoreError: the disk fails; some may be forgotten.
        """
        before, left = 0, most
        while left > 0:
            found = await self.page(chat, before=before, limit=min(PAGE, left))
            if not found:
                return 0
            before, left = found[-1].at, left - len(found)
        return await self.clear(chat, before)

    async def clear(self, chat: str, before: int) -> int:
        """Forget what was said in a chat before a time (ms); count it.

        Raises:
            StoreError: the disk fails; some may be forgotten.
        """
        count = 0
        while found := await self.page(chat, before=before):
            await self._forget(found)
            count += len(found)
        return count

    async def _forget(self, messages: Iterable[Message]) -> None:
        rows: list[Entry] = []
        for message in messages:
            rows.append(self._entry(SAID, self._place(message), None, message))
            rows.append(self._entry(PLACE, self._id(message.id), None, message))
        await self._commit(*rows)

    def _place(self, message: Message) -> str:
        turned = LAST - message.at
        return f"{self._owner(message.chat)}/{turned:015d}/{message.id}"

    def _owner(self, chat: str) -> str:
        return f"{self._connector}/{chat}"

    def _id(self, message_id: str) -> str:
        return f"{self._connector}/{message_id}"

    def _entry(
        self, kind: str, name: str, body: bytes | None, message: Message
    ) -> Entry:
        return Entry(
            kind=kind,
            id=name,
            owner=self._owner(message.chat),
            part=chat_partition(self._connector, message.chat),
            body=body,
        )

    async def _commit(self, *entries: Entry) -> None:
        await self._store.commit(Commit(at=self._clock.wall(), entries=entries))


def read(row: StoredEntry) -> Message:
    """Read a row.

    Raises:
        CorruptError: it is none of ours.
    """
    try:
        return msgspec.json.decode(row.body, type=Message)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise CorruptError(f"{row.kind} {row.id}: {error}") from error
