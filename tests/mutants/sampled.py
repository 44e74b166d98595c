"""Makes mistakes at random lines, and shows which of them no test finds.

What survives is for a look: some mistakes change nothing that anybody could notice.
"""

from __future__ import annotations

import json
import os
import random  # noqa: TID251  for dice with a seed alone
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, NamedTuple

from tests.mutants.chance import draw
from tests.mutants.likely import Likely
from tests.mutants.nearest import Nearest, files_of_tests, kept, note
from tests.mutants.related import outcome_of
from tests.mutants.warm import Warm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.mutants.chance import Slip

HANGS = 10
"""Seconds after which a test counts as hung, on a machine with nothing else to do."""

LONGEST = 1800.0
"""Seconds that a few test files may take while it is noted what they run."""

LIMIT = 120.0
"""Seconds that the tests for one mistake may take together."""

FILES_AT_ONCE = 40
"""Test files that are noted in one process."""

LIKELY = (0, 1, 5, 20)
"""Test files that are run for each mistake where time is short: first the likeliest,
for to import all of them takes longer than to run this one; then those after it."""

UNUSED = "F,ARG,B007,RUF059"
"""Rules of ruff about imports, arguments and variables that nothing uses."""

NEAREST = 8
"""Tests that are run at first, for the same reason, …"""

NEAREST_FILES = 3
"""… and files that they may come from."""


class Outcome(NamedTuple):
    """What became of one mistake."""

    slip: Slip
    word: str
    """found, hung, refused (by ruff or mypy alone), survived, unfinished, or not
    tried."""

    why: str


class Sample(NamedTuple):
    """What is to be drawn, and what that may cost."""

    number: int
    seed: int
    under: str
    """A path; empty: the whole program."""

    within: float
    """Seconds; zero: as long as it takes."""

    workers: int


def sample(root: Path, copied: Sequence[str], wanted: Sample) -> None:
    """Draw mistakes, try each, and print what survives."""
    dice = random.Random(wanted.seed)  # noqa: S311  repeatable, no secret
    slips = draw(root, wanted.under, wanted.number, dice)
    print(f"seed {wanted.seed}: {len(slips)} random mistakes", flush=True)  # noqa: T201
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(wanted.workers) as pool,
    ):
        copies = [
            copy_of(root, copied, Path(folder) / str(number))
            for number in range(wanted.workers)
        ]
        sampler = Sampler(root, wanted, copies)
        sampler.learn(pool)
        outcomes: list[Outcome] = []
        for outcome in pool.map(sampler.judge, slips):
            outcomes.append(outcome)
            shown = outcome.slip.shown((root / outcome.slip.file).read_bytes())
            print(f"{outcome.word:9} {shown}: {outcome.why}", flush=True)  # noqa: T201
        sampler.close()
    print(summary(wanted, outcomes))  # noqa: T201


