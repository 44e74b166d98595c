"""Proves that on a platform without ids a kill doubles only what it may, and counts it.

`python -m tests.kills` does more of the same.
"""

from __future__ import annotations

import random  # noqa: TID251  for dice with a seed alone
from pathlib import Path

import pytest

from tests.kills.platform import SAID, Saying, Wrote
from tests.kills.servers import Life
from tests.kills.twice import NAMED, judge_twice, kill_plain, plan_plain
from tests.kills.verdict import Verdict

FEW = [SAID, "before-receipt", "before-sending"]


@pytest.fixture
def dice() -> random.Random:
    return random.Random(7)  # noqa: S311  repeatable, no secret


@pytest.mark.deep
async def test_only_what_died_unreceipted_is_said_twice_and_it_is_counted(
    tmp_path: Path, dice: random.Random
) -> None:
    report = await kill_plain(tmp_path, FEW, dice)
    assert report.verdict.faults == []
    assert report.missed == {}
    assert 1 <= report.verdict.said_twice <= len(FEW) * 3
    assert report.verdict.acknowledged > len(FEW)


def test_each_named_point_has_its_turn(dice: random.Random) -> None:
    chosen = plan_plain(10, dice)
    assert len(chosen) == 10
    assert set(NAMED) <= set(chosen)


ONE, TWO, THREE = (Wrote(f"message{n}", "chat0", f"word {n}") for n in (1, 2, 3))
LIVES = [Life(began=0.0, ended=10.0, pid=1), Life(began=11.0, pid=2)]


def said(message: Wrote, pid: int, in_doubt: int = 0) -> Saying:
    return Saying(message, "words", pid, in_doubt)


@pytest.mark.parametrize(
    ("sayings", "faults"),
    [
        ([said(ONE, 1), said(ONE, 2, 1)], []),
        ([said(ONE, 1), said(ONE, 2, 0)], ["word 1: said again and not counted"]),
        (
            [said(TWO, 1), said(TWO, 2, 1)],
            ["word 2: said again despite its receipt"],
        ),
        ([said(ONE, 1), said(ONE, 1, 1)], ["word 1: said twice by one process"]),
        (
            [said(ONE, 1), said(THREE, 1), said(ONE, 2, 2), said(THREE, 2, 2)],
            ["chat0: 2 said again after one death"],
        ),
    ],
)
def test_the_judge_sees_what_must_not_be(
    sayings: list[Saying], faults: list[str]
) -> None:
    verdict = Verdict(faults=[])
    receipts: dict[str, object] = {"message1": 12.0, "message2": 9.0, "message3": 12.0}
    judge_twice(receipts, sayings, LIVES, verdict)
    assert verdict.faults == faults
    assert verdict.said_twice == len(sayings) // 2
