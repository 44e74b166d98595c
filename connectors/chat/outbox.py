"""The messages for each client, kept until it has received them, and a while longer.

A client's row says how much it was told and how much it has. Each message has a row by
its number, and one by its delivery's id: a repeated delivery is stored once. The newest
messages of each client are kept, read or not; the others are forgotten.

The copy of a client's row in memory may be old: a task that is cancelled while the disk
writes never learns that it did. So each change names the version of the row that it
changes. If the store has a newer one, it refuses; that row is read, and changed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec
import trio

from actors.messages.deliveries import Delivery
from actors.people.rows import part_of
from runtime.clock import Clock
from runtime.errors import SequenceConflictError
from runtime.store.port import Store
from runtime.store.rows import Commit, Entry, StoredEntry
from runtime.telemetry.logs import EventLog

LOG = EventLog("outbox")

CLIENTS, SAID, PLACES = "socket_client", "socket_said", "socket_place"

T = TypeVar("T")


class KnownClient(msgspec.Struct, frozen=True):
    """The body of a row: one client."""

    chat: str
    last: int = 0
    """The number of the last message that was said to it."""

    has: int = 0
    """The number of the last message that it has."""

    seen_at: float = 0.0
    """Unix seconds of when it was here last."""

    is_passing: bool = False
    """Whether it cannot come back: it never said who it is."""


class StoredAnswer(msgspec.Struct, frozen=True):
    """The body of a row: one message for a client."""

    number: int
    text: str
    agent: str
    delivery: str
    reply_to: str = ""
    """What the client called the message that this answers."""

    trouble: str = ""
    is_aside: bool = False
    correlation_id: str = ""
    """Of the message that this answers; the same for drafts of it."""


class ClientPlace(msgspec.Struct, frozen=True):
    """The body of a row: where a delivery stands."""

    chat: str
    number: int


def read(row: StoredEntry, shape: type[T]) -> T | None:
    """Read a row; what cannot be read is left out, and said."""
    try:
        return msgspec.json.decode(row.body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        LOG.fault("row cannot be read", error, kind=row.kind, id=row.id)
        return None


def said_id(number: int) -> str:
    """Write a number so that rows sort by it."""
    return f"{number:015d}"


def said_of(number: int, delivery: Delivery) -> StoredAnswer:
    """Return what is kept of a delivery."""
    return StoredAnswer(
        number=number,
        text=delivery.text,
        agent=delivery.agent,
        delivery=delivery.id,
        reply_to=client_name(delivery.address.chat, delivery.reply_to),
        trouble=delivery.trouble,
        is_aside=delivery.is_aside,
        correlation_id=delivery.correlation_id,
    )


def platform_id(chat: str, name: str) -> str:
    """Give the id of a message in its conversation, by what its client calls it."""
    return f"{chat}/={name}"


def client_name(chat: str, message: str) -> str:
    """Give what a client calls a message, by its id; empty: it has no name for it."""
    own = platform_id(chat, "")
    return message.removeprefix(own) if message.startswith(own) else ""


PAGE = 500

# Chosen: far more than is ever said between a copy of the database and its return.
MOST_AHEAD = 1_000_000
"""How much more than was said to a client it may say that it has."""


def never(_chat: str) -> bool:
    """Say no."""
    return False


class ClientOutbox:
    """The clients of one connector.

    Methods that read or write rows raise `StoreError` if the disk fails.

    There is one writer, the transport. Of several nodes each is the writer for the
    clients whose chats it works on; what others did before is learnt when it matters.

    Args:
        most: messages kept of one client.
    """

    def __init__(self, store: Store, clock: Clock, connector: str, most: int) -> None:
        self._store = store
        self._clock = clock
        self._connector = connector
        self._most = most
        self._clients: dict[str, KnownClient] = {}
        self._versions: dict[str, int] = {}
        """Of their rows, as far as is known."""

        self._orders: dict[str, trio.Lock] = {}

    async def load(self, keeps: Callable[[str], bool] = never) -> None:
        """Read which clients there are; those that cannot come back are forgotten.

        Args:
            keeps: says of whom nothing is forgotten, by the conversation.
        """
        after, found, versions = "", dict[str, KnownClient](), dict[str, int]()
        while True:
            rows = await self._store.entries(CLIENTS, self._connector, after, PAGE)
            for row in rows:
                after = row.id
                client = read(row, KnownClient)
                if client is not None:
                    found[client.chat] = client
                    versions[client.chat] = row.version
            if len(rows) < PAGE:
                break
        self._clients, self._versions = found, versions
        for each in tuple(found.values()):
            if each.is_passing and not keeps(each.chat):
                await self.forget(each.chat)

    def __len__(self) -> int:
        """Count the clients."""
        return len(self._clients)

    def get(self, chat: str) -> KnownClient | None:
        """Return a client; None: it is not known."""
        return self._clients.get(chat)

    async def see(
        self, chat: str, *, is_passing: bool, claims: int = -1
    ) -> KnownClient:
        """Note that a client is here.

        What it has may be more than was ever said to it here: in a database that is
        now an older copy, or before it was forgotten. Then numbers go on behind that,
        as none may mean two messages.

        Args:
            is_passing: whether it cannot come back.
            claims: the number of the last message that it has, by its own word.
        """

        async def see() -> KnownClient:
            now = self._clock.wall()
            client = self._clients.get(chat) or KnownClient(chat, is_passing=is_passing)
            if client.last < claims <= client.last + MOST_AHEAD:
                await self._empty(client)
                client = msgspec.structs.replace(client, last=claims, has=claims)
            seen = msgspec.structs.replace(client, seen_at=now)
            await self._put(seen)
            return seen

        return await self._do(chat, see)

    async def add(self, delivery: Delivery) -> StoredAnswer | None:
        """Keep a message for a client; give it as it is kept.

        Returns:
            None: nobody can come for it.

        Raises:
            StoreError: the disk fails; nothing is kept.
        """
        chat = delivery.address.chat

        async def add() -> StoredAnswer | None:
            known = await self._known(delivery.id)
            if known is not None:
                return known
            client = self._clients.get(chat) or await self._learn(chat)
            if client is None:
                return None
            number = client.last + 1
            said = said_of(number, delivery)
            grown = msgspec.structs.replace(client, last=number)
            place = msgspec.json.encode(ClientPlace(chat, number))
            entries = [
                self._entry(SAID, chat, said_id(number), msgspec.json.encode(said)),
                self._place(delivery.id, place),
                *await self._too_old(chat, number - self._most),
            ]
            await self._put(grown, entries)
            return said

        return await self._do(chat, add)

    async def after(
        self, chat: str, number: int, limit: int
    ) -> tuple[StoredAnswer, ...]:
        """Return what was said to a client behind a number, in order."""
        owner = self._owner(chat)
        start = f"{owner}/{said_id(number)}"
        rows = await self._store.entries(SAID, owner, start, limit)
        found = (read(row, StoredAnswer) for row in rows)
        return tuple(each for each in found if each is not None)

    async def has(self, chat: str, number: int) -> None:
        """Note what a client has; less than before is nothing new."""

        async def note() -> None:
            client = self._clients.get(chat)
            if client is None or number > client.last:
                client = await self._learn(chat)  # another node may have told it more
            if client is None or not client.has < number <= client.last:
                return
            # Why it may wait: told again, a client knows the number.
            more = msgspec.structs.replace(client, has=number)
            await self._put(more, may_wait=True)

        await self._do(chat, note)

    async def forget(self, chat: str, known: KnownClient | None = None) -> bool:
        """Forget a client, and all that was said to it.

        Args:
            known: as it must still be; None: as it may be.

        Returns:
            False: it has come back, or was told something, and stays.

        Raises:
            StoreError: the disk fails; some of it may be left.
        """

        async def forget() -> bool:
            client = self._clients.get(chat)
            if client is None:
                return True
            if known is not None and client != known:
                return False
            await self._empty(client)
            await self._commit([self._client(client, gone=True)])
            self._drop(chat)
            return True

        return await self._do(chat, forget)

    async def _empty(self, client: KnownClient) -> None:
        """Forget what was said to a client."""
        chat = client.chat
        while found := await self.after(chat, 0, PAGE):
            gone: list[Entry] = []
            for each in found:
                gone.append(self._entry(SAID, chat, said_id(each.number), None))
                gone.append(self._place(each.delivery, None))
            # Its own row with them, so that none goes that is newer than it.
            await self._put(client, gone)

    async def forget_old(self, before: float, is_here: Callable[[str], bool]) -> int:
        """Forget clients that were not here since a time; count them."""
        old = [
            each
            for each in self._clients.values()
            if each.seen_at < before and not is_here(each.chat)
        ]
        return sum([await self.forget(each.chat, each) for each in old])

    async def make_room(self, is_here: Callable[[str], bool]) -> bool:
        """Forget the client that has everything and was away longest; False: none."""
        done = [
            each
            for each in self._clients.values()
            if each.has == each.last and not is_here(each.chat)
        ]
        for each in sorted(done, key=lambda each: each.seen_at):
            if await self.forget(each.chat, each):
                return True
        return False

    async def holds(self, delivery: str) -> bool:
        """Tell whether a message is kept for its client."""
        return await self._known(delivery) is not None

    async def _known(self, delivery: str) -> StoredAnswer | None:
        row = await self._store.entry(PLACES, f"{self._connector}/{delivery}")
        place = None if row is None else read(row, ClientPlace)
        if place is None:
            return None
        name = f"{self._owner(place.chat)}/{said_id(place.number)}"
        found = await self._store.entry(SAID, name)
        return None if found is None else read(found, StoredAnswer)

    async def _too_old(self, chat: str, number: int) -> list[Entry]:
        """Return what forgets one message that is beyond those that are kept."""
        if number < 1:
            return []
        name = said_id(number)
        row = await self._store.entry(SAID, f"{self._owner(chat)}/{name}")
        old = None if row is None else read(row, StoredAnswer)
        if old is None:
            return []
        return [self._entry(SAID, chat, name, None), self._place(old.delivery, None)]

    async def _do(self, chat: str, act: Callable[[], Awaitable[T]]) -> T:
        """Do something about a client, by what its row says now."""
        async with self._in_order(chat):
            while True:
                try:
                    return await act()
                except SequenceConflictError:
                    await self._learn(chat)

    async def _learn(self, chat: str) -> KnownClient | None:
        """Read a client's row: who changed it was cut off, or is another node."""
        row = await self._store.entry(CLIENTS, self._owner(chat))
        client = None if row is None else read(row, KnownClient)
        self._drop(chat)
        if row is not None:
            self._versions[chat] = row.version
        if client is not None:
            self._clients[chat] = client
        return client

    def _drop(self, chat: str) -> None:
        self._clients.pop(chat, None)
        self._versions.pop(chat, None)

    async def _put(
        self, client: KnownClient, more: Iterable[Entry] = (), *, may_wait: bool = False
    ) -> None:
        """Change a client's row, and others with it."""
        await self._commit([self._client(client), *more], may_wait=may_wait)
        self._clients[client.chat] = client
        self._versions[client.chat] = self._version(client.chat) + 1

    async def _commit(self, entries: list[Entry], *, may_wait: bool = False) -> None:
        at = self._clock.wall()
        commit = Commit(at=at, entries=tuple(entries), may_wait=may_wait)
        await self._store.commit(commit)

    @asynccontextmanager
    async def _in_order(self, chat: str) -> AsyncGenerator[None]:
        """Do one thing about a client after the other, known or not."""
        order = self._orders.setdefault(chat, trio.Lock())
        try:
            async with order:
                yield
        finally:
            if chat not in self._clients and not order.locked():
                self._orders.pop(chat, None)

    def _client(self, client: KnownClient, *, gone: bool = False) -> Entry:
        name = self._owner(client.chat)
        body = None if gone else msgspec.json.encode(client)
        return Entry(
            kind=CLIENTS,
            id=name,
            owner=self._connector,
            part=part_of(name),
            body=body,
            expected=self._version(client.chat),
        )

    def _version(self, chat: str) -> int:
        return self._versions.get(chat, 0)

    def _place(self, delivery: str, body: bytes | None) -> Entry:
        name = f"{self._connector}/{delivery}"
        return Entry(kind=PLACES, id=name, part=part_of(name), body=body)

    def _entry(self, kind: str, chat: str, name: str, body: bytes | None) -> Entry:
        owner = self._owner(chat)
        name, part = f"{owner}/{name}", part_of(owner)
        return Entry(kind=kind, id=name, owner=owner, part=part, body=body)

    def _owner(self, chat: str) -> str:
        return f"{self._connector}/{chat}"
