"""Proves that messages and edits of a chat share its pauses."""

from __future__ import annotations

from hypothesis import given, strategies as st

from actors.outbound.drafts import LONGEST_WAIT, ChatPacing

STEPS = st.lists(
    st.tuples(st.sampled_from(["said", "edited"]), st.floats(0, 5)), max_size=30
)


@given(STEPS, st.floats(0, 5), st.floats(0, 5))
def test_whoever_waits_as_told_keeps_the_pace(
    steps: list[tuple[str, float]], pace: float, draft_pace: float
) -> None:
    pacing, now = ChatPacing(pace, draft_pace), 0.0
    before, edited_before = -10.0, -10.0
    for kind, wait in steps:
        now += wait
        now = max(now, pacing.message_at if kind == "said" else pacing.draft_at)
        assert now >= before + pace
        if kind == "said":
            pacing.said(now)
        else:
            assert now >= edited_before + draft_pace
            pacing.edited(now)
            edited_before = now
        before = now


def test_a_busy_platform_is_left_alone_longer_and_longer() -> None:
    pacing = ChatPacing(0.0, 1.0)
    waits: list[float] = []
    for _ in range(10):
        pacing.busy(100.0, None)
        waits.append(pacing.draft_at - 100.0)
    assert waits[:4] == [1, 2, 4, 8]
    assert waits[-1] == LONGEST_WAIT
    pacing.worked()
    pacing.busy(200.0, None)
    assert pacing.draft_at == 201.0


def test_a_platform_that_says_when_is_asked_then() -> None:
    pacing = ChatPacing(0.0, 1.0)
    pacing.busy(100.0, 33.0)
    assert pacing.draft_at == pacing.message_at == 133.0, "whatever it was told of"
    pacing.busy(101.0, 1.0)
    assert pacing.message_at == 133.0


def test_an_answer_does_not_wait_for_the_pace_of_drafts() -> None:
    pacing = ChatPacing(1.0, 3.0)
    pacing.edited(100.0)
    assert (pacing.draft_at, pacing.message_at) == (103.0, 101.0)


@given(STEPS, st.integers(1, 8))
def test_whoever_waits_as_told_makes_no_more_calls_in_a_minute(
    steps: list[tuple[str, float]], most: int
) -> None:
    pacing, now, calls = ChatPacing(0.0, 0.0, most), 0.0, list[float]()
    for kind, wait in steps:
        now += wait
        now = max(now, pacing.message_at if kind == "said" else pacing.draft_at)
        calls.append(now)
        pacing.said(now) if kind == "said" else pacing.edited(now)
        within = [at for at in calls if at > now - 59.999]  # sums are rounded
        assert len(within) <= most


def test_drafts_leave_a_part_of_each_minute_to_answers() -> None:
    pacing = ChatPacing(0.0, 0.0, 20)
    for second in range(15):
        assert pacing.draft_at <= second
        pacing.edited(second)
    assert pacing.draft_at == 60.0
    assert pacing.message_at == 14.0
