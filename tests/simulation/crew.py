"""Plays seeds side by side, one process for each processor."""

from __future__ import annotations

import logging
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING

from tests.simulation.run import Outcome, run_seed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Chosen: seeds handed to a worker at once.
CHUNK = 10


def again(seed: int) -> str:
    """Give the command that plays a seed again."""
    return f"python -m tests.simulation --seed {seed}"


def be_quiet() -> None:
    """Write no log: what is wrong is in the trace."""
    logging.disable(logging.CRITICAL)


def play(seed: int) -> Outcome:
    """Play one seed.

    Raises:
        RuntimeError: the harness itself broke; names the seed.
    """
    be_quiet()
    try:
        return run_seed(seed)
    except Exception as error:
        raise RuntimeError(f"the harness broke; again: {again(seed)}") from error


def outcomes(seeds: Sequence[int], jobs: int) -> Iterator[Outcome]:
    """Play seeds; they come back in their order."""
    if jobs == 1 or len(seeds) == 1:
        yield from map(play, seeds)
        return
    # Why not forked: a child would inherit whatever the parent holds.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context) as pool:
        yield from pool.map(play, seeds, chunksize=CHUNK)
