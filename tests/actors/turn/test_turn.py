"""Proves that a turn always ends, and answers every call before it asks again."""

from __future__ import annotations

from itertools import cycle

import pytest
from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from actors.journal.answers import ACKNOWLEDGEMENT
from actors.messages.inbound import ToolCall, TranscriptLine
from actors.turn.limits import LoopLimits
from actors.turn.machine import (
    MAX_CALLS,
    AskModel,
    CallTool,
    Effect,
    Event,
    Fail,
    Finish,
    ModelFailed,
    ModelReplied,
    Step,
    ToolReturned,
    TurnMachine,
    TurnStarted,
    resume,
)

TOOLS = ("clock", "calculate")
NO_LOOPS = LoopLimits(99, 99, 99)


def call(call_id: str = "1", name: str = "clock") -> ToolCall:
    return ToolCall(call_id, name, b"{}")


def started(max_rounds: int = 5, tools: tuple[str, ...] = TOOLS) -> TurnMachine:
    turn = TurnMachine(tools, max_rounds, loops=NO_LOOPS)
    turn.on(TurnStarted())
    return turn


def called(effects: list[Effect]) -> list[str]:
    return [effect.call.id for effect in effects if isinstance(effect, CallTool)]


def test_words_finish_the_turn() -> None:
    turn = TurnMachine(TOOLS, 5)
    assert turn.on(TurnStarted()) == [AskModel(with_tools=True)]
    assert turn.on(ModelReplied("Hello.")) == [Finish("Hello.")]
    assert turn.is_over
    assert turn.lines == (TranscriptLine("assistant", "Hello."),)


def test_each_step_of_a_plan_has_its_own_rounds_with_tools() -> None:
    turn = started(max_rounds=2)
    plan = ("look", "tell")
    calls = (call("a"),)
    assert turn.on(ModelReplied("", calls, plan=plan)) == [CallTool(calls[0])]
    assert turn.on(ToolReturned("a", "84")) == [AskModel(with_tools=False)]
    assert turn.on(ModelReplied("I looked.")) == [AskModel(with_tools=True)]
    assert turn.steps_done == 1
    again = (call("b"),)
    assert turn.on(ModelReplied("", again)) == [CallTool(again[0])]
    assert turn.on(ToolReturned("b", "85")) == [AskModel(with_tools=False)]
    assert turn.on(ModelReplied("Told.")) == [Finish("Told.")]
    assert [line.role for line in turn.lines] == [
        *("user", "assistant", "tool", "assistant"),
        *("user", "assistant", "tool", "assistant"),
    ]
    assert "step 2 only" in turn.lines[4].text


def test_a_step_without_words_is_not_shown_to_the_model() -> None:
    turn = started()
    plan = ("look", "tell")
    assert turn.on(ModelReplied("", plan=plan)) == [AskModel(with_tools=True)]
    assert [line.role for line in turn.lines] == ["user", "user"]
    assert turn.on(ModelReplied("Told.")) == [Finish("Told.")]


def test_results_come_in_any_order_and_stand_in_the_order_of_the_calls() -> None:
    turn = started()
    calls = (call("a"), call("b", "calculate"))
    assert turn.on(ModelReplied("Let me see.", calls)) == [
        CallTool(calls[0]),
        CallTool(calls[1]),
    ]
    assert turn.on(ToolReturned("b", "no", is_error=True)) == []
    assert not turn.lines
    assert turn.on(ToolReturned("a", "noon")) == [AskModel(with_tools=True)]
    assert turn.lines == (
        TranscriptLine("assistant", "Let me see.", tool_calls=calls),
        TranscriptLine("tool", "noon", tool_call_id="a"),
        TranscriptLine("tool", "Error: no", tool_call_id="b"),
    )


def test_the_last_round_has_no_tools() -> None:
    turn = started(max_rounds=2)
    turn.on(ModelReplied("", (call(),)))
    assert turn.on(ToolReturned("1", "noon")) == [AskModel(with_tools=False)]
    assert turn.on(ModelReplied("It is noon.", (call(),))) == [Finish("It is noon.")]
    assert turn.rounds == 2


