"""Proves that a turn denies calls and ends loops alike in whatever order they come."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.messages.inbound import ToolCall, TranscriptLine
from actors.turn.limits import LoopLimits
from actors.turn.machine import (
    AskModel,
    CallTool,
    Effect,
    ModelReplied,
    Step,
    ToolReturned,
    TurnMachine,
    TurnStarted,
    resume,
)

TOOLS = ("clock", "calculate")


def call(call_id: str = "1", name: str = "clock") -> ToolCall:
    return ToolCall(call_id, name, b"{}")


def test_a_denied_tool_is_answered_with_the_reason() -> None:
    turn = TurnMachine(("clock",), 5, {"shell": "this agent is read-only"})
    turn.on(TurnStarted())
    turn.on(ModelReplied("", (call("a", "shell"),)))
    assert turn.lines[1].text == "Error: shell was not run: this agent is read-only."


@given(
    st.permutations(["a", "b", "c", "d"]), st.lists(st.sampled_from("xy"), min_size=4)
)
def test_in_whatever_order_results_come_the_model_reads_the_same(
    order: list[str], texts: list[str]
) -> None:
    results = dict(zip("abcd", texts, strict=False))
    calls = tuple(call(each) for each in "abcd")

    def played(ids: list[str]) -> tuple[TranscriptLine, ...]:
        turn = TurnMachine(TOOLS, 5)
        turn.on(TurnStarted())
        turn.on(ModelReplied("", calls))
        for each in ids:
            turn.on(ToolReturned(each, results[each]))
        return turn.lines

    assert played(order) == played(["a", "b", "c", "d"])


def go_round(turn: TurnMachine, effects: list[Effect]) -> list[Step]:
    """Make the same call again and again until the model has to answer in words."""
    steps: list[Step] = []
    while effects != [AskModel(with_tools=False)]:
        match effects[0]:
            case AskModel():
                step: Step = ModelReplied("", (call(f"c{turn.rounds}"),))
            case CallTool(call=made):
                step = ToolReturned(made.id, "x")
            case other:
                raise AssertionError(other)
        steps.append(step)
        effects = turn.on(step)
    return steps


def test_a_loop_ends_and_resumed_anywhere_it_ends_alike() -> None:
    whole = TurnMachine(TOOLS, 100)
    steps = go_round(whole, whole.on(TurnStarted()))
    assert whole.loop_steps == ["warned", "warned", "blocked", "blocked", "broken"]
    assert whole.rounds == LoopLimits().break_after + 1
    for cut in range(len(steps)):
        again = TurnMachine(TOOLS, 100)
        go_round(again, resume(again, steps[:cut]).open_effects)
        assert again.lines == whole.lines
        assert again.loop_steps == whole.loop_steps
