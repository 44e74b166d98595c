"""What a line may be is told as early as may be, and never taken back."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, strategies as st

from actors.rules.markers.line_stage import LOOK, Shape, shape_of

PIECES = st.lists(
    st.sampled_from(
        [
            "SCHEDULE", "SCHED", ": ", "- ", "> ", "**", "`", "```", "{", '"tool"', "[",
            "[IMAGE:", "a.png]", "NO_REPLY", "done", "Let me check", " the file…", "…",
            " ", "\t", "\n", "x", "hello", ".",
        ]
    ),
    max_size=6,
).map("".join)  # fmt: skip


@given(text=PIECES, hides_narration=st.booleans())
def test_what_was_told_of_a_beginning_holds_for_the_whole_line(
    text: str, *, hides_narration: bool
) -> None:
    head = text[:LOOK]
    whole = shape_of(head, is_whole=True, hides_narration=hides_narration)
    told = [
        shape_of(head[:end], is_whole=False, hides_narration=hides_narration)
        for end in range(len(head) + 1)
    ]
    assert {*told, whole} <= {*get_args(Shape)}
    decided = [each for each in told if each != "undecided"]
    assert len({*decided}) <= 1
    assert whole != "undecided"
    assert not decided or decided[-1] == whole


@pytest.mark.parametrize(
    ("line", "early", "late"),
    [
        ("", "undecided", "plain"),
        ("  \n", "blank", "blank"),
        ("hello", "plain", "plain"),
        ("- **", "undecided", "plain"),
        ("- SCHEDULE: tea", "line", "line"),
        ("SCHED", "undecided", "plain"),
        ("SCHEDULED: tea", "plain", "plain"),
        ("[IMAGE:a.png]", "line", "line"),
        ("```python", "line", "line"),
        ("~~~", "line", "line"),
        ("{", "undecided", "plain"),
        ("Let me check the file…", "narration", "narration"),
        ("Let me check the file…\nIt is there.", "narration", "narration"),
        ("The file says hello", "plain", "plain"),
    ],
)
def test_a_line_is_what_it_looks_like(line: str, early: str, late: str) -> None:
    shown = [shape_of(line, is_whole=x, hides_narration=True) for x in (False, True)]
    assert shown == [early, late]


def test_narration_is_looked_for_only_if_it_is_to_be_hidden() -> None:
    line = "Let me check the file…\n"
    assert shape_of(line, is_whole=True) == "plain"