def test_tools_instead_of_words_in_the_last_round_fail_the_turn() -> None:
    turn = started(max_rounds=1)
    [effect] = turn.on(ModelReplied(" ", (call(),)))
    assert isinstance(effect, Fail)
    assert "after 1 rounds" in effect.text


def test_an_agent_without_tools_is_not_offered_any() -> None:
    assert TurnMachine((), 5).on(TurnStarted()) == [AskModel(with_tools=False)]


@pytest.mark.parametrize("text", ["", " \n ", "<tool_call>{}</tool_call>"])
def test_an_empty_answer_becomes_a_check_mark(text: str) -> None:
    turn = started()
    assert turn.on(ModelReplied(text)) == [Finish(ACKNOWLEDGEMENT)]
    assert turn.lines == (TranscriptLine("assistant", ACKNOWLEDGEMENT),)


def test_a_lone_delegation_is_an_answer() -> None:
    text = "[DELEGATE:ben]do[/DELEGATE]"
    assert started().on(ModelReplied(text)) == [Finish(text)]


def test_an_unknown_tool_is_answered_without_running() -> None:
    turn = started()
    effects = turn.on(ModelReplied("", (call("a", "clok"),)))
    assert effects == [AskModel(with_tools=True)]
    assert turn.lines[1].text == (
        "Error: there is no tool 'clok'. Did you mean clock? Tools: clock, calculate."
    )


def test_a_call_without_any_tools_is_told_so() -> None:
    turn = started(tools=())
    turn.on(ModelReplied("", (call(),)))
    assert turn.lines[1].text.endswith("Tools: none.")


def test_known_tools_run_beside_unknown_ones() -> None:
    turn = started()
    effects = turn.on(ModelReplied("", (call("a", "x"), call("b"))))
    assert effects == [CallTool(call("b"))]
    assert turn.on(ToolReturned("a", "made up")) == []
    assert turn.on(ToolReturned("b", "noon")) == [AskModel(with_tools=True)]


def test_ids_are_made_unique_in_the_whole_turn() -> None:
    turn = started()
    first = called(turn.on(ModelReplied("", (call("a"), call("a"), call("")))))
    assert first == ["a", "a-2", "call-3"]
    for each in first:
        turn.on(ToolReturned(each, "x"))
    again = called(turn.on(ModelReplied("", (call("a-5"), call("a"), call("a")))))
    assert again == ["a-5", "a-6", "a-7"]


def test_a_repaired_id_avoids_one_that_was_given() -> None:
    calls = (call("a"), call("a-3"), call("a"))
    assert called(started().on(ModelReplied("", calls))) == ["a", "a-3", "a-4"]


def test_more_calls_than_allowed_are_answered_without_running() -> None:
    turn = started()
    calls = tuple(call(str(number)) for number in range(MAX_CALLS + 3))
    ids = called(turn.on(ModelReplied("", calls)))
    assert len(ids) == MAX_CALLS
    for each in ids:
        turn.on(ToolReturned(each, "ok"))
    assert turn.lines[-1].text.startswith("Error: not run")


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (ModelFailed("busy", "no net"), "The model cannot answer now: no net"),
        (ModelFailed("refused", "key"), "The model refused to answer: key"),
    ],
)
def test_a_model_that_fails_ends_the_turn(failure: ModelFailed, text: str) -> None:
    turn = started()
    assert turn.on(failure) == [Fail(text, failure.kind)]
    assert turn.is_over


LATE: list[Event] = [
    TurnStarted(),
    ModelReplied("late"),
    ModelFailed("busy", "late"),
    ToolReturned("1", "late"),
]


@pytest.mark.parametrize("event", LATE, ids=repr)
def test_what_comes_after_the_end_is_ignored(event: Event) -> None:
    turn = started()
    turn.on(ModelReplied("Done."))
    assert turn.on(event) == []
    assert turn.lines == (TranscriptLine("assistant", "Done."),)


