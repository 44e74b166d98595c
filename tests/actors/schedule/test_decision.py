"""A decision is read against its schema or refused with a reason; never guessed."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.messages.inbound import ToolCall, TranscriptLine, Usage
from actors.schedule import decisions as decision
from actors.schedule.decisions import PlannerDecision, UnreadableDecision
from actors.turn import machine as turn
from actors.turn.limits import TokenAllowance

IDLE = '{"should_act": false, "reasoning": "", "plan": []}'


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    assert isinstance(decision.read(text), PlannerDecision | UnreadableDecision)


STEPS = st.lists(st.text(min_size=1, max_size=1000), max_size=20)


@given(st.booleans(), st.text(max_size=2000), STEPS, st.sampled_from(["", "```\n"]))
def test_what_a_model_was_asked_for_is_read(
    acts: bool,  # noqa: FBT001  Hypothesis gives it
    reasoning: str,
    plan: list[str],
    fence: str,
) -> None:
    told = {"should_act": acts, "reasoning": reasoning, "plan": plan}
    text = f"{fence}{msgspec.json.encode(told).decode()}\n{fence}"
    found = decision.read(text)
    if acts and not any(each.strip() for each in plan):
        assert isinstance(found, UnreadableDecision)
    else:
        assert found == PlannerDecision(acts, reasoning, tuple(plan))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it holds no JSON object"),
        ("} no {", "it holds no JSON object"),
        ('{"should_act": true}', "missing required field `reasoning`"),
        ('{"should_act": 1, "reasoning": ""}', "Expected `bool`, got `int`"),
        ('{"should_act": true, "reasoning": ""}', "`plan` has no steps"),
        ('{"should_act": true, "reasoning": "", "plan": [" "]}', "has no steps"),
        ('{"should_act": false, "reasoning": "x"', "it holds no JSON object"),
        ('{"a": {"b": 1}', "truncated"),
        (f'{{"should_act": false, "reasoning": "{"x" * 2001}"}}', "<= 2000"),
        ("{" + "[" * 5000 + "}", ""),
    ],
)
def test_what_is_wrong_is_told_to_the_model(text: str, why: str) -> None:
    found = decision.read(text)
    assert isinstance(found, UnreadableDecision)
    assert why.lower() in found.why.lower()
    assert found.why in decision.again(found)


def test_an_idle_decision_needs_no_plan() -> None:
    assert decision.read(IDLE) == PlannerDecision(should_act=False, reasoning="")


def test_the_planner_is_told_of_its_tools_and_the_schema() -> None:
    asked = decision.ask(("clock", "http_fetch"))
    assert "these tools: clock, http_fetch" in asked
    assert decision.SCHEMA in asked
    assert "in words alone" in decision.ask(())


def test_the_schema_fits_what_is_read() -> None:
    schema = msgspec.json.decode(decision.SCHEMA)
    assert set(schema["properties"]) == set(PlannerDecision.__struct_fields__)
    bounds = msgspec.json.schema(PlannerDecision)["$defs"]["PlannerDecision"][
        "properties"
    ]
    shown = schema["properties"]
    assert shown["plan"]["maxItems"] == bounds["plan"]["maxItems"]
    assert shown["reasoning"]["maxLength"] == bounds["reasoning"]["maxLength"]


@given(st.text(max_size=2000), STEPS.filter(lambda x: any(s.strip() for s in x)))
def test_a_log_entry_is_bounded(said: str, plan: list[str]) -> None:
    task = decision.carry_out(
        PlannerDecision(should_act=True, reasoning=said, plan=tuple(plan))
    )
    entry = decision.log_entry(task, said)
    assert entry.startswith("By myself: ")
    assert len(entry) <= decision.MOST_LOGGED + 20


# --- what a run may take ----------------------------------------------------------


@given(
    st.integers(1, 5000),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3000)), max_size=30),
)
def test_no_round_begins_that_is_expected_to_take_too_much(
    most: int, rounds: list[tuple[int, int]]
) -> None:
    allowance = TokenAllowance(most)
    for tokens, characters in rounds:
        if allowance.is_over:
            return
        allowance.take(Usage(tokens, 0))
        allowance.expect([TranscriptLine("tool", "x" * characters)])
        expected = tokens + characters // 4
        assert allowance.is_over == (allowance.taken + expected > most)
        assert allowance.is_last or allowance.taken + 2 * expected <= most


def test_without_a_limit_nothing_ends() -> None:
    allowance = TokenAllowance(0)
    allowance.take(Usage(10**9, 10**9))
    assert not allowance.is_over
    assert not allowance.is_last


def test_the_last_round_has_no_tools() -> None:
    run = turn.TurnMachine(("look",), 10, tokens=100)
    (asks,) = run.on(turn.TurnStarted())
    assert asks == turn.AskModel(with_tools=True)
    call = ToolCall("1", "look", b"{}")
    run.on(turn.ModelReplied("", (call,), Usage(30, 5)))
    (asks,) = run.on(turn.ToolReturned("1", "nothing"))
    assert asks == turn.AskModel(with_tools=False)


def test_a_run_that_has_used_up_all_fails_with_a_reason() -> None:
    run = turn.TurnMachine(("look",), 10, tokens=100)
    run.on(turn.TurnStarted())
    call = ToolCall("1", "look", b"{}")
    run.on(turn.ModelReplied("", (call,), Usage(30, 5)))
    (failed,) = run.on(turn.ToolReturned("1", "word " * 100))
    assert isinstance(failed, turn.Fail)
    assert failed.kind == "allowance"
    assert "35 of 100 tokens" in failed.text
    assert run.is_over
