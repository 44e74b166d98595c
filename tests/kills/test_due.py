"""Proves I10 where a server dies at a slot's boundary, and in the middle of a turn.

`python -m tests.kills` does more of the same.
"""

from __future__ import annotations

import random  # noqa: TID251  for dice with a seed alone
from pathlib import Path

import pytest

from tests.kills.due import NAMED, kill_due, plan_due


@pytest.fixture
def dice() -> random.Random:
    return random.Random(7)  # noqa: S311  repeatable, no secret


@pytest.mark.deep
async def test_each_slot_is_carried_out_once_whenever_the_server_dies(
    tmp_path: Path, dice: random.Random
) -> None:
    report = await kill_due(tmp_path, list(NAMED), dice)
    assert report.verdict.faults == []
    assert report.missed == {}
    assert report.verdict.lost == 0
    assert report.verdict.answered > len(NAMED)


def test_each_named_point_has_its_turn(dice: random.Random) -> None:
    chosen = plan_due(12, dice)
    assert len(chosen) == 12
    assert set(NAMED) <= set(chosen)
