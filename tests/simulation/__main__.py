"""Plays many seeds on all processors: `python -m tests.simulation --seeds 1000`.

Every third seed plays rooms (`rooms.py`); all others mean what they meant before those.
Every seventh plays its people twice more, with a model that hangs (`hangs.py`).
Prints a line for each seed that failed, with the command that plays it again, and the
minimal trace of the first few. Ends with status 1 if any failed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.simulation.crew import again, be_quiet, outcomes
from tests.simulation.run import Outcome

# Chosen: more failing seeds than one would look at in one go.
SHOWN = 5


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def tell(outcome: Outcome, *, with_trace: bool) -> None:
    """Print what became of a failing seed."""
    say(f"\nseed {outcome.seed} failed; again: {again(outcome.seed)}")
    for violation in outcome.violations[:SHOWN]:
        say(f"  {violation}")
    for violation in outcome.tolerated[:SHOWN]:
        say(f"  tolerated: {violation}")
    if with_trace:
        say(f"  faults: {', '.join(outcome.faults) or 'none'}")
        for line in outcome.trace:
            say(f"  {line}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what was asked for; give the exit status."""
    options = _options(arguments)
    seeds: Sequence[int] = range(options.start, options.start + options.seeds)
    if options.seed is not None:
        seeds = [options.seed]
    began = time.perf_counter()
    found: Counter[str] = Counter()
    events: list[int] = []
    failed = tolerated = 0
    be_quiet()
    if options.traces is not None:
        options.traces.mkdir(parents=True, exist_ok=True)
    for outcome in outcomes(seeds, options.jobs, options.traces):
        events.append(outcome.events)
        tolerated += bool(outcome.tolerated)
        wrong = (*outcome.violations, *(outcome.tolerated if options.strict else ()))
        if wrong:
            failed += 1
            found.update({each.invariant for each in wrong})
            tell(outcome, with_trace=failed <= SHOWN)
        if options.seed is not None:
            say(f"seed {outcome.seed}: digest {outcome.digest}")
    seconds = time.perf_counter() - began
    by_invariant = ", ".join(f"{name}: {n}" for name, n in sorted(found.items()))
    say(
        f"\n{len(events)} seeds, {sum(events)} events, {failed} failed"
        f"{f' ({by_invariant})' if failed else ''}, {tolerated} tolerated;"
        f" {seconds:.1f} s, {len(events) / seconds:.1f} seeds/s on {options.jobs} jobs"
    )
    return 1 if failed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation", description="Simulate the whole runtime."
    )
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument(
        "--from", type=int, default=0, dest="start", metavar="K", help="the first seed"
    )
    parser.add_argument("--seed", type=int, help="this one only, with its digest")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes"
    )
    parser.add_argument(
        "--traces",
        type=Path,
        metavar="FOLDER",
        help="write the whole trace of each seed there, to compare two versions",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="also fail where an order or a repeat is excused by an actor's death",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
