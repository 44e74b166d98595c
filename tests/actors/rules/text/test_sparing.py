"""Proves that nobody is told the same again and again, and everybody once."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.rules.text.limits import NoticeLimiter

SOMEBODY = st.sampled_from([("zoe",), ("yan",), ("kim",)])
STEPS = st.lists(st.tuples(SOMEBODY, st.integers(0, 9)), max_size=40)


@given(steps=STEPS, every=st.integers(0, 20))
def test_each_is_told_once_in_a_period(
    steps: list[tuple[tuple[str, ...], int]], every: int
) -> None:
    sparing, now = NoticeLimiter(every), 0
    told: dict[tuple[str, ...], int] = {}
    for whose, gap in steps:
        now += gap
        is_due = whose not in told or now - told[whose] >= every
        assert sparing.may_tell(whose, now) == is_due
        if is_due:
            told[whose] = now


@given(steps=STEPS, most=st.integers(1, 2))
def test_whoever_is_forgotten_is_told_again(
    steps: list[tuple[tuple[str, ...], int]], most: int
) -> None:
    sparing = NoticeLimiter(1e9, most)
    kept: list[tuple[str, ...]] = []
    for whose, _ in steps:
        assert sparing.may_tell(whose, 0.0) == (whose not in kept)
        kept = kept if whose in kept else [*kept, whose][-most:]
