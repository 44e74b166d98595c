"""Which model answers: by a word, or after a cheap one was asked; and step by step."""

from __future__ import annotations

from typing import Any

import trio
import trio.testing

from actors.config.agents import AgentConfig
from actors.config.routes import HintConfig, RoutingConfig
from actors.errors import ModelBusyError
from actors.messages.inbound import ModelRequest
from actors.messages.state import RetryPolicy
from tests.fakes.company.company import Says, at_rest, call, heard, open_company, until
from tests.fakes.models.accounts import Account, Pooled

Clock = trio.testing.MockClock

PLAN = "1. read it\n2. write it"
ROUTING = RoutingConfig(classify=True, cheap="cheap", strong="smart")


class Planner(Account):
    """Classifies as it is told to; answers as usual otherwise.

    Args:
        answer: to the question whether there are several steps.
    """

    def __init__(self, answer: str, after: float = 0.0) -> None:
        super().__init__("spare")
        self.answer_ = Says(answer, after=after)
        self.questions: list[ModelRequest] = []

    def talk_or_fail(self, request: ModelRequest) -> Says:
        if "DIRECT" in heard(request):
            self.questions.append(request)
            return self.answer_
        return super().talk_or_fail(request)


def make_cast(routing: RoutingConfig, answer: str = "", **fields: Any) -> Pooled:
    agents = {"anna": AgentConfig(model="smart", routing=routing)}
    given: dict[str, Any] = {
        "agents": agents,
        "retries": RetryPolicy(),
        "spare": Planner(answer),
    }
    return Pooled(**(given | fields))


async def ask(clock: Clock, cast: Pooled, *texts: str) -> list[str]:
    async with open_company(clock, cast):
        for text in texts:
            cast.platform.write(text)
            await at_rest(cast)
    return cast.platform.said()


def steps_of(cast: Pooled) -> list[str]:
    """Give which step was asked for in each request to the strong model."""
    return [
        "".join(line.text for line in each.lines).split("take step ")[-1][:1]
        for each in cast.work.requests
    ]


async def test_a_word_says_which_model_answers(autojump_clock: Clock) -> None:
    hints = (HintConfig(("poem", "song"), "cheap"),)
    cast = make_cast(RoutingConfig(hints=hints))
    said = await ask(autojump_clock, cast, "A song!", "singsong")
    assert said == ["anna: cheap-1@spare: A song!", "anna: smart-1@work: singsong"]


async def test_what_needs_no_steps_is_answered_by_the_cheap_model(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(ROUTING, "DIRECT")
    said = await ask(autojump_clock, cast, "one", "two")
    assert said == ["anna: cheap-1@spare: one", "anna: cheap-1@spare: two"]
    assert isinstance(cast.spare, Planner)
    first, second = cast.spare.questions
    assert (first.system, first.tools, len(first.lines)) == ("", (), 1)
    assert "- one\n- cheap-1@spare: one\n- two" in heard(second)
    assert all("DIRECT" not in each.text for each in cast.platform.drafts)


async def test_what_needs_steps_is_written_step_by_step_by_the_strong_model(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(ROUTING, PLAN)
    cast.work.faults += [Says("I read it.", after=1), Says("I wrote it.", after=1)]
    said = await ask(autojump_clock, cast, "do it")
    assert said == [": ✓ Step 1 of 2: read it", "anna: I read it.\n\nI wrote it."]
    first, second = cast.work.requests
    assert "1. read it\n2. write it" in heard(first)
    assert second.lines[-2].text == "I read it."
    assert all(each.tools == () for each in (first, second))
    assert "step 2 only" in heard(second)
    assert "".join(each.text for each in cast.platform.drafts) == (
        "I read it.\n\nI wrote it."
    )


async def test_each_step_may_use_tools_and_is_called_done_after_them(
    autojump_clock: Clock,
) -> None:
    agents = {
        "anna": AgentConfig(model="smart", routing=ROUTING, delegates=("ben",)),
        "ben": AgentConfig(model="smart"),
    }
    cast = make_cast(ROUTING, PLAN, agents=agents)
    cast.work.faults += [
        Says(calls=(call("nothing", 1),), after=1),
        Says("I read it.", after=1),
        Says(calls=(call("nothing", 2),), after=1),
        Says("I wrote it.", after=1),
    ]
    said = await ask(autojump_clock, cast, "do it")
    assert said == [": ✓ Step 1 of 2: read it", "anna: I read it.\n\nI wrote it."]
    assert steps_of(cast) == ["1", "1", "2", "2"]
    assert all(each.tools for each in cast.work.requests)
    last = cast.work.requests[-1]
    assert [line.role for line in last.lines][-7:] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
        "tool",
    ]


async def test_a_step_that_breaks_off_is_written_again_alone(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(ROUTING, PLAN)
    cast.work.faults += [
        Says("I read it.", after=1),
        Says(pieces=("I wr",), pause=1, error=ModelBusyError("x", kind="protocol")),
    ]
    cast.home.faults.append(Says("I wrote it.", after=1))
    said = await ask(autojump_clock, cast, "do it")
    assert said[-1] == "anna: I read it.\n\nI wrote it."
    last = cast.platform.drafts[-1].turn_id
    again = [each.text for each in cast.platform.drafts if each.turn_id == last]
    assert "".join(again) == "I read it.\n\nI wrote it."


async def test_when_nobody_can_say_it_is_answered_directly(
    autojump_clock: Clock,
) -> None:
    cast = make_cast(RoutingConfig(classify=True, classifier="cheap"))
    cast.spare.is_down = ModelBusyError("down")
    assert isinstance(cast.spare, Planner)
    cast.spare.answer_ = Says(error=ModelBusyError("down"))
    assert await ask(autojump_clock, cast, "one") == ["anna: smart-1@work: one"]


async def test_a_slow_classification_is_not_waited_for(autojump_clock: Clock) -> None:
    routing = RoutingConfig(classify=True, classifier="cheap")
    cast = make_cast(routing, spare=Planner(PLAN, after=100))
    assert await ask(autojump_clock, cast, "one") == ["anna: smart-1@work: one"]
    assert 15 <= trio.current_time() < 16


async def test_a_turn_that_goes_on_after_a_restart_is_not_planned_again(
    autojump_clock: Clock,
) -> None:
    agents = {
        "anna": AgentConfig(model="smart", routing=ROUTING, delegates=("ben",)),
        "ben": AgentConfig(model="smart"),
    }
    cast = make_cast(ROUTING, PLAN, agents=agents)
    cast.work.faults += [
        Says("I read it.", after=1),
        Says("I looked.", calls=(call("nothing"),), after=1),
        Says("never", after=1000),
    ]
    async with open_company(autojump_clock, cast):
        cast.platform.write("do it")
        await until(lambda: len(cast.work.requests) == 3)
    cast.restart()
    cast.work.faults.append(Says("Done.", after=1))
    async with open_company(autojump_clock, cast):
        await at_rest(cast)
    answer = "I read it.\n\nI looked.\n\nDone."
    assert cast.platform.said() == [": ✓ Step 1 of 2: read it", f"anna: {answer}"]
    assert isinstance(cast.spare, Planner)
    assert len(cast.spare.questions) == 1