class Sampler:
    """Tries mistakes, one in each copy of the program at a time.

    Args:
        root: of the repository.
        wanted: what is drawn.
        copies: of the program.
    """

    def __init__(self, root: Path, wanted: Sample, copies: Sequence[Path]) -> None:
        self._root = root
        self._wanted = wanted
        self._until = time.monotonic() + (wanted.within or float("inf"))
        self._left = wanted.number
        """Mistakes that are still to be tried."""

        self._nearest = Nearest(root, kept())
        self._likely = Likely(root)
        self._red: set[str] = set()
        """Tests that are red without any mistake."""

        self._green: set[str] = set()
        """Tests that are green without."""

        self._copies: SimpleQueue[Warm] = SimpleQueue()
        for each in copies:
            self._copies.put(Warm(each))

    def learn(self, pool: ThreadPoolExecutor) -> None:
        """Learn which tests run what; where time is short, of what was noted before."""
        files = () if self._wanted.within else files_of_tests(self._root)
        if missing := self._nearest.unnoted(files):
            print(f"running {len(missing)} test files", flush=True)  # noqa: T201
            starts = range(0, len(missing), FILES_AT_ONCE)
            batches = [missing[start : start + FILES_AT_ONCE] for start in starts]
            list(pool.map(self._note, batches))
        self._nearest.read()

    def _note(self, files: Sequence[str]) -> None:
        at = self._copies.get()
        note(at.folder, self._nearest.folder, files, LONGEST)
        self._copies.put(at)

    def judge(self, slip: Slip) -> Outcome:
        """Try one mistake."""
        at = self._copies.get()
        left = self._until - time.monotonic()
        share = left * self._wanted.workers / self._left
        self._left -= 1
        try:
            if left <= 0:
                return Outcome(slip, "not tried", "no time was left")
            nearest = self._nearest.to(slip, self._likely.naming(slip))
            outcomes: list[Outcome] = []
            for tests in self._stages(slip, nearest):
                began = time.monotonic()
                outcome = self._proved(at, slip, tests, max(0.0, min(share, LIMIT)))
                outcomes.append(outcome)
                if outcome.word in {"found", "unfinished"}:
                    break
                share -= time.monotonic() - began  # another test may find what hangs
            known = verdict(outcomes, is_known=bool(nearest))
            known = known or Outcome(slip, "survived", "no test is near it")
            left = max(0.0, min(self._until - time.monotonic(), LIMIT))
            if known.word in {"survived", "hung"} and (
                why := refusal(self._root, slip, at.folder, left)
            ):
                return Outcome(slip, "refused", why)
            return known
        finally:
            self._copies.put(at)

    def _stages(self, slip: Slip, nearest: list[str]) -> Iterator[list[str]]:
        """Give the tests that are run for a mistake, as long as it survives.

        Where none is known to run the line, the likeliest files; and a few of them in
        any case: they may start a program that runs it.
        """
        files = dict.fromkeys(each.split("::", maxsplit=1)[0] for each in nearest)
        near = tuple(f"{file}::" for file in list(files)[:NEAREST_FILES])
        few = [each for each in nearest if each.startswith(near)][:NEAREST]
        if few:
            yield few
        if rest := [each for each in nearest if each not in few]:
            yield rest
        likely = self._likely.to(slip)
        for first, most in pairwise(LIKELY[: -1 if nearest else None]):
            yield likely[first:most]

    def close(self) -> None:
        """End the processes that run the tests."""
        while not self._copies.empty():
            self._copies.get().close()

    def _proved(
        self, at: Warm, slip: Slip, tests: Sequence[str], limit: float
    ) -> Outcome:
        """Try a mistake; a test that is red without it, too, has not found it."""
        while True:
            outcome = attempt(at, slip, tests, limit, tuple(self._red))
            test = outcome.why
            if outcome.word != "found" or "::" not in test or test in self._green:
                return outcome
            (self._red if is_red(at, test) else self._green).add(test)


def verdict(outcomes: Sequence[Outcome], *, is_known: bool) -> Outcome | None:
    """Say what became of a mistake, by what became of it in each stage.

    Args:
        outcomes: of the stages, in their order.
        is_known: whether the first stages run its line for certain: what survives
            these has survived, though time may have been too short for more.

    Returns:
        None if no test was run.
    """
    by_word = {outcome.word: outcome for outcome in reversed(outcomes)}
    last = ("survived", "unfinished") if is_known else ("unfinished", "survived")
    words = ("found", "hung", *last)
    return next((by_word[word] for word in words if word in by_word), None)


def summary(wanted: Sample, outcomes: Sequence[Outcome]) -> str:
    """Say how many were found."""
    words = [each.word for each in outcomes]
    unfinished = words.count("unfinished")
    tried = len(words) - words.count("not tried") - unfinished
    refused = words.count("refused")
    found = words.count("found") + refused
    score = 100 * found / tried if tried else 0
    again = f"--random {wanted.number} --seed {wanted.seed}"
    if wanted.under:
        again += f" --under {wanted.under}"
    return (
        f"{found} of {tried} random mistakes found ({score:.0f} %), {refused} of them "
        f"by ruff or mypy alone, {words.count('hung')} more only by hanging, "
        f"{unfinished} more had too little time; the same again: {again}"
    )


def copy_of(root: Path, names: Sequence[str], to: Path) -> Path:
    """Copy the program and its tests, with what Python compiled of them.

    Compiling all of it again takes longer than most of the tests that a mistake needs.
    """
    for name in names:
        source = root / name
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            ignored = shutil.ignore_patterns("*.pyc.*")  # being written
            shutil.copytree(source, to / name, ignore=ignored)
        else:
            shutil.copy(source, to / name)
    return to


