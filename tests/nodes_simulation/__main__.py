"""Plays many seeds: `python -m tests.nodes_simulation --seeds 1000`.

Prints what was wrong in each seed that failed, with the command that plays it again.
Then, of every fiftieth, how long conversations are silent when one thing goes wrong.
With `--mistakes` each planted mistake is played until it is found. Ends with status 1
if a seed failed, a silence was too long, or a mistake was not found.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.nodes_simulation.mistakes import MISTAKES
from tests.nodes_simulation.silence import LONGEST, longest
from tests.nodes_simulation.world import Result, play

SHOWN = 5


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def tell(result: Result) -> None:
    """Print what went wrong in a seed."""
    again = f"python -m tests.nodes_simulation --seed {result.seed}"
    say(f"\nseed {result.seed} failed; again: {again}")
    for breach in result.breaches[:SHOWN]:
        say(f"  {breach}")
    say(f"  faults: {', '.join(result.faults) or 'none'}")


def play_silence(seeds: Sequence[int], jobs: int) -> bool:
    """Play each kind of silence; tell whether all kept within what is promised."""
    plays = [(seed, kind) for kind in LONGEST for seed in seeds]
    found: dict[str, list[tuple[float, int]]] = {kind: [] for kind in LONGEST}
    with ProcessPoolExecutor(jobs) as pool:
        for seconds, seed, kind in pool.map(longest, plays, chunksize=5):
            found[kind].append((seconds, seed))
    is_all = True
    for kind, waits in found.items():
        waits.sort()
        middle, (worst, seed) = waits[len(waits) // 2][0], waits[-1]
        is_all = is_all and worst <= LONGEST[kind]
        say(
            f"{kind}: the longest silence is {middle:.2f} s in the middle,"
            f" {worst:.2f} s at most (seed {seed}); promised {LONGEST[kind]:.1f} s"
        )
    return is_all


def first_found(mistake: str, seeds: Sequence[int]) -> Result | None:
    """Play a mistake until it is found; None: it never was."""
    for seed in seeds:
        result = play(seed, frozenset({mistake}))
        if result.breaches:
            return result
    return None


def play_right(seeds: Sequence[int], jobs: int) -> bool:
    """Play seeds without a mistake; tell whether all went well."""
    began, failed, events = time.perf_counter(), 0, 0
    happened: Counter[str] = Counter()
    with ProcessPoolExecutor(jobs) as pool:
        for result in pool.map(play, seeds, chunksize=20):
            events += result.events
            happened.update(result.happened)
            if result.breaches:
                failed += 1
                tell(result)
    some = [seed for seed in seeds if seed % 50 == 0]
    is_quiet = not some or play_silence(some, jobs)
    seconds = time.perf_counter() - began
    counts = ", ".join(f"{n} {what}" for what, n in sorted(happened.items()))
    say(
        f"\n{len(seeds)} seeds, {events} events, {failed} failed; nodes {counts};"
        f" {seconds:.1f} s on {jobs} jobs"
    )
    return is_quiet and not failed


def play_mistakes(seeds: Sequence[int], jobs: int) -> bool:
    """Play each mistake; tell whether all were found."""
    is_all = True
    with ProcessPoolExecutor(jobs) as pool:
        results = pool.map(partial(first_found, seeds=seeds), MISTAKES)
        for mistake, result in zip(MISTAKES, results, strict=True):
            is_all = is_all and result is not None
            found = (
                f"seed {result.seed}: {result.breaches[0]}" if result else "not found"
            )
            say(f"{mistake:20} {found}")
    return is_all


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what was asked for; give the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.nodes_simulation", description="Simulate many nodes."
    )
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--from", type=int, default=0, dest="start", metavar="K")
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--mistakes", action="store_true", help="play each mistake")
    options = parser.parse_args(arguments)
    seeds: Sequence[int] = range(options.start, options.start + options.seeds)
    if options.seed is not None:
        seeds = [options.seed]
    plays = play_mistakes if options.mistakes else play_right
    return 0 if plays(seeds, options.jobs) else 1


if __name__ == "__main__":
    sys.exit(main())
