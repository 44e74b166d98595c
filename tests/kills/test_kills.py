"""Proves that a server killed under load, anywhere, loses and muddles nothing.

`python -m tests.kills --kills 2000` does more of the same.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import random  # noqa: TID251  for dice with a seed alone
import shutil
from pathlib import Path

import apsw
import pytest

from tests.kills import points
from tests.kills.harness import kill_many, plan
from tests.kills.verdict import judge

FEW = [
    "before-acknowledgement",
    points.MODEL_CALL,
    points.TOOL_CALLS,
    "before-sending",
    "before-receipt",
    points.SHUTDOWN,
    points.ANY,
]


@pytest.fixture
def dice() -> random.Random:
    return random.Random(7)  # noqa: S311  repeatable, no secret


@pytest.mark.deep
async def test_whatever_is_acknowledged_is_answered_once_and_in_order(
    tmp_path: Path, dice: random.Random
) -> None:
    report = await kill_many(tmp_path, FEW, dice)
    assert report.verdict.faults == []
    assert report.verdict.lost == report.verdict.out_of_order == 0
    assert report.verdict.acknowledged == len(report.said) > len(FEW)
    assert report.missed == {}


def spoil(folder: Path, name: str, change: str) -> Path:
    """Copy a database at rest, and change something in it."""
    shutil.copytree(folder, folder.parent / name)
    db = apsw.Connection(str(folder.parent / name / "callboard.db"))
    db.execute(change)
    db.close()
    return folder.parent / name


async def test_the_judge_sees_what_must_not_be(
    tmp_path: Path, dice: random.Random
) -> None:
    folder = tmp_path / "good"
    folder.mkdir()
    report = await kill_many(folder, [], dice)
    assert report.verdict.faults == []
    for name, change in {
        "missing": "DELETE FROM inbox WHERE number = 2",
        "dropped": "UPDATE inbox SET state = 'dropped' WHERE number = 2",
        "out of order": "UPDATE inbox SET number = -number",
        "not in any": "DELETE FROM journal WHERE sequence = 1",
        "nobody had died": "UPDATE outbox SET settled_at = settled_at + 3600",
    }.items():
        spoiled = spoil(folder, name, change)
        for life in report.lives:
            life.ended = life.ended if name != "nobody had died" else 0.0
        verdict = judge(spoiled, report.said, report.lives)
        assert any(name in fault for fault in verdict.faults), name


def test_each_named_point_has_its_turn(dice: random.Random) -> None:
    chosen = plan(40, dice)
    assert len(chosen) == 40
    assert set(points.NAMED) <= set(chosen)
