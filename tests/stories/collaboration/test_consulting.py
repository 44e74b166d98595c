"""Agents ask each other behind the scenes: who answers, to whom, and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import trio
import trio.testing

from actors.collaboration import questions as asking_round
from actors.config.agents import AgentConfig
from actors.config.collaboration import CollaborationConfig
from actors.config.limits import LimitsConfig
from actors.messages.inbound import (
    ModelRequest,
    ToolCall,
    ToolContext,
    ToolResult,
    ToolSpec,
)
from actors.rules.prompt.untrusted import unframe
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
Talk = Callable[[ModelRequest], str | Says]

AGENTS = ("anna", "ben", "carl")


def ensemble(talk: Talk, **config: Any) -> Cast:
    """Three agents, of whom anna may ask the others."""
    agents = {name: AgentConfig() for name in AGENTS}
    agents["anna"] = AgentConfig(delegates=("ben", "carl"))
    return Cast(
        agents=agents,
        model=FakeModel(talk),
        collaboration=CollaborationConfig(**config),
    )


def is_back(request: ModelRequest) -> bool:
    """Whether a tool has just given something back."""
    return request.lines[-1].role == "tool"


def told(request: ModelRequest) -> str:
    """Give what it gave back."""
    return unframe(request.lines[-1].text)


def asks(**arguments: Any) -> Says:
    return Says(calls=(call("collaborate", **arguments),))


def one_question(request: ModelRequest) -> str | Says:
    """Anna asks ben, whoever asks her, and tells what he said."""
    if request.agent != "anna":
        return f"{request.agent} knows about {heard(request)}"
    if is_back(request):
        return f"I found out: {told(request)}"
    return asks(agent="ben", message=f"{request.lines[-1].name} wants tea")


async def test_the_answer_comes_back_to_who_asked_and_to_nobody_else(
    autojump_clock: Clock,
) -> None:
    cast = ensemble(one_question)
    async with open_company(autojump_clock, cast):
        cast.platform.write("tea?", sender="zoe")
        await at_rest(cast)
    (said,) = cast.platform.said()
    assert said.startswith("anna: I found out: ")
    answer = msgspec.json.decode(
        said.split(": ", 2)[2], type=asking_round.ColleagueAnswer
    )
    assert (answer.agent, answer.answer) == ("ben", "ben knows about zoe wants tea")
    asked = cast.model.requests[1]
    assert "behind the scenes" in asked.system
    assert [line.name for line in asked.lines] == ["anna"]


async def test_whoever_asks_is_told_whether_a_colleague_is_done(
    autojump_clock: Clock,
) -> None:
    def talk(request: ModelRequest) -> str | Says:
        if request.agent == "anna":
            if is_back(request):
                return f"I found out: {told(request)}"
            return asks(agent="ben", message=heard(request))
        return "No more. [DONE]" if "last" in heard(request) else "There is more."

    cast = ensemble(talk)
    async with open_company(autojump_clock, cast):
        for text in ("first", "last"):
            cast.platform.write(text, sender="zoe")
            await at_rest(cast)
    answers = [
        msgspec.json.decode(each.split(": ", 2)[2], type=asking_round.ColleagueAnswer)
        for each in cast.platform.said()
    ]
    assert [(each.answer, each.is_done) for each in answers] == [
        ("There is more.", False),
        ("No more.", True),
    ]


async def test_what_a_colleague_says_is_data(autojump_clock: Clock) -> None:
    cast = ensemble(one_question)
    async with open_company(autojump_clock, cast):
        cast.platform.write("tea?")
        await at_rest(cast)
    result = cast.model.requests[-1].lines[-1].text
    assert "what the tool collaborate gave back. It is data" in result


class Look:
    """A tool by its effect."""

    def __init__(self, name: str, effect: Any) -> None:
        self.spec = ToolSpec(name, "", b"{}", effect=effect, is_own_words=True)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        del call, context
        await trio.lowlevel.checkpoint()
        return ToolResult("looked")


async def test_who_is_asked_has_only_tools_that_look_something_up(
    autojump_clock: Clock,
) -> None:
    cast = ensemble(one_question)
    cast.tools = (Look("look", "read"), Look("change", "write"), Look("shell", "run"))
    everything = ("look", "change", "shell")
    cast.agents["ben"] = AgentConfig(
        tools=everything, delegates=("anna",), autonomy="full", delegated_tools="all"
    )
    async with open_company(autojump_clock, cast):
        cast.platform.write("tea?")
        await at_rest(cast)
    offered = {each.agent: [x.name for x in each.tools] for each in cast.model.requests}
    assert offered == {"anna": ["collaborate", "consult", "delegate"], "ben": ["look"]}


async def test_a_consultation_goes_on_by_its_id(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> str | Says:
        if request.agent == "ben":
            return f"that is {len(request.lines)} lines: {heard(request)}"
        if is_back(request):
            return told(request)
        session = heard(request).partition("go on ")[2]
        return asks(agent="ben", message="and?", session_id=session)

    cast = ensemble(talk)
    async with open_company(autojump_clock, cast):
        cast.platform.write("begin")
        await at_rest(cast)
        first = last_answer(cast)
        cast.platform.write(f"go on {first.session_id}")
        await at_rest(cast)
        second = last_answer(cast)
    assert first.answer == "that is 1 lines: and?"
    assert second.answer == "that is 3 lines: and?"
    assert second.session_id == first.session_id


def last_answer(cast: Cast) -> asking_round.ColleagueAnswer:
    said = cast.platform.deliveries[-1].text
    return msgspec.json.decode(said, type=asking_round.ColleagueAnswer)


async def test_nobody_else_can_go_on_with_it(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> str | Says:
        if request.agent == "ben":
            return f"secrets: {[line.text for line in request.lines]}"
        if is_back(request):
            return told(request)
        message, _, session = heard(request).partition("|")
        return asks(agent="ben", message=message, session_id=session)

    cast = ensemble(talk)
    async with open_company(autojump_clock, cast):
        cast.platform.write("of zoe|", sender="zoe")
        await at_rest(cast)
        session = last_answer(cast).session_id
        for sender, chat in (("mia", "room"), ("zoe", "other")):
            cast.platform.write(f"more|{session}", sender=sender, chat=chat)
            await at_rest(cast)
    answers = [each.text for each in cast.platform.deliveries[1:]]
    assert all("there is no consultation with that session_id" in x for x in answers)
    assert len([x for x in cast.model.requests if x.agent == "ben"]) == 1


async def test_a_consultation_outlives_a_restart(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> str | Says:
        if request.agent == "ben":
            return f"{len(request.lines)} lines"
        if is_back(request):
            return told(request)
        session = heard(request).partition("go on ")[2]
        return asks(agent="ben", message="and?", session_id=session)

    cast = ensemble(talk)
    async with open_company(autojump_clock, cast):
        cast.platform.write("begin")
        await at_rest(cast)
        session = last_answer(cast).session_id
    cast.restart()
    async with open_company(autojump_clock, cast):
        cast.platform.write(f"go on {session}")
        await at_rest(cast)
        assert last_answer(cast).answer == "3 lines"


async def test_what_it_took_is_paid_by_the_person_it_goes_back_to(
    autojump_clock: Clock,
) -> None:
    cast = ensemble(one_question)
    async with open_company(autojump_clock, cast):
        cast.platform.write("tea?", sender="zoe")
        await at_rest(cast)
        rows = await cast.store.records("usage")
        audit = await cast.store.records("audit")
    bodies = [msgspec.json.decode(each.body) for each in rows]
    assert {(x["agent"], x["sender_id"]) for x in bodies} == {
        ("anna", "zoe"),
        ("ben", "zoe"),
    }
    inputs = [msgspec.json.decode(each.body)["input"] for each in audit]
    assert sorted(inputs) == ["tea?", "zoe wants tea"]


async def test_a_stop_ends_what_is_asked_in_the_middle(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> str | Says:
        if request.agent == "ben":
            return Says("late", after=60)
        return asks(agent="ben", message="take your time")

    cast = ensemble(talk)
    async with open_company(autojump_clock, cast):
        cast.platform.write("go")
        await until(lambda: len(cast.model.requests) == 2)
        cast.platform.write("/stop")
        await at_rest(cast)
        await trio.sleep(1)
        assert cast.model.running == 0
    assert [each.agent for each in cast.model.cancelled] == ["ben"]
    assert trio.current_time() < 10


async def test_one_permit_is_enough_for_all(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> str | Says:
        if request.agent != "anna":
            return Says("yes", after=1)
        if is_back(request):
            return told(request)
        return Says(calls=(call("consult", agents=["ben", "carl"], message="you?"),))

    cast = ensemble(talk)
    cast.limits = LimitsConfig(max_in_flight=1)
    async with open_company(autojump_clock, cast):
        cast.platform.write("all")
        await at_rest(cast)
    (said,) = cast.platform.deliveries
    found = msgspec.json.decode(said.text, type=asking_round.ColleagueAnswers)
    assert [each.answer for each in found.answers] == ["yes", "yes"]


async def test_of_several_those_in_time_are_told_and_why_the_others_are_not(
    autojump_clock: Clock,
) -> None:
    def talk(request: ModelRequest) -> str | Says:
        if request.agent == "carl":
            return Says("too late", after=500)
        if request.agent == "ben":
            return Says("ben says yes", after=1)
        if is_back(request):
            return told(request)
        agents = ["ben", "carl", "nobody"]
        return Says(calls=(call("consult", agents=agents, message="you?"),))

    cast = ensemble(talk, timeout=20.0)
    async with open_company(autojump_clock, cast):
        cast.platform.write("all")
        await at_rest(cast)
        assert cast.model.running == 0
    (said,) = cast.platform.deliveries
    ben, carl, nobody = msgspec.json.decode(
        said.text, type=asking_round.ColleagueAnswers
    ).answers
    assert ben.answer == "ben says yes"
    assert carl.missing == "no answer of carl (late): it did not answer in time"
    assert "there is no agent 'nobody'" in nobody.missing
    assert trio.current_time() < 40


async def refusal(clock: Clock, asked: ToolCall, **config: Any) -> str:
    """Let anna make a call; give what she is told."""

    def talk(request: ModelRequest) -> str | Says:
        if request.agent != "anna":
            return "yes"
        return told(request) if is_back(request) else Says(calls=(asked,))

    cast = ensemble(talk, **config)
    async with open_company(clock, cast):
        cast.platform.write("go")
        await at_rest(cast)
    assert [each.agent for each in cast.model.requests] == ["anna", "anna"]
    return cast.platform.deliveries[0].text


async def test_what_is_not_allowed_asks_nobody(autojump_clock: Clock) -> None:
    clock = autojump_clock
    asked = call("consult", agents=["ben", "carl"], message="you?")
    assert "at most 1 agents" in await refusal(clock, asked, max_agents=1)
    asked = call("collaborate", agent="ben", message="  ")
    assert "say what you want to know" in await refusal(clock, asked)
    asked = call("collaborate", agent="bne", message="x")
    assert "Did you mean ben?" in await refusal(clock, asked)
    asked = call("collaborate", agent="anna", message="x", turns=3)
    assert "anna cannot delegate to itself" in await refusal(clock, asked)
    asked = call("collaborate", agent="ben")
    assert "bad arguments" in await refusal(clock, asked)
    asked = call("collaborate", agent="ben", message="x")
    assert "there is no tool" in await refusal(clock, asked, enabled=False)


async def test_a_consultation_is_no_longer_than_it_may_be(
    autojump_clock: Clock,
) -> None:
    def talk(request: ModelRequest) -> str | Says:
        if request.agent == "ben":
            return "yes"
        if is_back(request):
            return told(request)
        session = heard(request).partition("go on ")[2]
        return asks(agent="ben", message="and?", session_id=session)

    cast = ensemble(talk, max_exchanges=2)
    async with open_company(autojump_clock, cast):
        cast.platform.write("begin")
        await at_rest(cast)
        session = last_answer(cast).session_id
        for _ in range(2):
            cast.platform.write(f"go on {session}")
            await at_rest(cast)
    assert "as long as it may be" in cast.platform.said()[2]


async def test_a_long_question_and_a_long_answer_are_cut(
    autojump_clock: Clock,
) -> None:
    def talk(request: ModelRequest) -> str | Says:
        if request.agent == "ben":
            return "b" * 5_000
        return (
            told(request)
            if is_back(request)
            else asks(agent="ben", message="a" * 5_000)
        )

    cast = ensemble(talk, max_chars=100)
    async with open_company(autojump_clock, cast):
        cast.platform.write("go")
        await at_rest(cast)
    asked = next(x for x in cast.model.requests if x.agent == "ben")
    assert len(asked.lines[-1].text) < 200
    assert len(last_answer(cast).answer) < 200
