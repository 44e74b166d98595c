"""Proves that owners are told things where they write, once, over restarts too."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio
import trio.testing

from actors import names
from actors.messages.deliveries import Abilities
from actors.messages.inbound import Address, Inbound
from actors.people.owners import (
    HOUR,
    LONGEST,
    MOST_AN_HOUR,
    MOST_UNTOLD,
    READ_AGAIN,
    Owners,
    OwnerWrote,
    ReadChats,
    TellOwners,
    note_owner,
)
from actors.protocol import Deliver
from actors.services import Services
from actors.transport import Account
from runtime.actor.actor import Actor
from runtime.actor.ref import ActorRef
from runtime.errors import StoreUnavailableError
from runtime.store.rows import Commit, Committed
from runtime.system import ActorSystem
from runtime.telemetry.logs import Redactor
from runtime.telemetry.metrics import Metrics
from runtime.testing import Probe
from tests.fakes.actors.neighbours import make_services, of_kind, probe, words
from tests.fakes.company.furnished import changed
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock

HOME = Address("fake", "with-boss")
WROTE = OwnerWrote("fake/boss", HOME)


class SickStore(MemoryStore):
    """Fails to commit to order."""

    fails = 0

    async def commit(self, commit: Commit) -> Committed:
        if self.fails:
            self.fails -= 1
            raise StoreUnavailableError("the disk is full")
        return await super().commit(commit)


def services_of(
    store: MemoryStore, *owners: str, metrics: Metrics | None = None
) -> Services:
    return changed(
        make_services(store, metrics=metrics),
        owners=frozenset(owners),
        accounts={"fake": Account(), "http": Account(Abilities(shows_asides=False))},
        redact=Redactor(["secret"]).clean,
    )


@asynccontextmanager
async def open_owners(
    clock: Clock, store: MemoryStore, *owners: str, metrics: Metrics | None = None
) -> AsyncGenerator[tuple[ActorSystem, ActorRef, Probe]]:
    async with virtual(clock) as system:
        connector = probe(system, names.connector("fake"))
        services = services_of(store, *owners, metrics=metrics)
        yield system, system.spawn(Owners(services), name=names.OWNERS), connector


def said(connector: Probe) -> list[tuple[str, str]]:
    told = [each.delivery for each in of_kind(connector, Deliver)]
    return [(each.address.chat, each.text) for each in told]


def left_out(metrics: Metrics, reason: str) -> bytes:
    name = f'callboard_notices_left_out_total{{reason="{reason}"}} '.encode()
    return metrics.render().partition(name)[2].partition(b"\n")[0]


async def test_an_owner_is_told_where_they_wrote(autojump_clock: Clock) -> None:
    async with open_owners(autojump_clock, MemoryStore(), "fake/boss") as (_, ref, out):
        ref.tell(TellOwners("too early: nobody wrote"))
        ref.tell(WROTE)
        ref.tell(TellOwners("the secret is out"))
        await trio.sleep(1)
        assert said(out) == [("with-boss", "the *** is out")]


async def test_where_they_write_is_known_after_a_restart(autojump_clock: Clock) -> None:
    store = MemoryStore()
    async with open_owners(autojump_clock, store, "fake/boss") as (_, ref, _out):
        ref.tell(WROTE)
        await trio.sleep(1)
    async with open_owners(autojump_clock, store.reopened(), "fake/boss") as (
        _,
        ref,
        out,
    ):
        ref.tell(TellOwners("x" * 2 * LONGEST))
        await trio.sleep(1)
        ((chat, text),) = said(out)
        assert (chat, len(text), text[-1]) == ("with-boss", LONGEST, "…")


async def test_who_is_no_owner_any_more_is_told_nothing(autojump_clock: Clock) -> None:
    async with open_owners(autojump_clock, MemoryStore(), "fake/sue") as (_, ref, out):
        ref.tell(WROTE)
        ref.tell(TellOwners("anything"))
        await trio.sleep(1)
        assert said(out) == []


async def test_what_a_sick_disk_does_not_take_is_told_later(
    autojump_clock: Clock,
) -> None:
    store = SickStore()
    async with open_owners(autojump_clock, store, "fake/boss") as (_, ref, out):
        ref.tell(WROTE)
        await trio.sleep(1)
        store.fails = 2
        ref.tell(TellOwners("one"))
        ref.tell(TellOwners("two"))
        await trio.sleep(1)
        assert said(out) == []
        await trio.sleep(3 * READ_AGAIN)
        assert [text for _, text in said(out)] == ["one", "two"]
        counts = await store.counts()
        assert sum(counts.outbox.values()) == 2


async def test_what_waits_too_long_behind_a_sick_disk_is_counted(
    autojump_clock: Clock,
) -> None:
    store, metrics = SickStore(), Metrics()
    opened = open_owners(autojump_clock, store, "fake/boss", metrics=metrics)
    async with opened as (_, ref, out):
        ref.tell(WROTE)
        await trio.sleep(1)
        store.fails = 1
        for number in range(MOST_UNTOLD + 3):
            ref.tell(TellOwners(str(number)))
        await trio.sleep(1)
        assert not said(out)
        await trio.sleep(2 * READ_AGAIN)
        assert said(out)[0] == ("with-boss", "3")
        assert left_out(metrics, "owners_waited") == b"3.0"


@pytest.mark.parametrize("is_here", [True, False])
async def test_where_they_write_at_another_node_is_read_again(
    autojump_clock: Clock, *, is_here: bool
) -> None:
    store = MemoryStore()
    moved = Address("fake", "moved")
    async with virtual(autojump_clock) as system:
        connector = probe(system, names.connector("fake"))
        services = services_of(store, "fake/boss")
        services.duties.parts = frozenset()
        services.duties.is_shared = lambda _: False
        services.duties.is_leased = lambda _: True
        services.duties.accounts = frozenset({"fake"} if is_here else ())
        ref = system.spawn(Owners(services), name=names.OWNERS)
        ref.tell(WROTE)
        await trio.sleep(1)
        other = system.spawn(Owners(services))  # as another node's
        other.tell(OwnerWrote("fake/boss", moved))
        await trio.sleep(1)
        ref.tell(ReadChats())
        ref.tell(TellOwners("hello"))
        await trio.sleep(1)
        assert said(connector) == [("with-boss" if is_here else "moved", "hello")]


async def test_a_flood_is_left_to_the_log(autojump_clock: Clock) -> None:
    store, metrics = MemoryStore(), Metrics()
    opened = open_owners(autojump_clock, store, "fake/boss", metrics=metrics)
    async with opened as (_, ref, out):
        ref.tell(WROTE)
        for number in range(2 * MOST_AN_HOUR):
            ref.tell(TellOwners(str(number)))
        await trio.sleep(1)
        assert len(said(out)) == MOST_AN_HOUR
        assert left_out(metrics, "owners_flooded") == b"30.0"
        await trio.sleep(HOUR)
        ref.tell(TellOwners("again"))
        await trio.sleep(1)
        assert said(out)[-1] == ("with-boss", "again")


class Hears(Actor):
    """Notes who wrote, as a connector does."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services

    def on_receive(self, message: object) -> None:
        note_owner(self, self._services, as_inbound(message))


def as_inbound(message: object) -> Inbound:
    return msgspec.convert(message, type=type(words()), from_attributes=True)


async def test_only_direct_chats_that_can_be_written_to_are_learnt(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        learns = probe(system, names.OWNERS)
        services = services_of(MemoryStore(), "fake/boss", "http/boss")
        hears = system.spawn(Hears(services))
        hears.tell(words(sender_id="boss", address=HOME, number=1))
        hears.tell(words(sender_id="boss", is_direct=False, number=2))
        hears.tell(words(sender_id="zoe", number=3))
        hears.tell(words(sender_id="boss", address=Address("http", "x"), number=4))
        hears.tell(words(sender_id="boss", occasion="said", number=5))
        await trio.sleep(1)
        assert learns.received == [WROTE]
