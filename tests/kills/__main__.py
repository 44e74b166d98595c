"""`python -m tests.kills --kills 40 --seed 7`: kill a loaded server, look what is left.

Most of them while people use HTTP, a quarter while they use a platform that knows no
ids, an eighth while nobody writes and something is due every second. Ends with 0 and
one line if nothing acknowledged was lost, nothing is out of order, nothing was said
twice but where it may be, and what was due was carried out once.
"""

from __future__ import annotations

import argparse
import random  # noqa: TID251  for dice with a seed alone
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

import trio

from tests.kills.due import kill_due, plan_due
from tests.kills.harness import Report, kill_many, plan
from tests.kills.twice import kill_plain, plan_plain

PER_DATABASE = 200
"""Most kills on one database; then a new one is begun."""


def percentile(values: list[float], part: float) -> float:
    """Give the value that so many lie below."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0


def summary(report: Report, seconds: float) -> str:
    """Say in one line what came of it."""
    verdict, restarts = report.verdict, report.restarts
    missed = sum(report.missed.values())
    return (
        f"{report.kills} kills ({missed} not at their point),"
        f" {verdict.acknowledged} acknowledged, {verdict.answered} answered,"
        f" {verdict.lost} lost, {verdict.out_of_order} out of order,"
        f" {verdict.said_again} said again in the window, and {verdict.said_twice}"
        f" where no ids are known, each counted, {seconds:.0f} s,"
        f" restart to ready p50 {percentile(restarts, 0.5):.2f} s"
        f" p99 {percentile(restarts, 0.99):.2f} s"
    )


async def run(kills: int, dice: random.Random, folder: Path) -> Report:
    """Kill so many processes, on as many databases as that takes."""
    total = Report(at_points={}, missed={}, restarts=[])
    by_due, by_plain = kills // 8, kills // 4
    by_people = kills - by_due
    while total.kills < kills:
        here = folder / f"database{total.kills}"
        here.mkdir()
        by_http = by_people - by_plain - total.kills
        if by_http > 0:
            chosen = plan(min(PER_DATABASE, by_http), dice)
            report = await kill_many(here, chosen, dice)
        elif total.kills < by_people:
            chosen = plan_plain(min(PER_DATABASE, by_people - total.kills), dice)
            report = await kill_plain(here, chosen, dice)
        else:
            chosen = plan_due(min(PER_DATABASE, kills - total.kills), dice)
            report = await kill_due(here, chosen, dice)
        total.kills += report.kills
        total.restarts += report.restarts
        total.verdict.add(report.verdict)
        for counts, more in (
            (total.at_points, report.at_points),
            (total.missed, report.missed),
        ):
            for point, count in more.items():
                counts[point] = counts.get(point, 0) + count
    return total


def main() -> NoReturn:
    """Read the command line, kill, and say what is left."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills")
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--points", action="store_true", help="list deaths by point")
    chosen = parser.parse_args()
    began = time.perf_counter()
    dice = random.Random(chosen.seed)  # noqa: S311  repeatable, no secret
    with tempfile.TemporaryDirectory(prefix="callboard-kills-") as folder:
        report = trio.run(run, chosen.kills, dice, Path(folder))
    if chosen.points:
        for point, count in sorted(report.at_points.items()):
            sys.stdout.write(f"{point:24}{count:5}\n")
        for point, count in sorted(report.missed.items()):
            sys.stdout.write(f"{point:24}{count:5} did not come there\n")
    sys.stdout.write(summary(report, time.perf_counter() - began) + "\n")
    for fault in report.verdict.faults[:20]:
        sys.stdout.write(f"must not be: {fault}\n")
    sys.exit(1 if report.verdict.faults else 0)


if __name__ == "__main__":
    main()