@pytest.mark.parametrize("event", LATE[1:], ids=repr)
def test_what_comes_before_the_beginning_is_ignored(event: Event) -> None:
    turn = TurnMachine(TOOLS, 5)
    assert turn.on(event) == []
    assert turn.on(TurnStarted()) == [AskModel(with_tools=True)]


@pytest.mark.parametrize("event", [*LATE[:3], ToolReturned("other", "x")], ids=repr)
def test_what_does_not_fit_a_running_call_is_ignored(event: Event) -> None:
    turn = started()
    turn.on(ModelReplied("", (call(),)))
    assert turn.on(event) == []
    assert turn.on(ToolReturned("1", "x")) == [AskModel(with_tools=True)]


def test_a_turn_needs_a_round() -> None:
    with pytest.raises(ValueError, match="max_rounds"):
        TurnMachine(TOOLS, 0)


calls = st.builds(
    call, st.sampled_from(["", "a", "b", "a-2"]), st.sampled_from([*TOOLS, "other"])
)


@given(st.lists(st.lists(calls, max_size=4), max_size=12), st.integers(1, 6))
def test_a_turn_ends_within_its_rounds(
    wishes: list[list[ToolCall]], max_rounds: int
) -> None:
    turn = TurnMachine(TOOLS, max_rounds)
    effects = turn.on(TurnStarted())
    asked = 0
    while not turn.is_over:
        match effects.pop(0):
            case AskModel():
                asked += 1
                wish = wishes.pop() if wishes else []
                effects += turn.on(ModelReplied("", tuple(wish)))
            case CallTool(call=wanted):
                effects += turn.on(ToolReturned(wanted.id, "ok"))
            case effect:
                pytest.fail(f"{effect} before the end")
    assert asked == turn.rounds <= max_rounds
    assert [type(effect) for effect in effects] in ([Finish], [Fail])


class World:
    """A model and tools that always answer the same question alike.

    Args:
        wishes: which tools the model asks for in each round; then it answers.
        picks: in which order tools end.
    """

    def __init__(self, wishes: list[list[ToolCall]], picks: list[int]) -> None:
        self.wishes = wishes
        self.picks = cycle(picks)
        self.asked = 0
        self.calls: list[str] = []
        self.steps: list[Step] = []

    def go_on(self, turn: TurnMachine, effects: list[Effect]) -> Effect:
        """Carry out effects in any order until the last one."""
        while not turn.is_over:
            effect = effects.pop(next(self.picks) % len(effects))
            effects += turn.on(self.answer(turn, effect))
        (end,) = effects
        return end

    def answer(self, turn: TurnMachine, effect: Effect) -> Step:
        step: Step
        if isinstance(effect, AskModel):
            self.asked += 1
            number = turn.rounds - 1
            wish = self.wishes[number] if number < len(self.wishes) else []
            step = ModelReplied(f"round {number}", tuple(wish))
        else:
            assert isinstance(effect, CallTool)
            self.calls.append(effect.call.id)
            step = ToolReturned(effect.call.id, f"did {effect.call.id}")
        self.steps.append(step)
        return step


@given(
    wishes=st.lists(st.lists(calls, max_size=4), max_size=4),
    max_rounds=st.integers(1, 6),
    cut=st.integers(0, 30),
    picks=st.lists(st.integers(0, 3), min_size=1),
)
def test_resumed_anywhere_it_ends_alike_and_repeats_nothing_recorded(
    wishes: list[list[ToolCall]], max_rounds: int, cut: int, picks: list[int]
) -> None:
    whole, world = TurnMachine(TOOLS, max_rounds), World(wishes, picks)
    end = world.go_on(whole, whole.on(TurnStarted()))
    steps = world.steps[: min(cut, len(world.steps) - 1)]  # the last ends the turn
    again, rest = TurnMachine(TOOLS, max_rounds), World(wishes, picks)
    assert rest.go_on(again, resume(again, steps).open_effects) == end
    assert again.lines == whole.lines
    recorded = [s.call_id for s in steps if isinstance(s, ToolReturned)]
    assert sorted(rest.calls + recorded) == sorted(world.calls)
    rounds = sum(isinstance(each, ModelReplied) for each in steps)
    assert rest.asked == world.asked - rounds


