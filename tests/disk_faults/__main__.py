"""`python -m tests.disk_faults`: fail every step and cut the power at every moment.

Without `--all` it does what the test suite does; with it every fault on every
workload, passing and lasting, and `--seeds` power cuts per moment with any sectors.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

import trio

from tests.disk_faults.faults import FEW, LASTING, ORDINARY, PASSING, explore
from tests.disk_faults.power import cut_everywhere, dice_with_seeds
from tests.disk_faults.workload import STANDARD, WORKLOADS, Workload


async def try_workload(workload: Workload, seeds: int, *, is_all: bool) -> int:
    """Do all that is asked for with one workload; gives the number of points."""
    usual = ORDINARY if workload is STANDARD else FEW
    total = 0
    for fault in (*PASSING, *LASTING) if is_all else usual:
        with tempfile.TemporaryDirectory() as folder:
            count = await explore(workload, fault, Path(folder))
        sys.stdout.write(f"{workload.name:9} {fault.text:32} {count:5} steps\n")
        total += count
    with tempfile.TemporaryDirectory() as folder:
        dice = dice_with_seeds(seeds)
        count = await cut_everywhere(workload, Path(folder), dice)
    sys.stdout.write(f"{workload.name:9} {'power cut':32} {count:5} disks\n")
    sys.stdout.flush()
    return total + count


async def try_all(seeds: int, *, is_all: bool) -> None:
    """Do all that is asked for, and say in one line how it went."""
    began = time.perf_counter()
    total = 0
    for workload in WORKLOADS:
        total += await try_workload(workload, seeds, is_all=is_all)
    seconds = time.perf_counter() - began
    sys.stdout.write(f"{total} points, 0 violations, {seconds:.1f} s\n")


def main() -> NoReturn:
    """Read the command line, and end with 0 if all held."""
    parser = argparse.ArgumentParser(prog="python -m tests.disk_faults")
    parser.add_argument("--all", action="store_true", help="every fault there is")
    parser.add_argument("--seeds", type=int, help="random disks per moment")
    chosen = parser.parse_args()
    seeds = chosen.seeds if chosen.seeds is not None else 20 if chosen.all else 1
    try:
        trio.run(lambda: try_all(seeds, is_all=chosen.all))
    except AssertionError as error:
        sys.exit(f"does not hold: {error} ({error.__cause__!r})")
    sys.exit(0)


if __name__ == "__main__":
    main()
