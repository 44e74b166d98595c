"""A restart loses nothing, says nothing twice, and remembers what was said."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from hypothesis import given, settings, strategies as st

from actors.config.agents import AgentConfig
from actors.errors import DeliveryBusyError
from actors.messages.inbound import ModelRequest
from runtime.testing import seeded_order
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    heard,
    open_company,
    until,
)
from tests.support.tiers import examples

Clock = trio.testing.MockClock


async def test_a_message_that_was_being_answered_is_answered_after_a_restart(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(lambda r: Says(f"to {heard(r)}", after=30)))
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        cast.platform.write("two")
        await until(lambda: cast.model.running)
    assert await cast.store.reopened().unsettled()
    assert cast.platform.said() == []
    cast.store._closed = False
    cast.restart()
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    assert cast.platform.said() == ["anna: to one", "anna: to two"]
    assert await cast.inbox() == {"replied": 2}


async def test_an_answer_that_was_not_delivered_is_delivered_after_a_restart(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    cast.platform.faults["room"].extend([DeliveryBusyError("x", retry_after=50)] * 5)
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        await until(lambda: cast.platform.attempts)
    assert await cast.outbox() == {"pending": 1}
    cast.platform.faults.clear()
    cast.restart()
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    assert cast.platform.said() == ["anna: anna heard one"]
    assert len(cast.model.requests) == 1


async def test_a_conversation_is_remembered(autojump_clock: Clock) -> None:
    cast = Cast()
    for text in ("one", "two", "three"):
        async with open_company(autojump_clock, cast):
            cast.platform.write(text)
            await at_rest(cast)
        cast.restart()
    lines = [line.text for line in cast.model.requests[-1].lines]
    assert lines == ["one", "anna heard one", "two", "anna heard two", "three"]


async def test_a_message_repeated_by_the_platform_is_not_answered_again(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    for _ in range(2):
        async with open_company(autojump_clock, cast):
            cast.platform.write("one", key="k1")
            await at_rest(cast)
        cast.restart()
    assert cast.platform.said() == ["anna: anna heard one"]
    assert cast.platform.acknowledged == ["k1", "k1"]


async def test_a_stop_takes_effect_after_a_restart_too(autojump_clock: Clock) -> None:
    cast = Cast(model=FakeModel(lambda _: Says("late", after=60)))
    cast.store._fails_at = range(3, 10_000)
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        cast.platform.write("/stop")
        await until(lambda: len(cast.platform.acknowledged) == 2)
    cast.restart()
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    assert cast.platform.said() == [": (stopped)", ": Stopped."]


async def test_messages_of_an_account_that_is_gone_are_left_alone(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(lambda _: Says("late", after=60)))
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        await until(lambda: cast.model.running)
    cast.restart()
    cast.platform = type(cast.platform)("another")
    async with open_company(autojump_clock, cast):
        cast.platform.write("two")
        await until(lambda: cast.platform.deliveries)
    assert await cast.inbox() == {"accepted": 1, "replied": 1}


@settings(max_examples=examples(15, deep=200))
@given(
    cuts=st.lists(st.sampled_from([0.0, 0.001, 0.01, 0.4, 1.0, 2.5]), max_size=4),
    seed=st.integers(0, 19),
)
def test_however_often_it_is_cut_all_are_answered_once_and_in_order(
    cuts: list[float], seed: int
) -> None:
    agents = {"anna": AgentConfig(delegates=("ben",)), "ben": AgentConfig()}
    cast = Cast(agents=agents, model=FakeModel(talk))
    with seeded_order(seed):
        clock = trio.testing.MockClock(autojump_threshold=0)
        trio.run(play_with_cuts, cast, cuts, clock, clock=clock)
    for chat in ("c0", "c1"):
        said = [s for s in cast.platform.said(chat) if s.startswith("anna")]
        assert said == [f"anna: to {n}" for n in ("one", "two", "three")]
        assert cast.platform.said(chat).count("ben: done") == 1
    assert len({each.id for each in cast.platform.deliveries}) == 8


def talk(request: ModelRequest) -> Says:
    if request.agent == "ben":
        return Says("done", after=0.7)
    words = heard(request)
    task = " [DELEGATE:ben] x [/DELEGATE]" if words == "two" else ""
    return Says(f"to {words}{task}", pieces=("to ", f"{words}{task}"), pause=0.3)


async def play_with_cuts(cast: Cast, cuts: list[float], clock: Clock) -> None:
    for chat in ("c0", "c1"):
        for text in ("one", "two", "three"):
            cast.platform.write(text, chat=chat)
    for seconds in cuts:
        async with open_company(clock, cast):
            await trio.sleep(seconds)
        cast.restart()
    async with open_company(clock, cast):
        await at_rest(cast)
    assert await cast.inbox() == {"replied": 8}
    assert await cast.outbox() == {"sent": 8}


@pytest.mark.parametrize("seconds", [0.0, 0.15, 0.45, 1.0])
async def test_ending_in_mid_turn_settles_nothing_wrongly(
    seconds: float, order: int, autojump_clock: Clock
) -> None:
    agents = {"anna": AgentConfig(delegates=("ben",)), "ben": AgentConfig()}
    cast = Cast(agents=agents, model=FakeModel(talk))
    async with open_company(autojump_clock, cast):
        cast.platform.write("two")
        await until(lambda: cast.platform.acknowledged)
        await trio.sleep(seconds + order / 100)
    states = set(await cast.inbox()) | set(await cast.outbox())
    assert states <= {"accepted", "replied", "pending", "sent"}
    cast.restart()
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    assert sorted(cast.platform.said()) == ["anna: to two", "ben: done"]
