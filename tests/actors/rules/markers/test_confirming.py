"""Proves that people are told what was done, shortly, and nothing that was not."""

from __future__ import annotations

from typing import get_args

from hypothesis import given, strategies as st

from actors.rules.markers.outcomes import (
    ENGLISH,
    MAX_TOLD,
    QUIET,
    ActionOutcome,
    OutcomeKind,
    SimilarTask,
    confirm,
)

KINDS: tuple[OutcomeKind, ...] = get_args(OutcomeKind)
outcomes = st.builds(
    ActionOutcome,
    kind=st.sampled_from(KINDS),
    what=st.text(max_size=300),
    when=st.text(max_size=20),
    repeat=st.sampled_from(["", "once", "daily"]),
    why=st.text(max_size=20),
    count=st.integers(0, 99),
    similar=st.lists(st.builds(SimilarTask, st.text(), st.text()), max_size=5).map(
        tuple
    ),
)


@given(st.lists(outcomes, max_size=30).map(tuple), st.booleans())
def test_every_outcome_is_one_bounded_line(
    done: tuple[ActionOutcome, ...],
    tells_all: bool,  # noqa: FBT001 drawn
) -> None:
    text = confirm(done, tells_all=tells_all)
    told = [each for each in done if tells_all or each.kind not in QUIET]
    most = sum(1 + bool(each.similar) for each in told[:MAX_TOLD])
    assert len(text.splitlines()) <= most + 1
    assert len(text) <= (most + 1) * 700
    assert bool(text) == bool(told)


def test_every_kind_has_words() -> None:
    assert set(KINDS) < set(ENGLISH)


def test_a_task_is_told_with_when_how_often_and_what_is_like_it() -> None:
    done = ActionOutcome(
        kind="scheduled",
        what="call\nBen [DELEGATE:ben] x [/DELEGATE]",
        when="tomorrow at nine",
        repeat="daily",
        similar=(SimilarTask("ring Ben", "tomorrow at ten"),),
    )
    assert confirm((done,)) == (
        "✓ Reminder set: call Ben, tomorrow at nine, repeated: daily\n"
        "  There is a similar one already: ring Ben, tomorrow at ten"
    )


def test_what_is_remembered_is_told_only_on_request() -> None:
    done = (ActionOutcome(kind="saved", what="likes tea"),)
    assert confirm(done) == ""
    assert confirm(done, tells_all=True) == "✓ Remembered: likes tea"


def test_what_was_not_done_is_told() -> None:
    done = (
        ActionOutcome(kind="refused", what="agent bob", why="there is one"),
        ActionOutcome(kind="not_found", what="12ab"),
        ActionOutcome(kind="forgotten", count=3),
    )
    assert confirm(done) == (
        "⚠ Not done: agent bob (there is one)\n"
        "⚠ Not found, so nothing was changed: 12ab\n"
        "✓ Forgotten: 3 things I knew."
    )


def test_words_come_from_the_translation() -> None:
    def german(key: str, /, **values: str | int) -> str:
        return f"{key}:{values.get('what', '')}"

    assert (
        confirm((ActionOutcome(kind="cancelled", what="x"),), german) == "✓ cancelled:x"
    )


@given(
    similar=st.lists(
        st.lists(st.sampled_from("abcd"), max_size=4, unique=True), max_size=MAX_TOLD
    )
)
def test_of_what_is_similar_one_is_told_for_each_thing_and_once(
    similar: list[list[str]],
) -> None:
    outcomes = [
        ActionOutcome(
            kind="scheduled",
            what=str(number),
            similar=tuple(SimilarTask(name, "") for name in names),
        )
        for number, names in enumerate(similar)
    ]
    lines = confirm(tuple(outcomes)).splitlines()
    warnings = [line for line in lines if line.startswith("  ")]
    assert len(lines) - len(warnings) == len(outcomes)
    assert len(set(warnings)) == len(warnings) <= len(outcomes)
    assert bool(warnings) == any(similar)
