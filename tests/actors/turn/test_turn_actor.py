"""Proves that a turn asks, runs tools, hands on and always ends with one word of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from actors import names
from actors.agents.persona import Persona
from actors.config.limits import LimitsConfig
from actors.errors import ModelBusyError
from actors.messages.inbound import ModelRequest, ToolCall, TranscriptLine, Usage
from actors.messages.usage import Spent
from actors.protocol import (
    Failed,
    Finished,
    RunTurn,
    StartTurn,
    TurnEnded,
    TurnStreamed,
)
from actors.rules.markers.actions import Delegation
from actors.turn.turn import Turn
from runtime.testing import Probe
from tests.fakes.actors.neighbours import (
    anna,
    make_services,
    of_kind,
    open_accounts,
    probe,
    words,
)
from tests.fakes.company.company import FakeModel, Says, call, heard
from tests.support.puppet import virtual

Clock = trio.testing.MockClock
Talk = Callable[[ModelRequest], str | Says]


SPENT_ONCE = Spent(
    provider="scripted", model="fake-1", account="scripted", usage=Usage(3, 2)
)


class Desk:
    """A turn, its session and its agent."""

    def __init__(self, session: Probe, agent: Probe) -> None:
        self.session = session
        self.agent = agent

    async def end(self) -> Finished | Failed:
        ended: TurnEnded = await self.session.wait_for(TurnEnded, within=1000)
        assert await self.agent.wait_for(TurnEnded) == ended
        return ended.outcome

    def spoken(self) -> str:
        return "".join(each.text for each in of_kind(self.session, TurnStreamed))


@asynccontextmanager
async def open_turn(
    clock: Clock,
    persona: Persona,
    model: FakeModel,
    history: tuple[TranscriptLine, ...] = (),
    turn_timeout: float = 300,
) -> AsyncGenerator[Desk]:
    limits = LimitsConfig(turn_timeout=turn_timeout)
    services = make_services(limits=limits)
    async with virtual(clock) as system:
        open_accounts(system, services, model)
        desk = Desk(probe(system, "session"), probe(system, names.agent("anna")))
        turn = system.spawn(Turn(persona, services))
        turn.tell(
            RunTurn(
                StartTurn(
                    turn_id="t1",
                    generation=1,
                    session=desk.session.actor_ref,
                    inbound=words("what?"),
                    history=history,
                )
            )
        )
        yield desk
        await trio.testing.wait_all_tasks_blocked()
        assert not turn.is_alive()


async def run(
    clock: Clock, talk: Talk, **config: Any
) -> tuple[Finished | Failed, FakeModel, Desk]:
    model = FakeModel(talk)
    async with open_turn(clock, anna(**config), model) as desk:
        outcome = await desk.end()
    return outcome, model, desk


async def test_the_model_is_told_who_it_is_and_what_was_said(
    autojump_clock: Clock,
) -> None:
    model = FakeModel(lambda _: "yes")
    past = (
        TranscriptLine("user", "before", name="zoe"),
        TranscriptLine("assistant", "well"),
    )
    persona = anna(prompt="Be Anna.", temperature=0.5, max_tokens=9)
    async with open_turn(autojump_clock, persona, model, past) as desk:
        assert await desk.end() == Finished(
            "yes", usage=Usage(3, 2), spent=(SPENT_ONCE,)
        )
    (request,) = model.requests
    assert request.lines == (*past, TranscriptLine("user", "what?", name="zoe"))
    assert request.system.startswith("Be Anna.\n\n")
    assert (request.model, request.agent) == ("fake-1", "anna")
    assert (request.temperature, request.max_tokens) == (0.5, 9)
    assert request.tools == ()


async def test_only_as_much_of_the_past_as_the_settings_say(
    autojump_clock: Clock,
) -> None:
    model = FakeModel(lambda _: "yes")
    past = tuple(
        TranscriptLine(role, f"{role}{number}")
        for number in range(9)
        for role in ("user", "assistant")
    )
    async with open_turn(autojump_clock, anna(max_history=4), model, past) as desk:
        await desk.end()
    assert [line.text for line in model.requests[0].lines] == [
        "user7",
        "assistant7",
        "user8",
        "assistant8",
        "what?",
    ]


async def test_all_that_was_spoken_is_passed_on_before_the_end(
    autojump_clock: Clock,
) -> None:
    says = Says("one two", pieces=("one", "", " two"))
    _, _, desk = await run(autojump_clock, lambda _: says)
    assert desk.spoken() == "one two"
    assert isinstance(desk.session.received[-1], TurnEnded)


async def test_rounds_are_spoken_as_they_will_be_read(autojump_clock: Clock) -> None:
    def talk(request: ModelRequest) -> str | Says:
        if request.lines[-1].role == "tool":
            return "Done."
        return Says("Wait.", calls=(call("delegate", agent="ben", task="x"),))

    outcome, _, desk = await run(autojump_clock, talk, delegates=("ben",))
    handed = (Delegation("ben", "x"),)
    twice = msgspec.structs.replace(SPENT_ONCE, usage=Usage(6, 4), calls=2)
    assert outcome == Finished(
        "Wait.\n\nDone.",
        handed,
        Usage(6, 4),
        rounds=2,
        spent=(twice,),
        used=("delegate",),
    )
    assert desk.spoken() == "Wait.\n\nDone."


@pytest.mark.parametrize(
    ("bad", "words_"),
    [
        (ToolCall("c1", "delegate", b"{}"), "bad arguments"),
        (call("delegate", agent="ben", task=" "), "say what is to be done"),
        (call("delegate", agent="carl", task="x"), "anna may not ask carl"),
        (call("nothing"), "there is no tool 'nothing'"),
    ],
)
async def test_what_cannot_be_handed_on_is_told_to_the_model(
    bad: ToolCall, words_: str, autojump_clock: Clock
) -> None:
    def talk(request: ModelRequest) -> str | Says:
        return (
            heard(request) if request.lines[-1].role == "tool" else Says(calls=(bad,))
        )

    outcome, _, _ = await run(autojump_clock, talk, delegates=("ben",))
    assert isinstance(outcome, Finished)
    assert outcome.text.startswith("Error: ")
    assert words_ in outcome.text
    assert outcome.delegations == ()


async def test_a_busy_model_that_names_no_time_is_asked_after_longer_and_longer(
    autojump_clock: Clock,
) -> None:
    outcome, model, _ = await run(
        autojump_clock, lambda _: Says(error=ModelBusyError("busy"))
    )
    assert isinstance(outcome, Failed)
    assert len(model.requests) == 3
    assert 1.5 <= trio.current_time() < 2


async def test_a_turn_has_so_much_time_and_no_more(autojump_clock: Clock) -> None:
    says = Says("half whole", pieces=("half ", "whole"), pause=6)
    model = FakeModel(lambda _: says)
    async with open_turn(autojump_clock, anna(), model, turn_timeout=5) as desk:
        outcome = await desk.end()
        assert 5 <= trio.current_time() < 6
    assert isinstance(outcome, Failed)
    assert outcome.reason == "timeout"
    assert desk.spoken() == "half "
    assert len(model.cancelled) == 1


async def test_a_turn_takes_nothing_but_its_question(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        turn = system.spawn(Turn(anna(), make_services()))
        turn.tell("nonsense")
        await trio.testing.wait_all_tasks_blocked()
        assert not turn.is_alive()


@pytest.mark.parametrize(
    ("config", "seconds"),
    [
        ({}, 300),
        ({"tools": ("mcp:files/*",)}, 1200),
        ({"skills": ("pdf",)}, 1200),
        ({"tools": ("mcp:files/*",), "max_tool_rounds": 0}, 300),
    ],
)
def test_tools_that_come_and_go_take_time_too(
    config: dict[str, Any], seconds: float
) -> None:
    assert anna(**config).turn_seconds(LimitsConfig()) == seconds


@pytest.mark.parametrize(("longest", "seconds"), [(3600.0, 3660), (10.0, 300)])
def test_a_turn_of_a_program_lasts_as_long_as_the_program_may(
    longest: float, seconds: float
) -> None:
    persona = replace(anna(model="claude"), program_seconds={"claude": longest})
    assert persona.turn_seconds(LimitsConfig()) == seconds
    assert persona.planning().turn_seconds(LimitsConfig()) == seconds
