"""Proves I10 where clocks change: twelve zones, two edges each, twelve jumps."""

from __future__ import annotations

import pytest

from tests.schedule_proofs.bed import expected, played
from tests.schedule_proofs.edges import EDGES, JUMPS, case_of

# The first tier takes one in six, so that each edge and each jump is among them.
ONE_IN = 6
CASES = [
    pytest.param(
        *case,
        id=" ".join(case),
        marks=[pytest.mark.deep] * bool((number + number // len(JUMPS)) % ONE_IN),
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


def test_there_are_enough_of_them_and_the_first_tier_has_each_edge_and_jump() -> None:
    assert len(CASES) >= 240
    first = [case.values for case in CASES if not case.marks]
    assert len(first) == len(CASES) / ONE_IN
    edges = {(zone, edge) for zone, edge, _ in first}
    assert edges == {(zone, edge) for zone, both in EDGES.items() for edge in both}
    assert {jump for _, _, jump in first} == {*JUMPS}
