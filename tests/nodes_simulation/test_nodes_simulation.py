"""Proves over many seeds what nodes promise, and that the simulation can fail."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from tests.nodes_simulation.__main__ import first_found
from tests.nodes_simulation.mistakes import MISTAKES
from tests.nodes_simulation.silence import KEEPS_ALL, LONGEST, silence
from tests.nodes_simulation.world import FOR_EVER, KINDS, World, play

# Chosen: a second and a half; `python -m tests.nodes_simulation` plays a thousand.
SEEDS = range(40)

SILENT_SEEDS = range(2)
"""Of each kind; `python -m tests.nodes_simulation` plays more."""

QUICK = ("cache", "no attempt", "new key", "part's lease", "short cut", "wall clock")
"""Mistakes that a few seeds find; the second tier plays all."""


def test_whatever_fails_nothing_is_lost_doubled_or_out_of_order() -> None:
    happened: Counter[str] = Counter()
    struck: set[str] = set()
    for seed in SEEDS:
        result = play(seed)
        assert not result.breaches, (seed, [*map(str, result.breaches)], result.faults)
        happened.update(result.happened)
        struck |= {fault.split()[1] for fault in result.faults}
    assert struck == {*KINDS}
    assert min(happened["fenced"], happened["taken"], happened["given"]) > 20


@pytest.mark.parametrize("kind", LONGEST)
def test_conversations_go_on_within_the_time_that_is_promised(kind: str) -> None:
    waits = [silence(seed, kind)[-1] for seed in SILENT_SEEDS]
    assert max(waits) <= LONGEST[kind], waits.index(max(waits))


def test_a_node_that_is_only_starting_would_keep_conversations_waiting() -> None:
    seed = 19  # found by a look at some
    assert silence(seed, "crash", KEEPS_ALL)[-1] > LONGEST["crash"]
    assert silence(seed, "crash")[-1] <= LONGEST["crash"]


class LosingWorld(World):
    """A company that loses nodes for good, again and again."""

    def _plan_faults(self) -> None:
        self.ends_sessions = True  # else nobody may stop for ever
        self.keep = FOR_EVER  # a request may lie in a node that stops again and again
        for at in range(3, 36):
            for kind in ("stop", "leave"):
                self.loop.after(at, partial(self._strike, kind))


@pytest.mark.parametrize("seed", range(10))
def test_however_many_are_to_be_lost_enough_nodes_are_left(seed: int) -> None:
    assert not LosingWorld(seed).run().breaches


def test_one_seed_gives_one_run() -> None:
    assert play(3) == play(3)


@pytest.mark.parametrize(
    "mistake",
    [
        each if each in QUICK else pytest.param(each, marks=pytest.mark.deep)
        for each in MISTAKES
    ],
)
def test_a_planted_mistake_is_found(mistake: str) -> None:
    assert first_found(mistake, range(1000)) is not None
