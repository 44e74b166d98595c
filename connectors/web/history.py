"""Chat histories in the database, for the page and the ElizaOS channel; kernel's side.

Each message has two rows: the message itself, under an id that sorts the newest first,
and an index row under the message's id that names the first one. Both are written and
deleted in one commit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, Protocol, TypeVar

import msgspec
import trio

from actors.messages.keys import chat_partition
from runtime.clock import Clock
from runtime.errors import CorruptError, StoreError
from runtime.store.port import Store
from runtime.store.rows import Commit, Entry, StoredEntry
from runtime.telemetry.logs import EventLog

PAGE = 200
"""Rows read or deleted at once."""

LAST = 10**15
"""Milliseconds; later than any message."""


class ConnectorStore(msgspec.Struct, frozen=True):
    """The database, as one connector writes to it."""

    store: Store
    clock: Clock
    connector: str
    """Its name in the settings."""

    async def commit(self, *entries: Entry) -> None:
        """Store entries in one transaction.

        Raises:
            StoreError: the disk fails; nothing has changed.
        """
        await self.store.commit(Commit(at=self.clock.wall(), entries=entries))


class HistoryMessage(Protocol):
    """What a history needs to know of a message."""

    @property
    def id(self) -> str:
        """Unique in its connector."""
        ...

    @property
    def chat(self) -> str:
        """The chat it was sent to."""
        ...

    @property
    def at(self) -> int:
        """Unix milliseconds; no two messages of a chat have the same."""
        ...


M = TypeVar("M", bound=HistoryMessage)


class MessageHistory(Generic[M]):
    """The messages of one connector.

    Methods that read or write rows raise `StoreError` if the disk fails.

    Args:
        shape: the type of its messages.
        kind: the kind of the messages' rows; index rows are of `<kind>_place`.
    """

    def __init__(self, place: ConnectorStore, shape: type[M], kind: str) -> None:
        self._place = place
        self._shape = shape
        self._kind = kind
        self._index = f"{kind}_place"
        self._grown: set[str] = set()
        """Chats that got messages since the last `tidy`."""

    async def add(self, message: M) -> None:
        """Store a new message.

        Raises:
            SequenceConflictError: a message with this id is stored already.
        """
        self._grown.add(message.chat)
        name = self._row_id(message)
        index_id = self._index_id(message.id)
        index = self._entry(self._index, index_id, message, name.encode())
        await self._place.commit(
            self._entry(self._kind, name, message, msgspec.json.encode(message)),
            msgspec.structs.replace(index, expected=0),
        )

    async def change(self, message: M) -> None:
        """Overwrite a message."""
        name, body = self._row_id(message), msgspec.json.encode(message)
        await self._place.commit(self._entry(self._kind, name, message, body))

    async def get(self, message_id: str) -> M | None:
        """Give one message; None: it does not exist, or was deleted."""
        store = self._place.store
        index = await store.entry(self._index, self._index_id(message_id))
        if index is None:
            return None
        row = await store.entry(self._kind, index.body.decode())
        return None if row is None else self._read(row)

    async def page(
        self, chat: str, *, before: int = 0, after: int = 0, limit: int = PAGE
    ) -> tuple[M, ...]:
        """Give messages of a chat, the newest first.

        Args:
            before: only messages older than this time (ms); 0: from the newest on.
            after: only messages newer than this time (ms).
            limit: most of them.
        """
        owner = self._owner(chat)
        # `~` sorts behind all messages of that moment.
        start = f"{owner}/{LAST - min(before, LAST):015d}/~" if before else ""
        rows = await self._place.store.entries(self._kind, owner, start, limit)
        return tuple(each for each in map(self._read, rows) if each.at > after)

    async def delete(self, messages: Iterable[M]) -> None:
        """Delete messages for good.

        Raises:
            StoreError: the disk fails; nothing is deleted.
        """
        rows: list[Entry] = []
        for message in messages:
            rows.append(self._entry(self._kind, self._row_id(message), message))
            rows.append(self._entry(self._index, self._index_id(message.id), message))
        if rows:
            await self._place.commit(*rows)

    async def clear(self, chat: str, before: int = 0) -> int:
        """Delete a chat's messages, or those older than a time (ms); count them.

        Raises:
            StoreError: the disk fails; some may be deleted.
        """
        count = 0
        while found := await self.page(chat, before=before):
            await self.delete(found)
            count += len(found)
        return count

    async def keep_newest(self, chat: str, most: int) -> int:
        """Delete all messages of a chat but the newest ones; count them.

        Raises:
            StoreError: the disk fails; some may be deleted.
        """
        before, left = 0, most
        while left > 0:
            found = await self.page(chat, before=before, limit=min(PAGE, left))
            if not found:
                return 0
            before, left = found[-1].at, left - len(found)
        return await self.clear(chat, before)

    async def tidy(self, chats: Iterable[str], days: float, most: int) -> int:
        """Delete messages that are too old, or too many for one chat; count them.

        Args:
            chats: all chats; those with new messages are looked at in any case.
            days: for which messages are kept.
            most: messages kept in one chat.

        Raises:
            StoreError: the disk fails; the next round goes on.
        """
        grown, self._grown = self._grown, set()
        before = int((self._place.clock.wall() - days * 86_400) * 1000)
        count = 0
        for chat in dict.fromkeys((*chats, *grown)):
            count += await self.clear(chat, max(1, before))
            if chat in grown:
                count += await self.keep_newest(chat, most)
        return count

    def _read(self, row: StoredEntry) -> M:
        try:
            return msgspec.json.decode(row.body, type=self._shape)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            text = f"{row.kind} {row.id!r} cannot be read: {error}"
            raise CorruptError(text) from error

    def _entry(
        self, kind: str, name: str, message: M, body: bytes | None = None
    ) -> Entry:
        """Make the entry that writes a row; without a body, deletes it."""
        connector, chat = self._place.connector, message.chat
        return Entry(
            kind=kind,
            id=name,
            owner=self._owner(chat),
            part=chat_partition(connector, chat),
            body=body,
        )

    def _owner(self, chat: str) -> str:
        return f"{self._place.connector}/{chat}"

    def _index_id(self, message_id: str) -> str:
        return f"{self._place.connector}/{message_id}"

    def _row_id(self, message: M) -> str:
        return f"{self._owner(message.chat)}/{LAST - message.at:015d}/{message.id}"


async def tidy_for_ever(
    tidy: Callable[[], Awaitable[int]], every: float, log: EventLog
) -> None:
    """Delete old messages again and again, until cancelled.

    Args:
        tidy: deletes them, and counts them.
        every: seconds between two rounds.
    """
    while True:
        await trio.sleep(every)
        try:
            count = await tidy()
        except StoreError as error:
            log.warning("old messages not forgotten yet", why=str(error))
        else:
            if count:
                log.info("old messages forgotten", count=count)
