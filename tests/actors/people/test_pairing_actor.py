"""Proves that letting people in survives a sick disk, another writer, and a restart."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from actors import names
from actors.config.access import AccessConfig
from actors.errors import OverloadedError
from actors.inbound.connector import Connector, ConnectorIngress
from actors.messages.deliveries import Abilities
from actors.messages.inbound import Address, Inbound
from actors.operations.keeper import Keeper
from actors.people import admission, pairing_rows
from actors.people.access import Admit, policy
from actors.people.guests import (
    DecideRequest,
    GuestBook,
    ListGuests,
    ReadGuests,
    RequestDecided,
    RevokeGuest,
    StrangerWrote,
)
from actors.people.pairing import CODE, HINT, LET_IN, Pairing
from actors.people.pairing_rules import PairingRequest
from actors.protocol import Deliver
from actors.services import Services
from actors.transport import Account
from connectors.app.assembly import load_voices
from runtime.actor.ref import ActorRef
from runtime.errors import StoreUnavailableError
from runtime.store.rows import ANY_KIND, Commit, Committed, Entry, StoredEntry
from runtime.system import ActorSystem
from runtime.telemetry.metrics import Metrics
from runtime.testing import Probe
from tests.fakes.actors.neighbours import make_services, of_kind, probe, words
from tests.fakes.company.company import TrioClock, counted
from tests.fakes.company.furnished import changed
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import Puppet, virtual

Clock = trio.testing.MockClock

EVE = StrangerWrote(account="fake/eve", name="Eve", address=Address("fake", "with-eve"))


class SickStore(MemoryStore):
    """Fails to read, and to commit, to order; lets another writer be first."""

    fails = 0
    unreadable = 0

    def __init__(self) -> None:
        super().__init__()
        self.first: Commit | None = None
        """Committed by somebody else right before the next commit."""

    async def commit(self, commit: Commit) -> Committed:
        if self.fails:
            self.fails -= 1
            raise StoreUnavailableError("the disk is full")
        if self.first is not None:
            first, self.first = self.first, None
            await super().commit(first)
        return await super().commit(commit)

    async def entries(
        self, kind: str, owner: str | None = None, after: str = "", limit: int = 1000
    ) -> tuple[StoredEntry, ...]:
        if self.unreadable:
            self.unreadable -= 1
            raise StoreUnavailableError("the disk is gone")
        return await super().entries(kind, owner, after, limit)


class Gate:
    """The actor, alone with a probe in the connector's place."""

    def __init__(self, system: ActorSystem, services: Services) -> None:
        self.system = system
        self.services = services
        self.connector: Probe = probe(system, names.connector("fake"))
        self.ref: ActorRef = system.spawn(Pairing(services), name=names.PAIRING)

    @property
    def told(self) -> list[str]:
        return [each.delivery.text for each in of_kind(self.connector, Deliver)]

    async def knock(self, knock: StrangerWrote = EVE) -> None:
        self.ref.tell(knock)
        await trio.testing.wait_all_tasks_blocked()

    async def requests(self) -> tuple[PairingRequest, ...]:
        return (await pairing_rows.read(self.services.store)).requests

    async def decide(self, code: str, *, is_approved: bool = True) -> RequestDecided:
        found = await self.ref.ask(DecideRequest(code, "fake/boss", is_approved))
        assert isinstance(found, RequestDecided)
        return found


def guarded(store: MemoryStore) -> Services:
    rules = policy(AccessConfig(people="pairing"), ("fake/boss",))
    return changed(make_services(store), accounts={"fake": Account(policy=rules)})


@asynccontextmanager
async def open_gate(clock: Clock, store: MemoryStore) -> AsyncGenerator[Gate]:
    async with virtual(clock) as system:
        gate = Gate(system, guarded(store))
        await trio.testing.wait_all_tasks_blocked()
        yield gate


async def test_a_code_that_cannot_be_stored_is_not_told(autojump_clock: Clock) -> None:
    store = SickStore()
    async with open_gate(autojump_clock, store) as gate:
        store.fails = 1
        await gate.knock()
        assert gate.told == []
        await gate.knock()
        [request] = await gate.requests()
        assert request.code[:4] in gate.told[0]


def spanish(**more: Any) -> Inbound:
    """Make words of a stranger, of whom the platform tells no language."""
    words = "Hola, ¿qué tal? Quiero una cita para hoy, por favor. ¿Puedes ayudarme?"
    fields: dict[str, Any] = {"id": "1", "platform": "fake", "platform_id": "1"}
    fields |= {"address": EVE.address, "sender_id": "eve", "sender_name": "Eve"}
    fields |= {"text": words, "received_at": 0.0, "is_direct": True}
    return Inbound(**{**fields, **more})