def test_of_two_calls_only_the_one_without_a_result_is_open() -> None:
    calls = (call("a"), call("b", "calculate"))
    steps: list[Step] = [ModelReplied("", calls), ToolReturned("a", "noon")]
    assert resume(TurnMachine(TOOLS, 5), steps).open_effects == [CallTool(calls[1])]


@given(
    wishes=st.lists(st.lists(calls, max_size=4), max_size=4),
    max_rounds=st.integers(1, 6),
    later_rounds=st.integers(1, 6),
    later_tools=st.lists(st.sampled_from(TOOLS), unique=True),
    picks=st.lists(st.integers(0, 3), min_size=1),
)
def test_resumed_under_other_settings_there_is_always_something_to_do(
    wishes: list[list[ToolCall]],
    max_rounds: int,
    later_rounds: int,
    later_tools: list[str],
    picks: list[int],
) -> None:
    whole, world = TurnMachine(TOOLS, max_rounds), World(wishes, picks)
    world.go_on(whole, whole.on(TurnStarted()))
    for cut in range(len(world.steps)):
        again = TurnMachine(tuple(later_tools), later_rounds)
        resumed = resume(again, world.steps[:cut])
        assert resumed.open_effects
        assert resumed.steps == world.steps[: len(resumed.steps)]


def test_a_turn_without_steps_is_begun() -> None:
    assert resume(TurnMachine(TOOLS, 5), []).open_effects == [AskModel(with_tools=True)]


class AnyOrder(RuleBasedStateMachine):
    """Feeds events in any order, fitting or not, and checks each effect."""

    @initialize(max_rounds=st.integers(1, 4))
    def begin(self, max_rounds: int) -> None:
        self.turn = TurnMachine(TOOLS, max_rounds)
        self.max_rounds = max_rounds
        self.running: set[str] = set()
        self.ever_called: set[str] = set()
        self.ends = 0
        self.is_asked = False

    def carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            assert self.ends == 0
            match effect:
                case AskModel(with_tools=with_tools):
                    assert not self.running
                    assert not self.is_asked
                    assert with_tools == (self.turn.rounds < self.max_rounds)
                    self.is_asked = True
                case CallTool(call=wanted):
                    assert wanted.name in TOOLS
                    assert wanted.id not in self.ever_called
                    self.ever_called.add(wanted.id)
                    self.running.add(wanted.id)
                case Finish() | Fail():
                    assert not self.running
                    self.ends += 1

    @rule()
    def start(self) -> None:
        self.carry_out(self.turn.on(TurnStarted()))

    @rule(text=st.sampled_from(["", "words"]), wish=st.lists(calls, max_size=3))
    def reply(self, text: str, wish: list[ToolCall]) -> None:
        was_asked, self.is_asked = self.is_asked, False
        effects = self.turn.on(ModelReplied(text, tuple(wish)))
        assert bool(effects) == was_asked
        self.carry_out(effects)

    @rule(call_id=st.sampled_from(["a", "b", "a-2", "call-1"]))
    def result(self, call_id: str) -> None:
        was_running = call_id in self.running
        self.running.discard(call_id)
        effects = self.turn.on(ToolReturned(call_id, "ok"))
        assert bool(effects) == (was_running and not self.running)
        self.carry_out(effects)

    @rule()
    def fail(self) -> None:
        was_asked, self.is_asked = self.is_asked, False
        effects = self.turn.on(ModelFailed("busy", "x"))
        assert bool(effects) == was_asked
        self.carry_out(effects)

    @invariant()
    def every_call_in_the_lines_has_its_one_result(self) -> None:
        wanted = [each.id for line in self.turn.lines for each in line.tool_calls]
        results = [line.tool_call_id for line in self.turn.lines if line.role == "tool"]
        assert wanted == results
        assert len(set(wanted)) == len(wanted)
        assert self.turn.rounds <= self.max_rounds
        assert self.turn.is_over == (self.ends == 1)


TestAnyOrder = AnyOrder.TestCase
