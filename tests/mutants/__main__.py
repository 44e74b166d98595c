"""Makes each mistake in a copy of the program, and shows that the tests go red.

    python -m tests.mutants [part of a name] [--some N] [--seed S]
    python -m tests.mutants --random N [--seed S] [--under PATH] [--within SECONDS]

The first makes those that are written down, or N of them by chance, and ends with 1 if
one was not found. The second makes mistakes at random lines and prints which of them
the tests do not find.
"""

from __future__ import annotations

import argparse
import os
import random  # noqa: TID251  for dice with a seed alone
import secrets
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.mutants.mutants import MUTANTS
from tests.mutants.sampled import Sample, copy_of, forget, sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.mutants.mistake import Mutant

ROOT = Path(__file__).parents[2]
COPIED = ("runtime", "actors", "connectors", "config", "tests", "pyproject.toml")
READ = ("docs", "README.md", "CHANGELOG.md", "benchmarks")
"""What else tests read; a written mistake names the tests that find it."""

LIMIT = 300.0
"""Seconds after which a test run counts as red: a mistake may make it hang."""

HUNG = "Timeout ("
"""How a process ends that a test does not give back; see tests/support/hangs.py."""

AT_ONCE = 2


class Verdict(NamedTuple):
    """What became of one mutant."""

    mutant: Mutant
    is_found: bool
    why: str


def main(arguments: list[str]) -> int:
    """Try mistakes, written ones or random ones; give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("words", nargs="*", help="part of the name of a written one")
    parser.add_argument("--random", type=int, metavar="N", help="N random ones instead")
    parser.add_argument("--some", type=int, metavar="N", help="N of the written ones")
    parser.add_argument("--seed", type=int, help="which ones; else a new seed")
    parser.add_argument("--under", default="", help="a path that they lie below")
    parser.add_argument("--within", type=float, default=0.0, help="seconds, at most")
    parser.add_argument("--workers", type=int, default=AT_ONCE)
    chosen = parser.parse_args(arguments)
    seed = secrets.randbelow(10**6) if chosen.seed is None else chosen.seed
    if not chosen.random:
        words = " ".join(chosen.words)
        mutants = [each for each in MUTANTS if words in each.name]
        if chosen.some:
            print(f"{chosen.some} of {len(mutants)}: --seed {seed}")  # noqa: T201
            dice = random.Random(seed)  # noqa: S311
            mutants = dice.sample(mutants, min(chosen.some, len(mutants)))
        return try_written(mutants)
    wanted = Sample(chosen.random, seed, chosen.under, chosen.within, chosen.workers)
    sample(ROOT, (*COPIED, *READ), wanted)
    return 0


def try_written(chosen: Sequence[Mutant]) -> int:
    """Try mutants that are written down; give the exit code."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        verdicts = list(pool.map(partial(judge, Path(folder)), chosen))
    for verdict in verdicts:
        word = "found" if verdict.is_found else "NOT FOUND"
        print(f"{word:10} {verdict.mutant.name}: {verdict.why}")  # noqa: T201
    found = sum(verdict.is_found for verdict in verdicts)
    print(f"{found} of {len(verdicts)} mutants found")  # noqa: T201
    return 0 if verdicts and found == len(verdicts) else 1


def judge(folder: Path, mutant: Mutant) -> Verdict:
    """Make one mistake and run the tests that must find it."""
    name = mutant.name.replace(" ", "_").replace("'", "")
    copy = copy_of(ROOT, COPIED, folder / name)
    file = copy / mutant.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.before) != 1:
        return Verdict(mutant, is_found=False, why=f"its line is not in {mutant.file}")
    file.write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")
    forget(file)
    return Verdict(mutant, *run_tests(copy, mutant))


def run_tests(copy: Path, mutant: Mutant) -> tuple[bool, str]:
    """Run the tests in a copy: whether they went red, and the first that did."""
    command = (sys.executable, "-m", "pytest", "-q", "-x", "-m", "not live")
    environment = os.environ | {"PYTHONPATH": str(copy)}
    try:
        done = subprocess.run(
            (*command, "-p", "no:cacheprovider", *mutant.tests),
            cwd=copy,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True, "the tests hung"
    if HUNG in done.stderr:  # pytest ends itself then, without a word of its own
        return True, "the tests hung"
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    if done.returncode == 1 and failed:
        return True, failed[0].removeprefix("FAILED ").split(" - ")[0]
    last = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1:]
    return False, f"pytest ended with {done.returncode}: {''.join(last)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
