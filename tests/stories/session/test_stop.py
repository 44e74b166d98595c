"""`/stop` ends an answer at once, loses no words, and nothing late gets through."""

from __future__ import annotations

import msgspec
import pytest
import trio.testing

from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.journal.records import UsageRecord
from actors.messages.inbound import ModelRequest, Usage
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    call,
    heard,
    open_company,
    until,
)
from tests.fakes.store.refused_answers import RefusedAnswers

Clock = trio.testing.MockClock

STOPPED = ": (stopped)"


def slowly(request: ModelRequest) -> Says | str:
    """Take a minute over anything that says so."""
    words = heard(request)
    return Says("done", after=60) if words.endswith("slowly") else f"to {words}"


async def test_stop_ends_the_answer_being_written(autojump_clock: Clock) -> None:
    cast = Cast(model=FakeModel(slowly))
    async with open_company(autojump_clock, cast):
        cast.platform.write("think slowly")
        await until(lambda: cast.model.running)
        began = trio.current_time()
        cast.platform.write("/stop")
        await at_rest(cast)
        assert trio.current_time() - began < 1
    assert cast.platform.said() == [STOPPED, ": Stopped."]
    assert len(cast.model.cancelled) == 1
    assert await cast.inbox() == {"cancelled": 1, "replied": 1}


async def test_a_question_that_is_deleted_is_worked_on_no_longer(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(slowly))
    async with open_company(autojump_clock, cast):
        first = cast.platform.write("one")
        asked = cast.platform.write("think slowly")
        cast.platform.write("two")
        await until(lambda: cast.model.running)
        began = trio.current_time()
        for each in (first, asked):
            await cast.platform.delete(each)
        await at_rest(cast)
        assert trio.current_time() - began < 1
    assert cast.platform.said() == ["anna: to one", STOPPED, "anna: to two"]
    assert await cast.inbox() == {"cancelled": 1, "replied": 2}


async def test_each_message_that_waited_is_told_of_the_stop(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(slowly))
    async with open_company(autojump_clock, cast):
        for text in ("think slowly", "two", "three", "/stop"):
            cast.platform.write(text)
        await at_rest(cast)
    assert cast.platform.said() == [STOPPED] * 3 + [": Stopped."]
    assert await cast.inbox() == {"cancelled": 3, "replied": 1}


async def test_stopped_words_are_remembered_as_stopped(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(slowly))
    async with open_company(autojump_clock, cast):
        cast.platform.write("think slowly")
        await until(lambda: cast.model.running)
        cast.platform.write("/stop")
        await at_rest(cast)
        cast.platform.write("and now?")
        await at_rest(cast)
    texts = [line.text for line in cast.model.requests[-1].lines]
    assert texts == ["think slowly", "[Task stopped]", "and now?"]
    assert cast.platform.said()[-1] == "anna: to and now?"


async def test_a_stop_gives_the_permit_back(order: int, autojump_clock: Clock) -> None:
    limits = LimitsConfig(max_in_flight=1)
    cast = Cast(model=FakeModel(slowly), limits=limits)
    async with open_company(autojump_clock, cast):
        for text in ("think slowly", "/stop", "think slowly", "/stop", "one"):
            cast.platform.write(text)
            await trio.sleep(0.001 * (order % 3))
        cast.platform.write("two", chat="other")
        await at_rest(cast)
    assert cast.platform.said("other") == ["anna: to two"]
    assert cast.platform.said()[-1].startswith("anna: to ")
    assert cast.model.most_running == 1


async def test_with_nothing_to_stop_that_is_said(autojump_clock: Clock) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast):
        cast.platform.write("/stop")
        await at_rest(cast)
    assert cast.platform.said() == [": There is nothing to stop."]
    assert cast.model.requests == []


@pytest.mark.parametrize(
    ("text", "words"),
    [("/help", "/stop [all] - stop"), ("/hlep", "Did you mean /help?")],
)
async def test_other_commands_are_answered_without_a_model(
    text: str, words: str, autojump_clock: Clock
) -> None:
    cast = Cast()
    async with open_company(autojump_clock, cast):
        cast.platform.write(text)
        await at_rest(cast)
    assert words in cast.platform.said()[0]
    assert cast.model.requests == []
    assert await cast.inbox() == {"replied": 1}


async def test_a_stop_leaves_other_chats_alone(autojump_clock: Clock) -> None:
    cast = Cast(model=FakeModel(slowly))
    async with open_company(autojump_clock, cast):
        cast.platform.write("think slowly", chat="one")
        cast.platform.write("think slowly", chat="two")
        await until(lambda: cast.model.running == 2)
        cast.platform.write("/stop", chat="one")
        await at_rest(cast)
    assert cast.platform.said("two") == ["anna: done"]


async def test_a_stop_while_the_answer_is_stored_stops_only_what_waits(
    autojump_clock: Clock,
) -> None:
    store = RefusedAnswers()  # tried again a second later
    cast = Cast(store=store)
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        cast.platform.write("two")
        await until(lambda: store.refused)
        cast.platform.write("/stop")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: anna heard one", STOPPED, ": Stopped."]


async def test_a_stop_that_comes_too_late_says_so(autojump_clock: Clock) -> None:
    store = RefusedAnswers()
    cast = Cast(store=store)
    async with open_company(autojump_clock, cast):
        cast.platform.write("one")
        await until(lambda: store.refused)
        cast.platform.write("/stop")
        await at_rest(cast)
    late = ": Too late: the answer is on its way."
    assert cast.platform.said() == ["anna: anna heard one", late]


async def usage_of(cast: Cast) -> list[UsageRecord]:
    rows = await cast.store.records_since("usage", 0.0, 0, 100)
    return [msgspec.json.decode(row.body, type=UsageRecord) for row in rows]


async def test_what_a_stopped_turn_took_is_in_the_ledger_as_an_estimate(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(slowly))
    async with open_company(autojump_clock, cast):
        cast.platform.write("think slowly")
        await until(lambda: cast.model.running)
        cast.platform.write("/stop")
        await at_rest(cast)
    (run,) = await usage_of(cast)
    (spent,) = run.spent
    assert spent.is_reckoned
    assert (run.status, run.rounds, run.output_tokens) == ("stopped", 1, 0)
    assert 0 < run.input_tokens == spent.usage.input_tokens


async def test_the_rounds_before_a_stop_are_booked_as_they_were_told(
    autojump_clock: Clock,
) -> None:
    def talk(request: ModelRequest) -> Says | str:
        is_second = request.lines[-1].role == "tool"
        calls = () if is_second else (call("clock"),)
        return Says("so", after=60 if is_second else 0, calls=calls)

    anna = {"anna": AgentConfig(autonomy="full")}
    cast = Cast(model=FakeModel(talk), agents=anna)
    async with open_company(autojump_clock, cast):
        cast.platform.write("think")
        await until(lambda: len(cast.model.requests) == 2)
        cast.platform.write("/stop")
        await at_rest(cast)
    (run,) = await usage_of(cast)
    told, reckoned = run.spent
    assert (told.usage, told.is_reckoned) == (Usage(3, 2), False)
    assert reckoned.is_reckoned
    assert run.input_tokens == 3 + reckoned.usage.input_tokens
