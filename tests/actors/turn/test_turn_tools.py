"""Proves that a turn whose tools come and go forgets nothing of what was done."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.messages.inbound import ToolCall
from actors.turn.machine import (
    AskModel,
    CallTool,
    ModelReplied,
    Step,
    ToolReturned,
    TurnMachine,
    TurnStarted,
    resume,
    tools_run,
)

ids = st.sampled_from(["", "1", "2", "call"])
names = st.sampled_from(["clock", "files__a", "files__b", "gone"])
calls = st.builds(ToolCall, ids, names, st.just(b"{}"))
rounds = st.lists(st.lists(calls, min_size=1, max_size=4), max_size=5)


def play(offered: tuple[str, ...], asked: list[list[ToolCall]]) -> list[Step]:
    """Run a turn as it is run with these tools; give what would be recorded."""
    turn = TurnMachine(offered, 20)
    effects = turn.on(TurnStarted())
    steps: list[Step] = []
    for round_ in asked:
        reply = ModelReplied("", tuple(round_))
        effects = turn.on(reply)
        if turn.is_over:
            break  # the last answer is stored with the reply, not as a step
        steps.append(reply)
        for effect in effects:
            if isinstance(effect, CallTool):
                returned = ToolReturned(effect.call.id, "done")
                steps.append(returned)
                turn.on(returned)
    return steps


@given(asked=rounds, offered=st.sets(names), now=st.sets(names))
def test_whatever_tools_there_are_now_every_result_fits(
    asked: list[list[ToolCall]], offered: set[str], now: set[str]
) -> None:
    steps = play(tuple(offered), asked)
    turn = TurnMachine((), 20)
    turn.offer(tuple(now & offered))
    resumed = resume(turn, steps)
    assert resumed.steps == steps
    assert not any(isinstance(each, CallTool) for each in resumed.open_effects)


@given(asked=rounds, offered=st.sets(names))
def test_the_tools_that_were_run_are_named_by_round(
    asked: list[list[ToolCall]], offered: set[str]
) -> None:
    named = tools_run(play(tuple(offered), asked))
    for ran, round_ in zip(named, asked, strict=False):
        assert ran <= {call.name for call in round_} & offered


def test_tools_may_change_between_rounds() -> None:
    turn = TurnMachine((), 5)
    assert turn.on(TurnStarted()) == [AskModel(with_tools=False)]
    turn.offer(("clock",))
    call = ToolCall("1", "clock", b"{}")
    assert turn.on(ModelReplied("", (call,))) == [CallTool(call)]
