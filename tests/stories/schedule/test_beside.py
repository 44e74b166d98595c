"""Scheduled work goes on beside the chat's conversation, and is known in it later."""

from __future__ import annotations

import trio
import trio.testing

from actors.messages.inbound import ModelRequest
from actors.rules.markers.actions import Schedule
from tests.fakes.company.arranging import arrange
from tests.fakes.company.company import (
    Cast,
    FakeModel,
    Says,
    at_rest,
    open_company,
    until,
)

Clock = trio.testing.MockClock

# The mock clock's zero: Tue 2023-11-14 22:13:20 UTC.
TASK = Schedule("sum up the news", "2023-11-14 23:00", is_action=True)
DUE = 2_800.0


def slowly(request: ModelRequest) -> Says:
    is_task = "Nobody wrote this now" in request.lines[-1].text
    return Says("the news: rain", after=60.0) if is_task else Says("hello zoe")


async def test_a_task_holds_nobody_up(autojump_clock: Clock) -> None:
    cast = Cast(model=FakeModel(slowly))
    async with open_company(autojump_clock, cast) as system:
        await arrange(system, cast, TASK)
        await trio.sleep(DUE + 10)
        began = trio.current_time()
        cast.platform.write("hello", chat="room", sender="zoe")
        await until(lambda: cast.platform.said("room"))
        assert trio.current_time() - began < 5
        await at_rest(cast)
    assert cast.platform.said("room") == ["anna: hello zoe", "anna: the news: rain"]


async def test_a_task_knows_the_conversation_and_is_known_in_it(
    autojump_clock: Clock,
) -> None:
    cast = Cast(model=FakeModel(slowly))
    async with open_company(autojump_clock, cast) as system:
        cast.platform.write("I like short news", chat="room", sender="zoe")
        await at_rest(cast)
        await arrange(system, cast, TASK)
        await trio.sleep(DUE + 100)
        cast.platform.write("what did you say?", chat="room", sender="zoe")
        await at_rest(cast)
    _, task, last = cast.model.requests
    assert [line.text for line in task.lines[:-1]] == ["I like short news", "hello zoe"]
    asked, said = last.lines[-3:-1]
    assert "sum up the news" in asked.text
    assert said.text == "the news: rain"


async def test_a_task_is_ended_by_a_stop(autojump_clock: Clock) -> None:
    cast = Cast(model=FakeModel(slowly))
    async with open_company(autojump_clock, cast) as system:
        await arrange(system, cast, TASK)
        await trio.sleep(DUE + 10)
        cast.platform.write("/stop", chat="room", sender="zoe")
        await at_rest(cast)
        await trio.sleep(200)
    told, stopped = cast.platform.said("room")
    assert "at something that was due" in told
    assert stopped == ": (stopped)"
