"""Proves what the store promises whichever step of the disk fails, and when it stops.

Tried at least, counted by this test:

    standard: 700 failing steps, 450 power cuts
    crowd: 270 failing steps, 320 power cuts
    upgrade: 180 failing steps, 180 power cuts

`python -m tests.disk_faults --all` tries every fault on every workload.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.disk_faults.faults import FEW, ORDINARY, explore
from tests.disk_faults.power import cut_everywhere, dice_with_seeds
from tests.disk_faults.workload import CROWD, RELAXED, STANDARD, WORKLOADS, Workload

each_workload = pytest.mark.parametrize(
    "workload",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.deep] * (each is not CROWD))
        for each in WORKLOADS
    ],
)


def fewest(workload: Workload, what: str) -> int:
    """Read the promised number of points from this module's docstring."""
    found = re.search(rf"{workload.name}:.* (\d+) {what}", __doc__ or "")
    assert found is not None
    return int(found.group(1))


@each_workload
async def test_whichever_step_fails_nothing_acknowledged_is_lost(
    workload: Workload, tmp_path: Path
) -> None:
    points = 0
    for number, fault in enumerate(ORDINARY if workload is STANDARD else FEW):
        points += await explore(workload, fault, tmp_path / str(number))
    assert points >= fewest(workload, "failing steps")


@each_workload
async def test_whenever_the_power_is_cut_nothing_acknowledged_is_lost(
    workload: Workload, tmp_path: Path
) -> None:
    cuts = await cut_everywhere(workload, tmp_path, dice_with_seeds(1))
    assert cuts >= fewest(workload, "power cuts")


async def test_a_store_that_does_not_flush_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="power cut after change"):
        await cut_everywhere(RELAXED, tmp_path, [])