@pytest.mark.parametrize(
    ("heard", "language"),
    [
        (spanish(), "es"),
        (spanish(text="hola", language="es"), "es"),
        (spanish(language="ko"), "ko"),
        (spanish(language="ja"), ""),
        (spanish(text="ok"), ""),
    ],
    ids=[
        "their words",
        "the platform",
        "the platform first",
        "none of ours",
        "nothing",
    ],
)
async def test_strangers_are_told_in_their_language(
    autojump_clock: Clock, heard: Inbound, language: str
) -> None:
    store, voices = MemoryStore(), load_voices("de")
    async with virtual(autojump_clock) as system:
        gate = Gate(system, changed(guarded(store), voices=voices))
        actor = Puppet()
        system.spawn(actor)
        await trio.testing.wait_all_tasks_blocked()
        decision = admission.decide(heard, gate.services)
        assert not isinstance(decision, Admit)
        admission.turn_away(actor, heard, decision, gate.services)
        await trio.testing.wait_all_tasks_blocked()
        [request] = await gate.requests()
        assert request.language == language
        await gate.decide(request.code)
        await trio.testing.wait_all_tasks_blocked()
        say = voices.speak(language)
        code = f"{request.code[:4]}-{request.code[4:]}"
        assert gate.told == [
            say(CODE).format(code=code, minutes=10),
            say(LET_IN),
        ]


async def test_where_a_code_lets_nobody_into_a_group_they_are_told_who_they_are(
    autojump_clock: Clock,
) -> None:
    rules = policy(AccessConfig(people="pairing"), ())
    known = Account(policy=rules, abilities=Abilities(has_member_ids=True))
    metrics = Metrics()
    services = make_services(MemoryStore(), metrics=metrics)
    services = changed(services, accounts={"fake": known})
    async with virtual(autojump_clock) as system:
        gate = Gate(system, services)
        await trio.testing.wait_all_tasks_blocked()
        await gate.knock(msgspec.structs.replace(EVE, answer="group_hint"))
        assert gate.told == [HINT.format(account="fake/eve")]
    assert counted(metrics, "pairing") == ['pairings_total{outcome="hinted"} 1.0']


class RealClock(TrioClock):
    """Is a little further at each look, as any clock outside of tests."""

    looks = 0

    def wall(self) -> float:
        self.looks += 1
        return super().wall() + self.looks / 1_000_000


