"""Proves I10 where clocks change: twelve zones, two edges each, twelve jumps."""

from __future__ import annotations

import pytest

from tests.schedule_proofs.bed import expected, played
from tests.schedule_proofs.edges import EDGES, JUMPS, case_of

# The first tier takes one in three, so that each edge and each jump is among them.
CASES = [
    pytest.param(
        *case,
        id=" ".join(case),
        marks=[pytest.mark.deep] * bool((number + number // len(JUMPS)) % 3),
    )
    for number, case in enumerate(
        (zone, edge, jump)
        for zone, edges in EDGES.items()
        for edge in edges
        for jump in JUMPS
    )
]


@pytest.mark.parametrize(("zone", "edge", "jump"), CASES)
def test_each_slot_is_carried_out_once_per_policy(
    zone: str, edge: str, jump: str
) -> None:
    case = case_of(zone, edge, jump)
    assert played(case) == expected(case)


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 240