def refusal(root: Path, slip: Slip, folder: Path, limit: float = LIMIT) -> str:
    """Say why ruff or mypy refuses a mistake; empty if neither does in `limit` seconds.

    Args:
        root: of the repository; mypy's cache there spares it the other modules.
        slip: the mistake.
        folder: where the file with the mistake in it may be written.
    """
    text = slip.make((root / slip.file).read_bytes())
    if unused := unused_name(root, slip.file, text):
        return unused
    shadow = folder / "shadow.py"
    shadow.write_bytes(text)
    mypy = (sys.executable, "-m", "mypy", "--no-pretty", "--hide-error-context")
    try:
        done = subprocess.run(
            (*mypy, "--shadow-file", slip.file, str(shadow), slip.file),
            cwd=root,
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    its = [each for each in done.stdout.splitlines() if each.startswith(slip.file)]
    return its[0] if done.returncode == 1 and its else ""


def unused_name(root: Path, file: str, text: bytes) -> str:
    """Say which name ruff finds that nothing in a file uses, though it is there to be.

    Nothing else that ruff says counts: that a line is too long, or ugly, comes from how
    the mistake is made.
    """
    ruff = (sys.executable, "-m", "ruff", "check", "--select", UNUSED)
    shown = ("--no-cache", "--output-format", "concise", "--stdin-filename", file, "-")
    done = subprocess.run(
        (*ruff, *shown), cwd=root, input=text, capture_output=True, check=False
    )
    its = [each for each in done.stdout.decode().splitlines() if each.startswith(file)]
    return its[0] if done.returncode == 1 and its else ""


def attempt(
    at: Warm,
    slip: Slip,
    tests: Sequence[str],
    limit: float = LIMIT,
    left_out: Sequence[str] = (),
) -> Outcome:
    """Make a mistake in a copy, run tests for at most `limit` seconds, take it back."""
    if not tests:
        return Outcome(slip, "survived", "no test runs the line")
    file = at.folder / slip.file
    text = file.read_bytes()
    file.write_bytes(slip.make(text))
    forget(file)
    try:
        return run(at, slip, tests, limit, left_out)
    finally:
        file.write_bytes(text)
        forget(file)


def forget(file: Path) -> None:
    """Remove what Python compiled of a file: it looks at size and second only."""
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()


def is_red(at: Warm, test: str) -> bool:
    """Tell whether a test is red in a copy as it stands."""
    return at.run(("-q", "-p", "no:cacheprovider", test), LIMIT) != 0


def run(
    at: Warm,
    slip: Slip,
    tests: Sequence[str],
    limit: float,
    left_out: Sequence[str],
) -> Outcome:
    """Run the tests that are the nearest to a mistake."""
    nearest = at.folder / "nearest.txt"
    nearest.write_text("\n".join(tests), encoding="utf-8")
    outcome_of(nearest).unlink(missing_ok=True)
    options = ("-q", "-p", "no:randomly", "-p", "no:cacheprovider")
    # Others may be at work: what takes long then need not hang.
    hangs = HANGS * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    limits = ("-o", f"a_test_may_take={hangs}", "-o", "a_process_may_take_longer=3")
    choosing = ("-p", "tests.mutants.related", f"--nearest={nearest}")
    without = [f"--deselect={test}" for test in left_out]
    files = dict.fromkeys(each.split("::", maxsplit=1)[0] for each in tests)
    status = at.run((*options, *limits, *choosing, *without, *files), limit)
    if status is None:
        if not outcome_of(nearest).exists():
            return Outcome(slip, "unfinished", f"time was over before {tests[0]}")
        told = json.loads(outcome_of(nearest).read_bytes())
        word = "hung" if told["hung"] else "unfinished"
        where = told["at"] or f"the files from {tests[0]} on"
        return Outcome(slip, word, f"time was over in {where}")
    if not outcome_of(nearest).exists():  # not even the first test could begin
        return Outcome(slip, "found", f"pytest ended with {status}")
    told = json.loads(outcome_of(nearest).read_bytes())
    if told["failed"]:
        return Outcome(slip, "found", told["failed"])
    hung = [*told["hung"], *([told["at"]] if told["at"] else [])]
    if hung:
        return Outcome(slip, "hung", hung[0])
    return Outcome(
        slip, "survived", f"green: {len(tests)} nearest, the first {tests[0]}"
    )
