"""Proves what a session stores and tells when several messages share a turn."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from actors.config.sessions import BufferingConfig
from actors.messages.busy_policies import BusyPolicy
from actors.messages.deliveries import Abilities
from actors.messages.inbound import Inbound
from actors.messages.state import RetryPolicy
from actors.protocol import (
    CancelTurn,
    Deliver,
    Failed,
    Finished,
    StartTurn,
    TurnEnded,
)
from actors.transport import Account
from actors.turn.steering import FetchSteering
from tests.fakes.actors.neighbours import of_kind, words
from tests.fakes.actors.room import HeldStore, Room, open_room
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock

RETRIES = {"fake": Account(retries=RetryPolicy(first_wait=60.0))}


def busy(policy: BusyPolicy) -> BufferingConfig:
    return BufferingConfig(policy=policy)


def three() -> tuple[Inbound, ...]:
    return tuple(words(text, n) for n, text in enumerate(("one", "two", "three"), 1))


async def steer(room: Room, start: StartTurn) -> list[str]:
    found: tuple[Inbound, ...] = await room.ref.ask(FetchSteering(start.turn_id))
    return [each.text for each in found]


async def test_all_of_a_turn_are_claimed_and_put_off_together(
    autojump_clock: Clock,
) -> None:
    async with open_room(
        autojump_clock, accounts=RETRIES, buffering=busy("followup")
    ) as room:
        await room.hear(*three())
        await room.answer()
        start = await room.grant()
        rows = await room.store.unsettled()
        assert [(row.state, row.attempts) for row in rows] == [("running", 1)] * 2
        failed = Failed("not now", "model", may_retry=True)
        room.ref.tell(TurnEnded(start.turn_id, failed))
        await room.rest()
        rows = await room.store.unsettled()
        assert [row.state for row in rows] == ["accepted"] * 2
        assert len({row.due_at for row in rows}) == 1
        await trio.sleep(61)
        again = await room.answer("both")
        assert again.inbound.text == start.inbound.text
        assert (await room.store.counts()).inbox == {"replied": 3}


async def test_over_http_each_is_answered_by_itself(autojump_clock: Clock) -> None:
    http = {"fake": Account(Abilities(shows_asides=False))}
    for policy in ("followup", "interrupt", "steer"):
        async with open_room(
            autojump_clock, accounts=http, buffering=busy(policy)
        ) as room:
            await room.hear(*three())
            start = await room.grant()
            assert await steer(room, start) == []
            room.ref.tell(TurnEnded(start.turn_id, Finished("yes")))
            await room.rest()
            texts = [(await room.answer()).inbound.text for _ in range(2)]
            assert texts == ["two", "three"]
            assert of_kind(room.agent, CancelTurn) == []


@pytest.mark.parametrize("is_owed", [False, True])
async def test_what_an_interrupted_turn_still_says_is_nobody_s_business(
    *, is_owed: bool, autojump_clock: Clock
) -> None:
    store = HeldStore()
    async with open_room(autojump_clock, store, buffering=busy("interrupt")) as room:
        await room.hear(words("one"))
        first = await room.grant()
        store.is_held = is_owed
        await room.hear(words("two", 2))
        room.ref.tell(TurnEnded(first.turn_id, Finished("late")))
        await room.rest()
        store.let_go()
        await room.rest()
        room.ref.tell(TurnEnded(first.turn_id, Finished("later")))
        start = await room.answer("both")
        assert start.generation > first.generation
        assert [line.text for line in start.history] == ["one"]
        assert room.said() == ["", "both"]
        assert of_kind(room.agent, CancelTurn) == [CancelTurn(first.turn_id)]


@pytest.mark.parametrize("is_stored", [False, True])
async def test_what_comes_after_the_end_is_not_lost_to_a_late_question_of_that_turn(
    *, is_stored: bool, autojump_clock: Clock
) -> None:
    store = HeldStore()
    async with open_room(autojump_clock, store, buffering=busy("steer")) as room:
        await room.hear(words("one"))
        start = await room.grant()
        store.is_held = not is_stored
        room.ref.tell(TurnEnded(start.turn_id, Finished("yes")))
        await room.rest()
        await room.hear(words("two", 2))
        assert await steer(room, start) == []
        store.let_go()
        await room.rest()
        again = await room.grant()
        await room.hear(words("three", 3))
        assert await steer(room, start) == []
        assert await steer(room, again) == ["three"]
        room.ref.tell(TurnEnded(again.turn_id, Finished("both", joined=("m3",))))
        await room.rest()
        assert again.inbound.text == "two"
        assert room.said() == ["yes", "both", ""]  # "three" is answered by "both"
        assert (await room.store.counts()).inbox == {"replied": 3}


async def test_nothing_interrupts_an_answer_that_is_being_stored(
    autojump_clock: Clock,
) -> None:
    store = HeldStore()
    async with open_room(autojump_clock, store, buffering=busy("interrupt")) as room:
        await room.hear(words("one"))
        start = await room.grant()
        store.is_held = True
        room.ref.tell(TurnEnded(start.turn_id, Finished("yes")))
        await room.hear(words("two", 2))
        store.let_go()
        await room.rest()
        await room.answer("second")
        assert room.said() == ["yes", "second"]
        assert (await room.store.counts()).inbox == {"replied": 2}


async def test_an_interruption_in_the_wait_for_another_attempt(
    autojump_clock: Clock,
) -> None:
    async with open_room(
        autojump_clock, accounts=RETRIES, buffering=busy("interrupt")
    ) as room:
        await room.hear(words("one"))
        start = await room.grant()
        failed = Failed("not now", "model", may_retry=True)
        room.ref.tell(TurnEnded(start.turn_id, failed))
        await room.hear(words("two", 2))
        await room.answer("both")
        await trio.sleep(200)
        assert len(of_kind(room.agent, StartTurn)) == 2
        assert (await room.store.counts()).inbox == {"cancelled": 1, "replied": 1}


async def test_what_a_turn_was_given_and_did_not_read_is_answered_after_it(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock, buffering=busy("steer")) as room:
        await room.hear(*three())
        start = await room.grant()
        assert await steer(room, start) == ["two", "three"]
        assert await steer(room, start) == ["two", "three"]
        finished = Finished("yes", joined=("m2",))
        room.ref.tell(TurnEnded(start.turn_id, finished))
        await room.rest()
        assert (await room.store.counts()).inbox == {"replied": 2, "accepted": 1}
        assert (await room.answer()).inbound.text == "three"
        assert (await room.store.counts()).inbox == {"replied": 3}


async def test_what_a_turn_did_not_read_does_not_fail_with_it(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock, buffering=busy("steer")) as room:
        await room.hear(*three())
        start = await room.grant()
        assert await steer(room, start) == ["two", "three"]
        failed = Failed("no", "model", joined=("m2",))
        room.ref.tell(TurnEnded(start.turn_id, failed))
        await room.rest()
        counts = (await room.store.counts()).inbox
        assert counts.pop("accepted") == 1
        assert sum(counts.values()) == 2
        assert (await room.answer()).inbound.text == "three"


async def test_another_attempt_is_given_the_same_words(autojump_clock: Clock) -> None:
    async with open_room(
        autojump_clock, accounts=RETRIES, buffering=busy("steer")
    ) as room:
        await room.hear(*three()[:2])
        start = await room.grant()
        await steer(room, start)
        failed = Failed("not now", "model", may_retry=True)
        room.ref.tell(TurnEnded(start.turn_id, failed))
        await trio.sleep(61)
        again = await room.grant()
        assert [each.text for each in again.injected] == ["two"]
        room.ref.tell(TurnEnded(again.turn_id, Finished("yes", joined=("m2",))))
        await room.rest()
        assert (await room.store.counts()).inbox == {"replied": 2}


async def test_a_turn_long_over_is_given_nothing(autojump_clock: Clock) -> None:
    async with open_room(autojump_clock, buffering=busy("steer")) as room:
        await room.hear(*three())
        start = await room.grant()
        assert await steer(room, start) != []
        room.ref.tell(TurnEnded(start.turn_id, Finished("yes", joined=("m2", "m3"))))
        await room.rest()
        assert await steer(room, start) == []


async def test_all_are_told_of_and_the_newest_is_replied_to(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with open_room(autojump_clock, store, buffering=busy("followup")) as room:
        await room.hear(*three())
        await room.answer()
        await room.answer("both")
        said = [each.delivery for each in of_kind(room.connector, Deliver)][1:]
    assert [(x.kind, x.correlation_id) for x in said] == [
        ("reply", "m2"),
        ("silence", "m3"),
    ]
    assert said[0].reply_to == "p3"
