"""Hooks may change words or hold them back, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.hooks.chain import (
    BROKEN,
    LONGEST_PAUSE,
    LONGEST_REASON,
    PATIENCE,
    HookChain,
    HookHealth,
    HookSpec,
    Verdict,
    bounded,
    checked,
    unasked,
)

OPEN = HookSpec(name="open", events=("message_sending",))
CLOSED = HookSpec(name="closed", events=("message_sending",), is_closed=True)
ANSWERS = st.one_of(
    st.none(),
    st.builds(Verdict),
    st.builds(Verdict, st.just("change"), st.text(min_size=1, max_size=30)),
    st.builds(Verdict, st.just("cancel"), st.just(""), st.text(max_size=400)),
)


@given(
    hooks=st.lists(st.tuples(st.sampled_from([OPEN, CLOSED]), ANSWERS), max_size=6),
    text=st.text(max_size=20),
    most=st.integers(1, 40),
)
def test_the_first_that_holds_back_ends_it_and_each_change_is_bounded(
    hooks: list[tuple[HookSpec, Verdict | None]], text: str, most: int
) -> None:
    chain, asked = HookChain(text, most), 0
    for hook, verdict in hooks:
        if chain.is_over:
            break
        asked += 1
        if verdict is None:
            chain.fail(hook)
        else:
            chain.take(hook, verdict)
    holding = [h.is_closed if v is None else v.action == "cancel" for h, v in hooks]
    assert chain.is_over == any(holding)
    assert asked == (holding.index(True) + 1 if any(holding) else len(hooks))
    passed = chain.passed
    assert passed.text == text or len(passed.text) <= most
    assert len(passed.reason) <= LONGEST_REASON
    assert "\n" not in passed.reason


@given(text=st.text(), most=st.integers(1, 50))
def test_what_is_bounded_can_be_stored(text: str, most: int) -> None:
    found = bounded(text, most)
    assert len(found) <= most
    found.encode()


def test_halves_of_characters_are_replaced() -> None:
    assert bounded("a\ud83dz", 10) == "a?z"


def test_who_cannot_ask_passes_words_unless_a_hook_is_closed() -> None:
    assert unasked((OPEN,), "hi").cancelled_by == ""
    passed = unasked((OPEN, CLOSED), "hi")
    assert (passed.cancelled_by, passed.reason) == ("closed", BROKEN)


@pytest.mark.parametrize(
    ("verdict", "is_sound"),
    [
        (Verdict(), True),
        (Verdict("change", "x"), True),
        (Verdict("cancel"), True),
        (Verdict("cancel", reason="no"), True),
        (Verdict("change", " "), False),
        (Verdict("continue", "x"), False),
        (Verdict("cancel", "x"), False),
        (Verdict("continue", reason="no"), False),
        (Verdict("change", "x", "no"), False),
    ],
)
def test_a_verdict_says_one_thing(verdict: Verdict, *, is_sound: bool) -> None:
    assert (checked(verdict, "message_sending") == "") == is_sound


@pytest.mark.parametrize(
    ("verdict", "is_sound"),
    [
        (Verdict(), True),
        (Verdict("consume"), True),
        (Verdict("consume", "done"), True),
        (Verdict("change", "x"), False),
        (Verdict("cancel"), False),
    ],
)
def test_who_hears_a_message_may_have_it_for_itself_and_nothing_else(
    verdict: Verdict, *, is_sound: bool
) -> None:
    assert (checked(verdict, "message_heard") == "") == is_sound
    may_consume = verdict.action == "consume"
    assert not (may_consume and checked(verdict, "message_received") == "")


@pytest.mark.parametrize(
    ("spec", "there", "concerns"),
    [
        (OPEN, ("message_sending", "web", "anna"), True),
        (OPEN, ("message_received", "web", ""), False),
        (HookSpec(name="x", events=OPEN.events, agents=("ben",)), None, False),
        (HookSpec(name="x", events=OPEN.events, connectors=("cli",)), None, False),
    ],
)
def test_a_hook_is_asked_about_what_concerns_it(
    spec: HookSpec, there: tuple[str, str, str] | None, *, concerns: bool
) -> None:
    event, connector, agent = there or ("message_sending", "web", "anna")
    assert spec.concerns(event, connector, agent) == concerns  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 30)), max_size=60))
def test_who_fails_again_and_again_is_asked_ever_less_and_once_it_works_always(
    events: list[tuple[bool, float]],
) -> None:
    health, now, failures = HookHealth(), 0.0, 0
    for works, gap in events:
        now += gap
        may = health.may_ask(now)
        assert may or failures >= PATIENCE
        if not may:
            health.failed("paused", "left alone", now)
        elif works:
            health.answered("continue")
            failures = 0
        else:
            health.failed("timeout", "late", now)
            failures += 1
        assert health.is_failing == (failures >= PATIENCE)
    assert health.may_ask(now + LONGEST_PAUSE)


def test_only_one_question_tries_whether_it_works_again() -> None:
    health = HookHealth()
    for _ in range(PATIENCE):
        health.failed("failed", "broken", 0.0)
    assert [health.may_ask(2.0), health.may_ask(2.0)] == [True, False]
    health.answered("change")
    assert health.may_ask(2.0)
    assert health.counts.changed == 1


def test_a_restart_is_reason_to_try_it_at_once() -> None:
    health = HookHealth()
    for _ in range(PATIENCE):
        health.failed("down", "gone", 0.0, is_waited_for=True)
    assert not health.may_ask(0.0)
    health.started()
    assert health.may_ask(0.0)
