"""Plays one seed from its first dice to its verdict."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import msgspec
import trio

from tests.simulation.edges.clock import SimulatedClock
from tests.simulation.faults import FaultClass
from tests.simulation.passing import EVERY, crowded_out, held_up
from tests.simulation.trace import Violation
from tests.simulation.world import Parts, World


class Outcome(msgspec.Struct, frozen=True):
    """What became of one run."""

    seed: int
    digest: str
    events: int
    faults: tuple[str, ...]
    violations: tuple[Violation, ...]
    tolerated: tuple[Violation, ...]
    trace: tuple[str, ...]
    """The minimal trace; empty if nothing was wrong."""


@contextmanager
def deterministic(seed: int) -> Generator[None]:
    """Let trio run ready tasks in an order that only `seed` decides.

    Without sorting, the order would depend on where objects lie in memory.
    """
    scheduler: Any = trio._core._run  # private: pinned by test_trio_seam.py
    before = scheduler._r.getstate(), scheduler._ALLOW_DETERMINISTIC_SCHEDULING
    scheduler._r.seed(seed)
    scheduler._ALLOW_DETERMINISTIC_SCHEDULING = True
    try:
        yield
    finally:
        scheduler._r.setstate(before[0])
        scheduler._ALLOW_DETERMINISTIC_SCHEDULING = before[1]


def run_seed(
    seed: int,
    parts: Parts | None = None,
    only: frozenset[FaultClass] | None = None,
    look: Callable[[World], object] | None = None,
    clock: trio.abc.Clock | None = None,
) -> Outcome:
    """Play one seed.

    Args:
        seed: of the run.
        parts: what it is made of.
        only: the fault classes that are on; None: the seed says.
        look: shown the world when the run is over.
        clock: jumps when nothing can happen; None: the fast one.
    """
    worlds: list[World] = []
    is_plain = parts is None and only is None and clock is None
    is_passed = is_plain and seed % EVERY == 0
    waited = (*held_up(seed), *crowded_out(seed)) if is_passed else ()

    async def main() -> None:
        world = World(seed, parts, only)
        worlds.append(world)
        await world.run()

    with deterministic(seed):
        trio.run(main, clock=clock or SimulatedClock())
    world = worlds[0]
    if look is not None:
        look(world)
    trace = world.trace
    wrong = trace.violations or trace.tolerated
    named = [each for found in wrong for each in found.subjects][:2]
    subjects = {each for name in named for each in world.checkers.ledger.akin(name)}
    return Outcome(
        seed=seed,
        digest=trace.digest,
        events=trace.counts.total(),
        faults=tuple(sorted(set(world.faults.hits))),
        violations=(*trace.violations, *waited),
        tolerated=tuple(trace.tolerated),
        trace=tuple(trace.minimal(subjects)) if wrong else (),
    )
