"""Whatever a model, a tool or the disk does, there is an answer, and it goes on."""

from __future__ import annotations

import logging

import pytest
import trio
import trio.testing

from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.config.sessions import WatchdogConfig
from actors.errors import ModelBusyError, ModelRefusedError, ToolError
from actors.messages.inbound import ToolCall, ToolContext, ToolResult, ToolSpec
from runtime.errors import StoreUnavailableError
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

Clock = trio.testing.MockClock


class BugError(Exception):
    """Nothing that a port may raise."""


class FakeTool:
    """A tool that does what its arguments say."""

    spec = ToolSpec("poke", "Poke it.", b"{}", effect="read", is_own_words=True)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        await trio.lowlevel.checkpoint()
        if b"fail" in call.arguments:
            raise ToolError("the thing is stuck")
        if b"bug" in call.arguments:
            raise BugError("to order")
        if b"hang" in call.arguments:
            await trio.sleep_forever()
        return ToolResult(f"poked for {context.sender_id}")


def faulty(*says: Says | str) -> FakeModel:
    """Do these in turn, then answer properly for ever."""
    rest = iter(says)
    return FakeModel(lambda request: next(rest, f"to {heard(request)}"))


async def ask(clock: Clock, cast: Cast, *texts: str) -> list[str]:
    async with open_company(clock, cast):
        for text in texts:
            cast.platform.write(text)
            await at_rest(cast)
    return cast.platform.said()


def outcome_of_turns(cast: Cast, outcome: str) -> bool:
    line = f'callboard_turns_total{{agent="anna",outcome="{outcome}"}} 1'
    return line in cast.metrics.render().decode()


async def test_what_is_said_about_an_agent_is_said_by_its_own_account(
    autojump_clock: Clock,
) -> None:
    agents = {"anna": AgentConfig(), "ben": AgentConfig()}
    cast = Cast(agents=agents, model=faulty(Says(error=ModelRefusedError("no"))))
    cast.platform.is_direct = False
    async with open_company(autojump_clock, cast):
        for text in ("@ben hello", "/who@ben", "/status@anna"):
            cast.platform.write(text)
            await at_rest(cast)
    said = cast.platform.deliveries
    assert [each.agent for each in said] == ["", "", ""], "in the runtime's own words"
    assert [each.speaker for each in said] == ["ben", "ben", "anna"]


@pytest.mark.parametrize("is_busy", [True, False])
async def test_people_are_not_told_whose_model_it_is(
    is_busy: bool,  # noqa: FBT001  a table
    autojump_clock: Clock,
) -> None:
    plain = "10.0.0.7 (secret-model): refused the request (HTTP 400)"
    kinds = {
        True: ModelBusyError(f"{plain}: boom", kind="overload", plain=plain),
        False: ModelRefusedError(f"{plain}: boom", plain=plain),
    }
    down = Says(error=kinds[is_busy])
    cast = Cast(model=FakeModel(lambda _: down))
    said = "\n".join(await ask(autojump_clock, cast, "hello"))
    assert said
    assert not any(word in said for word in ("10.0.0.7", "secret-model", "boom", "400"))


async def test_a_busy_model_is_asked_again(autojump_clock: Clock) -> None:
    busy = Says(error=ModelBusyError("overloaded", retry_after=3))
    cast = Cast(model=faulty(busy, busy))
    assert await ask(autojump_clock, cast, "hello") == ["anna: to hello"]
    assert len(cast.model.requests) == 3


