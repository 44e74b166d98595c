"""Proves that calls in circles are warned of, blocked and ended, and others are not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.messages.inbound import ToolCall
from actors.turn.limits import POLLING, LoopDetector, LoopLimits, LoopStep, signature

LIMITS = LoopLimits(3, 5, 7)
json = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=3),
    lambda each: (
        st.lists(each, max_size=3)
        | st.dictionaries(st.text(max_size=3), each, max_size=3)
    ),
    max_leaves=6,
)


def call(arguments: object, name: str = "look") -> ToolCall:
    return ToolCall("c", name, msgspec.json.encode(arguments))


def play(
    detector: LoopDetector, made: Sequence[tuple[object, str]]
) -> list[LoopStep | None]:
    """Make calls one after the other; give the strictest thing done about each."""
    steps: list[LoopStep | None] = []
    for arguments, result in made:
        entry, step = detector.called(call(arguments))
        if step is None:
            detector.returned(entry, result)
            step = detector.repeated(entry)
        steps.append(step)
        if detector.is_broken:
            break
    return steps


def test_the_same_call_is_warned_of_then_blocked_then_ends_the_loop() -> None:
    steps = play(LoopDetector(LIMITS), [(1, "same")] * 99)
    assert steps == [
        None, None, "warned", "warned", "blocked", "blocked", "broken"
    ]  # fmt: skip


@pytest.mark.parametrize("length", [2, 3])
def test_ping_pong_ends_too(length: int) -> None:
    rounds = [(number, "same") for number in range(length)]
    detector = LoopDetector(LIMITS)
    steps = play(detector, list(islice(cycle(rounds), 99)))
    assert steps[-1] == "broken"
    assert len(steps) == (LIMITS.break_after - 1) * length + 1


def test_polling_with_new_results_goes_on_three_times_as_long() -> None:
    detector = LoopDetector(LIMITS)
    steps = play(detector, [(1, str(number)) for number in range(99)])
    assert steps.index("warned") == POLLING * LIMITS.warn_after - 1
    assert steps.index("blocked") == POLLING * LIMITS.block_after - 1
    assert len(steps) <= POLLING * LIMITS.break_after


def test_a_new_result_begins_anew() -> None:
    made = [(1, "a")] * 3 + [(1, "b")] * 2
    assert play(LoopDetector(LIMITS), made)[-2:] == [None, None]


def test_side_by_side_the_same_call_counts_before_it_has_ended() -> None:
    detector = LoopDetector(LIMITS)
    steps = [detector.called(call(1))[1] for _ in range(7)]
    assert steps == [None] * 4 + ["blocked", "blocked", "broken"]


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab")), max_size=60))
def test_nothing_is_done_about_fewer_calls_than_the_limit(
    made: list[tuple[int, str]],
) -> None:
    detector = LoopDetector(LIMITS)
    steps = play(detector, list(made))
    for number, step in enumerate(steps):
        count = [key for key, _ in made[: number + 1]].count(made[number][0])
        least: dict[LoopStep | None, int] = {"warned": 3, "blocked": 5, "broken": 7}
        assert count >= least.get(step, 0)


@given(st.lists(st.integers(0, 2), min_size=50, max_size=80))
def test_any_game_of_three_calls_that_brings_nothing_new_ends(keys: list[int]) -> None:
    detector = LoopDetector(LIMITS)
    assert play(detector, [(key, "same") for key in keys])[-1] == "broken"


@given(st.lists(st.tuples(json, st.text(max_size=4)), unique_by=repr, max_size=40))
def test_other_arguments_are_another_call(made: list[tuple[object, str]]) -> None:
    known = {signature(call(arguments)) for arguments, _ in made}
    if len(known) == len(made):
        assert set(play(LoopDetector(LIMITS), made)) <= {None}


@given(st.dictionaries(st.text(max_size=4), json, max_size=5))
def test_the_order_of_the_arguments_does_not_matter(
    arguments: dict[str, object],
) -> None:
    turned = dict(reversed(arguments.items()))
    spaced = msgspec.json.format(msgspec.json.encode(turned), indent=2)
    assert signature(call(arguments)) == signature(ToolCall("x", "look", spaced))
    assert signature(call(arguments)) != signature(call(arguments, "other"))


@pytest.mark.parametrize("arguments", [b"", b"{", b"\xff", b"[" * 5000])
def test_arguments_that_are_no_json_are_compared_as_they_are(arguments: bytes) -> None:
    one, two = ToolCall("a", "x", arguments), ToolCall("b", "x", arguments + b" ")
    assert signature(one) == signature(two)