async def test_a_flood_of_strangers_is_no_flood_of_notices(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        services = changed(guarded(MemoryStore()), clock=RealClock())
        gate = Gate(system, services)
        await trio.testing.wait_all_tasks_blocked()
        for number in range(30):
            address = Address("fake", f"with-{number}")
            await gate.knock(
                StrangerWrote(account=f"fake/{number}", name="Eve", address=address)
            )
        assert len(gate.told) == AccessConfig().codes_per_minute


async def test_the_notice_stands_in_the_outbox_with_the_request(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with open_gate(autojump_clock, store) as gate:
        await gate.knock()
        await gate.knock()
        rows = await store.undelivered("fake")
    assert len(rows) == 1
    assert len(gate.told) == 1


async def test_an_owner_hears_of_a_disk_that_fails_and_may_try_again(
    autojump_clock: Clock,
) -> None:
    store = SickStore()
    async with open_gate(autojump_clock, store) as gate:
        await gate.knock()
        [request] = await gate.requests()
        store.fails = 1
        with pytest.raises(StoreUnavailableError):
            await gate.decide(request.code)
        assert "fake/eve" not in gate.services.guests
        assert (await gate.decide(request.code)).outcome == "done"
        assert "fake/eve" in gate.services.guests


async def test_what_the_command_line_decided_first_counts(
    autojump_clock: Clock,
) -> None:
    store = SickStore()
    async with open_gate(autojump_clock, store) as gate:
        await gate.knock()
        [request] = await gate.requests()
        told = ("r1", gate.services.keep)
        denied = msgspec.structs.replace(request, is_denied=True)
        store.first = pairing_rows.as_denied(denied, "the command line", told, 1.0)
        assert (await gate.decide(request.code)).outcome == "unknown"
        assert "fake/eve" not in gate.services.guests
        assert len(gate.told) == 1


async def test_who_was_put_out_at_the_same_moment_stays_out(
    autojump_clock: Clock,
) -> None:
    store = SickStore()
    async with open_gate(autojump_clock, store) as gate:
        await gate.knock()
        [request] = await gate.requests()
        told = ("r1", gate.services.keep)
        guest = pairing_rows.as_let_in(request, "the command line", 1.0, None)
        await store.commit(pairing_rows.as_approved(request, guest, told, 1.0))
        out = ("r2", gate.services.keep)
        store.first = pairing_rows.as_revoked("fake/eve", "cli", out, 2.0)
        gate.ref.tell(ReadGuests())
        await trio.testing.wait_all_tasks_blocked()
        gate.ref.tell(ReadGuests())
        await trio.testing.wait_all_tasks_blocked()
        assert "fake/eve" not in gate.services.guests
        assert await store.entry(pairing_rows.GUEST, "fake/eve") is None
        assert len(gate.told) == 1


async def test_a_request_that_another_writer_changed_is_read_again(
    autojump_clock: Clock,
) -> None:
    store = SickStore()
    async with open_gate(autojump_clock, store) as gate:
        await gate.knock()
        [request] = await gate.requests()
        changed = pairing_rows.as_request(msgspec.structs.replace(request, name="Eva"))
        await trio.sleep(400)
        store.first = Commit(at=1.0, entries=(changed,))
        await gate.knock()
        assert len(gate.told) == 1
        await gate.knock()
        assert len(gate.told) == 2
        assert (await gate.requests())[0].name == "Eva"


async def test_rows_that_cannot_be_read_are_read_until_they_can(
    autojump_clock: Clock,
) -> None:
    store = SickStore()
    store.unreadable = 2
    async with open_gate(autojump_clock, store) as gate:
        assert not gate.services.guests.is_read
        await trio.sleep(3)
        assert gate.services.guests.is_read


class SharedStore(MemoryStore):
    """Another program has just written into it."""

    async def changes_outside(self) -> frozenset[str]:
        await trio.lowlevel.checkpoint()
        return frozenset({ANY_KIND})


async def test_a_running_server_looks_when_another_program_wrote(
    autojump_clock: Clock,
) -> None:
    store = SharedStore()
    async with virtual(autojump_clock) as system:
        gate = probe(system, names.PAIRING)
        system.spawn(Keeper(store, make_services(store).sure_clock), name=names.KEEPER)
        await trio.sleep(3)
    assert ReadGuests() in gate.received


async def test_a_row_of_another_release_is_nobody_s(autojump_clock: Clock) -> None:
    store = MemoryStore()
    kinds = (pairing_rows.PAIRING, pairing_rows.GUEST)
    rows = tuple(Entry(kind=x, id="fake/old", part=0, body=b"\xff{") for x in kinds)
    await store.commit(Commit(at=1.0, entries=rows))
    async with open_gate(autojump_clock, store) as gate:
        book = await gate.ref.ask(ListGuests())
        assert isinstance(book, GuestBook)
        assert (book.requests, book.guests) == ((), ())
        assert "fake/old" not in gate.services.guests


async def test_what_is_over_is_forgotten_when_the_disk_lets_it(
    autojump_clock: Clock,
) -> None:
    store = SickStore()
    async with open_gate(autojump_clock, store) as gate:
        await gate.knock()
        [request] = await gate.requests()
        await trio.sleep(590)
        store.fails = 1
        await trio.sleep(30)
        assert store.fails == 0
        assert len(await gate.requests()) == 1
        changed = pairing_rows.as_request(request)
        store.first = Commit(at=1.0, entries=(changed,))
        await trio.sleep(60)
        assert len(await gate.requests()) == 1
        await trio.sleep(60)
        assert await gate.requests() == ()


async def test_no_more_are_let_in_than_fit(autojump_clock: Clock) -> None:
    store = MemoryStore()
    async with open_gate(autojump_clock, store) as gate:
        await gate.knock()
        [request] = await gate.requests()
        guest = pairing_rows.as_let_in(request, "fake/boss", 1.0, None)
        guests = (
            msgspec.structs.replace(guest, account=f"gone/{number}")
            for number in range(pairing_rows.MOST_GUESTS)
        )
        await store.commit(
            Commit(at=1.0, entries=tuple(map(pairing_rows.as_guest, guests)))
        )
        gate.ref.tell(ReadGuests())
        assert (await gate.decide(request.code)).outcome == "full"
        assert (await gate.decide(request.code, is_approved=False)).outcome == "done"


async def test_whom_another_process_is_to_tell_waits_for_it(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with open_gate(autojump_clock, store) as gate:
        await gate.knock()
        [request] = await gate.requests()
    async with virtual(autojump_clock) as system:
        elsewhere = Gate(system, make_services(store))
        assert (await elsewhere.decide(request.code)).outcome == "done"
        assert elsewhere.told == []
    async with open_gate(autojump_clock, store) as gate:
        assert len(gate.told) == 1
        await gate.knock()
        assert len(gate.told) == 1
        assert "fake/eve" in gate.services.guests


async def test_only_who_was_let_in_can_be_put_out(autojump_clock: Clock) -> None:
    async with open_gate(autojump_clock, MemoryStore()) as gate:
        found = await gate.ref.ask(RevokeGuest("fake/eve", "fake/boss"))
        assert found == RequestDecided("unknown")


async def test_nobody_is_turned_away_before_the_guests_are_known(
    autojump_clock: Clock,
) -> None:
    store = SickStore()
    store.unreadable = 1
    async with virtual(autojump_clock) as system:
        services = guarded(store)
        router = probe(system, names.ROUTER)
        system.spawn(Pairing(services), name=names.PAIRING)
        ref = system.spawn(Connector("fake", services), name=names.connector("fake"))
        await trio.testing.wait_all_tasks_blocked()
        ingress = ConnectorIngress(ref, store)
        with pytest.raises(OverloadedError, match="try again"):
            await ingress.is_admitted(words())
        with pytest.raises(OverloadedError, match="try again"):
            await ingress.accept(words())
        assert await ingress.accept(words(sender_id="boss", number=2))
        await trio.sleep(2)
        assert not await ingress.is_admitted(words())
        assert not await ingress.accept(words())
        assert len(router.received) == 1