@pytest.mark.parametrize(
    ("error", "words", "outcome"),
    [
        (ModelBusyError("overloaded"), "cannot answer now: overloaded", "model"),
        (ModelRefusedError("no quota"), "the log says what is wrong", "model"),
        (BugError("to order"), "Something broke", "bug"),
    ],
)
async def test_a_model_that_fails_is_no_silence(
    error: Exception, words: str, outcome: str, autojump_clock: Clock
) -> None:
    is_busy = isinstance(error, ModelBusyError)
    cast = Cast(model=faulty(*[Says(error=error)] * (3 if is_busy else 1)))
    said = await ask(autojump_clock, cast, "hello", "again")
    assert words in said[0]
    assert said[1].startswith("anna: to ")
    assert await cast.inbox() == {"replied": 2}
    assert outcome_of_turns(cast, outcome)


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (ModelRefusedError("no such model"), logging.WARNING),
        (ModelRefusedError("not that", kind="content"), logging.INFO),
        (ModelBusyError("overloaded"), logging.INFO),
    ],
)
async def test_what_people_are_told_to_report_stands_out_in_the_log(
    error: Exception,
    level: int,
    autojump_clock: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    cast = Cast(model=faulty(Says(error=error)))
    await ask(autojump_clock, cast, "hello")
    told = "no answer from a model"
    lines = [each for each in caplog.records if each.getMessage() == told]
    assert [each.levelno for each in lines] == [level]


async def test_the_answer_is_whole_although_a_model_broke_off_in_its_middle(
    autojump_clock: Clock,
) -> None:
    half = Says(pieces=("half way ",), error=ModelBusyError("cut off", kind="network"))
    cast = Cast(model=faulty(half))
    assert await ask(autojump_clock, cast, "hello") == ["anna: to hello"]
    first, second = cast.platform.drafts
    assert (first.text, second.text) == ("half way ", "to hello")
    assert first.turn_id != second.turn_id  # so it begins anew where it can


@pytest.mark.parametrize(
    ("stuck_after", "outcome"), [(0.0, "timeout"), (60.0, "stuck")]
)
async def test_a_turn_that_takes_too_long_is_ended(
    stuck_after: float, outcome: str, autojump_clock: Clock
) -> None:
    cast = Cast(model=faulty(Says("late", after=1000)))
    cast.watchdog = WatchdogConfig(stuck_after=stuck_after)
    said = await ask(autojump_clock, cast, "hello", "again")
    assert "timed out" in said[0]
    assert said[1].startswith("anna: to again")
    lines = [line.text for line in cast.model.requests[-1].lines]
    assert lines == ["hello", "[Task timed out]", "again"]
    assert outcome_of_turns(cast, outcome)


async def test_a_silent_answer_is_acknowledged(autojump_clock: Clock) -> None:
    cast = Cast(model=faulty("<tool_call>x</tool_call>", "  "))
    assert await ask(autojump_clock, cast, "one", "two") == ["anna: ✓", "anna: ✓"]


async def test_thousands_of_words_at_once_are_all_said(autojump_clock: Clock) -> None:
    words = tuple(f"w{number} " for number in range(5000))
    text = "".join(words)
    cast = Cast(model=faulty(Says(text, pieces=words)))
    async with open_company(autojump_clock, cast) as system:
        cast.platform.write("hello")
        await at_rest(cast)
        assert not system.dead_letters.counts
    assert cast.platform.said() == [f"anna: {text}"]


@pytest.mark.parametrize(
    ("do", "words"),
    [("poke", "poked for zoe"), ("fail", "Error: the thing is stuck")],
)
async def test_a_tool_s_result_or_error_is_told_to_the_model(
    do: str, words: str, autojump_clock: Clock
) -> None:
    cast = Cast(
        agents={"anna": AgentConfig(tools=("poke",))},
        tools=(FakeTool(),),
        model=faulty(Says("Wait.", calls=(call("poke", do=do),))),
    )
    assert await ask(autojump_clock, cast, "poke") == [f"anna: Wait.\n\nto {words}"]


@pytest.mark.parametrize(
    ("do", "words"), [("bug", "broke"), ("hang", "took longer than 150 seconds")]
)
async def test_a_tool_that_breaks_or_hangs_is_no_silence(
    do: str, words: str, autojump_clock: Clock
) -> None:
    cast = Cast(
        agents={"anna": AgentConfig(tools=("poke",))},
        tools=(FakeTool(),),
        model=faulty(Says(calls=(call("poke", do=do),))),
        limits=LimitsConfig(longest_turn=300.0),
    )
    said = await ask(autojump_clock, cast, "poke", "again")
    assert words in said[0]
    assert said[1].startswith("anna: to again")


async def test_a_model_that_never_stops_calling_tools_is_stopped(
    autojump_clock: Clock,
) -> None:
    cast = Cast(
        agents={"anna": AgentConfig(tools=("poke",), max_tool_rounds=2)},
        tools=(FakeTool(),),
        model=FakeModel(lambda _: Says(calls=(call("poke"),))),
    )
    assert "No answer after 3 rounds" in (await ask(autojump_clock, cast, "poke"))[0]
    assert [bool(r.tools) for r in cast.model.requests] == [True, True, False]


async def test_what_cannot_be_stored_is_not_acknowledged(
    autojump_clock: Clock,
) -> None:
    cast = Cast()
    cast.store._fails_at = (1,)
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello", key="k1")
        await until(lambda: cast.platform.refused)
        assert isinstance(cast.platform.refused[0][1], StoreUnavailableError)
        cast.platform.write("hello", key="k1")
        await at_rest(cast)
    assert cast.platform.acknowledged == ["k1"]
    assert cast.platform.said() == ["anna: anna heard hello"]


@pytest.mark.parametrize("first", range(2, 12))
async def test_a_disk_that_is_full_for_a_while_costs_nothing_but_time(
    first: int, autojump_clock: Clock
) -> None:
    cast = Cast(agents={"anna": AgentConfig(), "ben": AgentConfig()})
    cast.store._fails_at = range(first, first + 7)
    async with open_company(autojump_clock, cast):
        for text in ("one", "@anna @ben two", "/help", "three"):
            await hand_in(cast, text)
        await at_rest(cast)
        await trio.sleep(60)
    assert len({d.id for d in cast.platform.deliveries}) == 5
    assert len(cast.platform.attempts) == 5
    assert await cast.inbox() == {"replied": 5}
    assert await cast.outbox() == {"sent": 5}


async def hand_in(cast: Cast, text: str) -> None:
    """Write the same again and again until it is taken."""
    platform = cast.platform
    while text not in platform.acknowledged:
        platform.write(text, key=text)
        await until(lambda: platform.is_heard)
        await trio.sleep(1)


async def test_the_seventh_turn_goes_on_when_the_limit_is_one(
    autojump_clock: Clock,
) -> None:
    errors = (BugError("x"), ModelBusyError("x"), ModelRefusedError("x"))
    talks = [Says(error=error) for error in errors]
    cast = Cast(
        model=FakeModel(
            lambda r: talks[int(heard(r)[-1])] if "fail" in heard(r) else "ok"
        ),
        limits=LimitsConfig(max_in_flight=1, turn_timeout=5),
    )
    async with open_company(autojump_clock, cast):
        for number in range(6):
            cast.platform.write(f"fail {number % 3}", chat=f"room{number}")
        cast.platform.write("hello")
        await at_rest(cast)
    assert cast.platform.said() == ["anna: ok"]
    assert len(cast.platform.deliveries) == 7
