"""Proves that who waits for a lost message is told, once, and when the disk allows."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio.testing

from actors import names
from actors.inbound.undeliverable import Undeliverable, is_owed_an_answer
from actors.journal.commits import as_accept, as_enqueue
from actors.protocol import (
    Deliver,
    Delivered,
    DrainOutbox,
    Failed,
    Hear,
    PermitGranted,
    Route,
    RunTurn,
    StartTurn,
    TurnEnded,
    TurnStreamed,
    Undelivered,
)
from runtime.actor.dead_letters import DeadLetter, Reason
from runtime.actor.messages import Keyed
from runtime.actor.ref import ActorRef
from runtime.store.rows import Commit
from runtime.testing import Probe
from tests.fakes.actors.neighbours import make_services, of_kind, probe, saying, words
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock

DONE = TurnEnded("t1", None)  # type: ignore[arg-type]  # only passed on


class Desk:
    """The actor, the connector it tells and a session that waits."""

    def __init__(
        self,
        undeliverable: ActorRef,
        store: MemoryStore,
        connector: Probe,
        session: Probe,
    ) -> None:
        self.undeliverable = undeliverable
        self.store = store
        self.connector = connector
        self.session = session

    async def inbox(self) -> dict[str, int]:
        counts = await self.store.counts()
        return {str(state): rows for state, rows in counts.inbox.items()}

    def start(self) -> StartTurn:
        return StartTurn(
            turn_id="t1",
            generation=1,
            session=self.session.actor_ref,
            inbound=words(),
            history=(),
        )


@asynccontextmanager
async def open_desk(clock: Clock) -> AsyncGenerator[Desk]:
    store = MemoryStore()
    accepts = (as_accept(words(), 1.0),)
    await store.commit(
        Commit(at=1.0, accepts=accepts, deliveries=(as_enqueue(saying(2), 0),))
    )
    async with virtual(clock) as system:
        connector = probe(system, names.connector("fake"))
        session = probe(system, "session")
        undeliverable = system.spawn(
            Undeliverable(make_services(store)), name=names.UNDELIVERABLE
        )
        yield Desk(undeliverable, store, connector, session)


@pytest.mark.parametrize("message", [Hear(words()), Route(words())])
async def test_a_message_given_up_is_dead_and_its_sender_is_told(
    message: Hear | Route, autojump_clock: Clock
) -> None:
    async with open_desk(autojump_clock) as desk:
        letter = DeadLetter("x", "poison", Keyed("key", message))
        desk.undeliverable.tell(letter)
        desk.undeliverable.tell(letter)  # a second time it changes nothing
        told = await desk.connector.wait_for(Deliver)
        await trio.sleep(10)
        assert "I could not take this message" in told.delivery.text
        assert len(of_kind(desk.connector, Deliver)) == 1
        # Whoever stored the first one may not have lived to send it.
        assert of_kind(desk.connector, DrainOutbox) == [DrainOutbox()]
        assert await desk.inbox() == {"dead": 1}


async def test_an_apology_waits_for_the_disk(autojump_clock: Clock) -> None:
    async with open_desk(autojump_clock) as desk:
        desk.store._fails_at = range(2, 7)
        desk.undeliverable.tell(DeadLetter("x", "failed", Hear(words())))
        await trio.sleep(3)
        assert await desk.inbox() == {"accepted": 1}
        await desk.connector.wait_for(Deliver)
        assert await desk.inbox() == {"dead": 1}


@pytest.mark.parametrize(
    ("reason", "word"), [("failed", "bug"), ("mailbox_full", "mailbox_full")]
)
async def test_a_turn_that_never_ran_is_answered_to_its_session(
    reason: Reason, word: str, autojump_clock: Clock
) -> None:
    async with open_desk(autojump_clock) as desk:
        desk.undeliverable.tell(
            DeadLetter("x", reason, Keyed("t1", RunTurn(desk.start())))
        )
        ended = await desk.session.wait_for(TurnEnded)
        failed: Failed = ended.outcome  # type: ignore[assignment]
        assert (ended.turn_id, failed.reason) == ("t1", word)


async def test_a_turn_that_found_no_agent_is_answered_too(
    autojump_clock: Clock,
) -> None:
    async with open_desk(autojump_clock) as desk:
        desk.undeliverable.tell(DeadLetter("x", "no_such_actor", desk.start()))
        await desk.session.wait_for(TurnEnded)


@pytest.mark.parametrize("message", [DONE, PermitGranted("t1")])
async def test_what_found_no_room_at_a_session_is_told_again(
    message: TurnEnded | PermitGranted, autojump_clock: Clock
) -> None:
    async with open_desk(autojump_clock) as desk:
        desk.undeliverable.tell(DeadLetter("session", "mailbox_full", message))
        await trio.testing.wait_all_tasks_blocked()
        assert not desk.session.received
        await desk.session.wait_count(1)
        assert desk.session.received == [message]


async def test_a_delivery_that_broke_its_courier_is_dead(
    autojump_clock: Clock,
) -> None:
    async with open_desk(autojump_clock) as desk:
        letter = DeadLetter("x", "poison", Deliver(saying(2)))
        desk.undeliverable.tell(letter)
        assert await desk.connector.wait_for(Delivered) == Delivered("m2:0")
        assert (await desk.store.counts()).outbox == {"dead": 1}


async def test_a_delivery_that_never_came_to_a_courier_is_tried_later(
    autojump_clock: Clock,
) -> None:
    async with open_desk(autojump_clock) as desk:
        letter = DeadLetter("x", "mailbox_full", Keyed("k", Deliver(saying(2))))
        desk.undeliverable.tell(letter)
        assert await desk.connector.wait_for(Undelivered) == Undelivered("m2:0")
        assert (await desk.store.counts()).outbox == {"pending": 1}


async def test_nobody_waits_for_anything_else(autojump_clock: Clock) -> None:
    async with open_desk(autojump_clock) as desk:
        desk.undeliverable.tell(DeadLetter("x", "failed", TurnStreamed("t1", "word")))
        await trio.sleep(10)
        assert of_kind(desk.connector, object) == []
        desk.undeliverable.tell("nonsense")
        await trio.testing.wait_all_tasks_blocked()
        assert not desk.undeliverable.is_alive()


@pytest.mark.parametrize(
    ("message", "reasons"),
    [
        (Hear(words()), {"poison", "failed", "killed", "mailbox_full"}),
        (Route(words()), {"poison", "failed", "killed", "mailbox_full"}),
        (Deliver(saying()), {"poison", "failed", "mailbox_full"}),
        (PermitGranted("t1"), {"mailbox_full"}),
        (TurnStreamed("t1", "word"), set[str]()),
    ],
)
def test_at_the_end_of_the_system_nobody_is_owed_an_apology(
    message: object, reasons: set[str]
) -> None:
    every: tuple[Reason, ...] = (
        "mailbox_full",
        "stopped",
        "killed",
        "failed",
        "poison",
        "no_such_actor",
    )
    owed = {r for r in every if is_owed_an_answer(DeadLetter("x", r, message))}
    assert owed == reasons
