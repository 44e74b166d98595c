"""Plays seeds side by side, one process for each processor."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.simulation.hangs import has_hang, with_hang
from tests.simulation.run import Outcome, run_seed
from tests.simulation.world import World

# Chosen: seeds handed to a worker at once.
CHUNK = 10


def again(seed: int) -> str:
    """Give the command that plays a seed again."""
    return f"python -m tests.simulation --seed {seed}"


def be_quiet() -> None:
    """Write no log: what is wrong is in the trace."""
    logging.disable(logging.CRITICAL)


def write_trace(world: World, folder: Path, seed: int) -> None:
    """Write all that happened in a run into `SEED.txt`, an event a line."""
    text = "".join(f"{event}\n" for event in world.trace.events)
    path = folder / f"{seed:06}.txt"
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def play(seed: int, traces: Path | None = None) -> Outcome:
    """Play one seed.

    Args:
        seed: which one.
        traces: the folder that gets a file with the run's trace; None: no file.

    Raises:
        RuntimeError: the harness itself broke; names the seed.
    """
    be_quiet()
    try:
        look = partial(write_trace, folder=traces, seed=seed) if traces else None
        outcome = run_seed(seed, look=look)
        beside = with_hang(seed) if has_hang(seed) else outcome
    except Exception as error:
        raise RuntimeError(f"the harness broke; again: {again(seed)}") from error
    return outcome if outcome.violations or not beside.violations else beside


def outcomes(
    seeds: Sequence[int], jobs: int, traces: Path | None = None
) -> Iterator[Outcome]:
    """Play seeds; they come back in their order."""
    play_one = partial(play, traces=traces)
    if jobs == 1 or len(seeds) == 1:
        yield from map(play_one, seeds)
        return
    # Why not forked: a child would inherit whatever the parent holds.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context) as pool:
        yield from pool.map(play_one, seeds, chunksize=CHUNK)
