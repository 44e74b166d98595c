"""Proves when a turn counts as long-running, stalled or stuck."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from actors.messages.progress import (
    REMEDIES,
    ProgressLimits,
    look_after,
    next_remedy,
    pace_of,
)

PATIENCE = ProgressLimits(long_after=60, stalled_after=20, stuck_after=50)
SECONDS = st.floats(0, 200)
LIMITS = st.sampled_from((0.0, 5.0, 30.0, 60.0))
PATIENCES = st.builds(ProgressLimits, LIMITS, LIMITS, LIMITS)


@pytest.mark.parametrize(
    ("lasted", "silent", "pace"),
    [
        (0, 0, "running"),
        (59.9, 19.9, "running"),
        (20, 20, "stalled"),
        (60, 0, "long-running"),
        (60, 20, "stalled"),
        (50, 50, "stuck"),
        (999, 49.9, "stalled"),
    ],
)
def test_the_worst_that_is_true_counts(lasted: float, silent: float, pace: str) -> None:
    assert pace_of(PATIENCE, lasted, silent) == pace


def test_each_remedy_is_tried_once_the_mildest_first() -> None:
    tried = ["cancel"]
    while (remedy := next_remedy(REMEDIES[len(tried) - 1])) is not None:
        tried.append(remedy)
    assert tried == ["cancel", "kill", "restart"]


@given(lasted=SECONDS, silent=SECONDS)
def test_without_limits_nothing_is_ever_wrong(lasted: float, silent: float) -> None:
    assert pace_of(ProgressLimits(), lasted, silent) == "running"
    assert look_after(ProgressLimits(), lasted, silent) == math.inf


@given(patience=PATIENCES, lasted=SECONDS, silent=SECONDS, share=st.floats(0, 0.99))
def test_nothing_changes_before_the_next_look(
    patience: ProgressLimits, lasted: float, silent: float, share: float
) -> None:
    wait = look_after(patience, lasted, silent)
    now = pace_of(patience, lasted, silent)
    if wait < math.inf:
        then = wait * share
        assert pace_of(patience, lasted + then, silent + then) == now
