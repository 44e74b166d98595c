"""Proves that words put into a turn stand between its rounds, then and when resumed."""

from __future__ import annotations

from typing import cast

from hypothesis import given, strategies as st

from actors.agents.persona import Persona
from actors.config.agents import AgentConfig
from actors.messages.inbound import ToolCall, TranscriptLine
from actors.protocol import StartTurn
from actors.turn.machine import (
    AskModel,
    Finish,
    MessageInjected,
    ModelReplied,
    Step,
    ToolReturned,
    TurnMachine,
    TurnStarted,
    resume,
    tools_run,
)
from actors.turn.steering import Steering
from runtime.actor.ref import ActorRef
from tests.fakes.actors.neighbours import words

LOOK = ToolCall("c1", "look", b"{}")
WORDS = MessageInjected("m2", "p2", "in Oslo", "zoe")


def looking() -> TurnMachine:
    turn = TurnMachine(("look",), 5)
    turn.on(TurnStarted())
    turn.on(ModelReplied("", (LOOK,)))
    return turn


def test_words_stand_behind_the_results_and_before_the_next_round() -> None:
    turn = looking()
    assert turn.on(ToolReturned("c1", "found")) == [AskModel(with_tools=True)]
    assert turn.on(WORDS) == []
    assert [line.role for line in turn.lines] == ["assistant", "tool", "user"]
    assert turn.lines[-1] == TranscriptLine("user", "in Oslo", name="zoe")
    assert turn.on(ModelReplied("done")) == [Finish("done")]


def test_no_words_come_between_a_call_and_its_result() -> None:
    turn = looking()
    assert turn.on(WORDS) == []
    turn.on(ToolReturned("c1", "found"))
    assert [line.role for line in turn.lines] == ["assistant", "tool"]


def test_a_turn_that_is_over_takes_no_words() -> None:
    turn = looking()
    turn.on(ToolReturned("c1", "found"))
    turn.on(ModelReplied("done"))
    turn.on(WORDS)
    assert turn.lines[-1].role == "assistant"


@given(places=st.lists(st.integers(0, 3), max_size=4), cut=st.integers(0, 12))
def test_resumed_at_any_step_the_words_are_in_their_place(
    places: list[int], cut: int
) -> None:
    steps: list[Step] = []
    for number in range(3):
        steps += [
            MessageInjected(f"m{number}{n}", "p", f"w{number}{n}")
            for n in range(places.count(number))
        ]
        call = ToolCall(f"c{number}", "look", b"%d" % number)
        steps += [ModelReplied("", (call,)), ToolReturned(call.id, f"r{number}")]
    whole = TurnMachine(("look",), 9)
    whole.on(TurnStarted())
    for step in steps:
        whole.on(step)
    again = TurnMachine(("look",), 9)
    resumed = resume(again, steps[:cut])
    assert resumed.steps == steps[:cut]
    for step in steps[cut:]:
        again.on(step)
    assert again.lines == whole.lines


def test_words_use_no_tool() -> None:
    steps: list[Step] = [
        WORDS,
        ModelReplied("", (LOOK,)),
        ToolReturned("c1", "x"),
        WORDS,
    ]
    assert tools_run(steps) == (frozenset({"look"}),)


async def test_what_came_to_an_earlier_attempt_is_put_in_whole_and_once() -> None:
    came = words("in Oslo", 2, others=1)
    start = StartTurn(
        turn_id="t1",
        generation=1,
        session=cast("ActorRef", None),
        inbound=words(),
        history=(),
        injected=(words("gone by", 3), came),
    )
    steering = Steering(start, Persona("anna", AgentConfig()), joined=["m3"])
    (read,) = await steering.fetch(is_first=True)
    assert (read.id, read.platform_id, read.name) == (came.id, came.platform_id, "zoe")
    assert (read.text.endswith("in Oslo"), read.others) == (True, 1)
