"""The actor that tells owners what they must know, in their direct chats.

Whoever finds something that only an owner can mend tells `owners`, and goes on. The
chats are learnt as owners write there, and kept over restarts; a notice is stored
before it is sent, as every answer is.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors import names
from actors.journal import commits
from actors.journal.parts import in_one_part
from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address, Inbound
from actors.messages.keys import account_of, chat_partition
from actors.people.identity import connector_of
from actors.protocol import Deliver
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.errors import StoreError
from runtime.store.rows import Commit, Entry, decoded
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.services import Services

LOG = EventLog("owners")

KIND = "owner-chat"
PAGE = 1000

READ_AGAIN = 5.0
"""Seconds until a disk that failed is tried again."""

HOUR = 3600.0
MOST_AN_HOUR = 30
"""Notices; of what goes on failing in new ways, the log tells the rest."""

MOST_UNTOLD = 30
"""Notices that wait for a sick disk; of more, the oldest are left out."""

LONGEST = 3_000
"""Characters of one notice."""


class OwnerWrote(msgspec.Struct, frozen=True):
    """To `owners`: an owner wrote in this direct chat."""

    account: str
    address: Address


class TellOwners(msgspec.Struct, frozen=True):
    """To `owners`: tell all owners this; the sender makes sure it is sent once."""

    text: str


class ReadChats(msgspec.Struct, frozen=True):
    """A note to itself: read in which chats owners write."""


def note_owner(actor: Actor, services: Services, inbound: Inbound) -> None:
    """Have `owners` learn where an owner can be told something."""
    if not (services.owners and inbound.is_direct):
        return
    if inbound.chain.agents or inbound.occasion:
        return
    account = account_of(inbound)
    if account not in services.owners:
        return
    can_tell = services.accounts[inbound.address.connector].abilities.shows_asides
    if can_tell and actor.find(names.OWNERS) is not None:
        actor.tell(names.OWNERS, OwnerWrote(account, inbound.address))


class Owners(Actor):
    """Knows the direct chats of owners, and tells them things there.

    Takes: `TellOwners`; `OwnerWrote` from connectors.
    Sends: `Deliver` to connectors.
    Keeps: the chats, as the store has them, and notices that a sick disk has not taken.
    Fails: never by a disk that fails: what is to be said waits for it.
    Ends: with the system; what waits then stands in the log.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(
        capacity=1_000, overflow="drop_oldest"
    )

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._chats: dict[str, Address] = {}
        """By account; as many as there ever were owners."""

        self._is_read = False
        self._untold: deque[str] = deque(maxlen=MOST_UNTOLD)
        self._told: deque[float] = deque(maxlen=MOST_AN_HOUR)
        """When, in monotonic seconds."""

    def on_start(self) -> None:
        """Read where owners write; a sick disk fails no start."""
        self.note(ReadChats())

    def on_receive(self, message: object) -> object:
        """Learn of a chat, or tell something."""
        match message:
            case OwnerWrote(account=account, address=address):
                return self._learn(account, address)
            case TellOwners(text=text):
                return self._tell(text)
            case ReadChats():
                return self._read()
            case _:
                return super().on_receive(message)

    async def _read(self) -> None:
        try:
            rows = await self._services.store.entries(KIND, limit=PAGE)
        except StoreError as error:
            LOG.warning("chats of owners not read yet", why=str(error))
            self.after(READ_AGAIN, ReadChats())
            return
        for row in rows:
            address = decoded(row, Address)
            if address is None:
                continue  # another release wrote it; it is learnt anew
            if not (row.id in self._chats and self._is_here(address)):
                self._chats[row.id] = address
        self._is_read = True
        for _ in range(len(self._untold)):
            await self._tell(self._untold.popleft())

    def _is_here(self, address: Address) -> bool:
        """Whether an owner writes to this process, which knows it before the store."""
        part = chat_partition(address.connector, address.chat)
        return self._services.duties.sends(address.connector, part)

    async def _learn(self, account: str, address: Address) -> None:
        if self._chats.get(account) == address:
            return
        entry = Entry(
            kind=KIND,
            id=account,
            owner=address.connector,
            part=chat_partition(address.connector, address.chat),
            body=msgspec.json.encode(address),
        )
        self._chats[account] = address
        try:
            await self._services.store.commit(Commit(at=self._now(), entries=(entry,)))
        except StoreError as error:  # known all the same, until the next start
            LOG.warning("chat of an owner not stored", why=str(error))

    async def _tell(self, text: str) -> None:
        if not self._is_read:
            self._wait(text)
            return
        chats = self._reachable()
        if not chats:
            LOG.info("no owner can be told: none has written in a direct chat yet")
            return
        tick = self._services.clock.monotonic()
        if len(self._told) == MOST_AN_HOUR and self._told[0] > tick - HOUR:
            LOG.warning("owners not told: too much at once", most=MOST_AN_HOUR)
            self._services.metrics.left_out.add(1, "owners_flooded")
            return
        deliveries = tuple(self._as_delivery(text, chat) for chat in chats)
        rows = tuple(
            commits.as_enqueue(x, chat_partition(x.address.connector, x.address.chat))
            for x in deliveries
        )
        try:
            commit = Commit(at=self._now(), deliveries=rows)
            commit = in_one_part(commit, rows[0].part, deliveries[0].id)
            done = await self._services.store.commit(commit)
        except StoreError as error:
            LOG.warning("owners not told yet", why=str(error))
            self._wait(text)
            self._is_read = False
            self.after(READ_AGAIN, ReadChats())
            return
        self._told.append(tick)
        for each, row in zip(deliveries, rows, strict=True):
            if row.part not in done.waiting:
                self.tell(names.connector(each.address.connector), Deliver(each))

    def _wait(self, text: str) -> None:
        """Keep a notice until the disk is well; of too many, the oldest is left out."""
        if len(self._untold) == MOST_UNTOLD:
            LOG.warning(
                "owners not told: too much waits for the disk", most=MOST_UNTOLD
            )
            self._services.metrics.left_out.add(1, "owners_waited")
        self._untold.append(text)

    def _reachable(self) -> tuple[Address, ...]:
        """Give the chats of those who are owners now, of connectors that run now."""
        services = self._services
        found = (
            address
            for account, address in self._chats.items()
            if account in services.owners and connector_of(account) in services.accounts
        )
        return tuple(dict.fromkeys(found))

    def _as_delivery(self, text: str, to: Address) -> Delivery:
        new_id = self._services.ids.new()
        clean = self._services.redact(text)
        return Delivery(
            id=f"{new_id}:owners",
            correlation_id=new_id,
            address=to,
            agent="",
            text=clean if len(clean) <= LONGEST else f"{clean[: LONGEST - 1]}…",
            kind="notice",
            is_root=False,
        )

    def _now(self) -> float:
        return self._services.clock.wall()
