"""`python -m benchmarks against COMMIT NAME…`: this tree and a commit take turns.

A shared machine is faster in one minute than in the next. So the commit is checked out
beside this tree, both measure the same benchmarks in turn, A B A B, each in processes
of its own, and only neighbours are compared: how many times as good this tree is, with
the lowest and the highest ratio. Each measures with the benchmarks that it has itself.

The commit gets an environment of its own if it needs other packages than this tree.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from benchmarks.arithmetic import Summary, summarise, times_better
from benchmarks.figure import OURS, is_rate
from benchmarks.machine import ROOT, cpu_model
from benchmarks.table import number

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

TURNS = 3
CONSTRAINTS = "constraints.txt"
HEAD = ("benchmark", "figure", "{commit}", "this tree", "times as good", "over turns")


class Comparison(msgspec.Struct, frozen=True):
    """What the command line says."""

    commit: str
    names: list[str]
    turns: Annotated[int, msgspec.Meta(ge=1)]


class Measured(msgspec.Struct, frozen=True):
    """The part of a record that every commit has."""

    benchmark: str
    subject: str
    figure: str
    unit: str
    median: float


Turn = dict[tuple[str, str], Measured]
"""By benchmark and figure."""


class Ratio(msgspec.Struct, frozen=True):
    """One figure of both."""

    benchmark: str
    figure: str
    unit: str
    before: float
    """Median over the turns."""

    now: float
    times: Summary
    """How many times as good it is now, turn by turn."""


def read_arguments(words: Sequence[str]) -> tuple[Comparison, list[str]]:
    """Read the command line; what it does not know is for the benchmarks.

    Raises:
        SystemExit: it cannot be understood, or asks for help.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks against",
        description=__doc__,
        epilog="--size, --runs, --seed and --quick are as for `python -m benchmarks`",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("commit", help="what to compare with: a commit, a branch or a tag")
    add("names", nargs="+", help="which benchmarks")
    add("--turns", type=int, default=TURNS, help=f"of each; default {TURNS}")
    known, others = parser.parse_known_args(words)
    try:
        return msgspec.convert(vars(known), Comparison), others
    except msgspec.ValidationError as error:
        parser.error(str(error))


@contextmanager
def checked_out(root: Path, commit: str) -> Generator[Path]:
    """Have a commit in a folder of its own while the block runs.

    Raises:
        SystemExit: there is no such commit, or no repository.
    """
    with tempfile.TemporaryDirectory(prefix="callboard-against-") as folder:
        tree = Path(folder) / "tree"
        git = ["git", "-C", str(root), "worktree"]
        added = subprocess.run(  # noqa: S603
            [*git, "add", "--quiet", "--detach", str(tree), commit], check=False
        )
        if added.returncode:
            sys.exit(f"{commit!r} cannot be checked out; git says why above")
        try:
            yield tree
        finally:
            remove = [*git, "remove", "--force", str(tree)]
            subprocess.run(remove, check=True)  # noqa: S603


def needs(tree: Path) -> tuple[list[str], str]:
    """Give the packages that a tree needs, and in which releases."""
    text = (tree / "pyproject.toml").read_text(encoding="utf-8")
    constraints = tree / CONSTRAINTS
    releases = constraints.read_text(encoding="utf-8") if constraints.is_file() else ""
    return tomllib.loads(text)["project"].get("dependencies", []), releases


def python_for(tree: Path, root: Path) -> str:
    """Give the Python to measure a commit with: this one, or one of its own.

    Raises:
        subprocess.CalledProcessError: its packages cannot be installed; pip said why.
    """
    if needs(tree) == needs(root):
        return sys.executable
    tell("the commit needs other packages: installing them")
    own = tree / ".venv"
    subprocess.run([sys.executable, "-m", "venv", str(own)], check=True)  # noqa: S603
    python = str(own / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "-e", f"{tree}[web]"]
    if (tree / CONSTRAINTS).is_file():
        pip += ["-c", str(tree / CONSTRAINTS)]
    subprocess.run(pip, check=True)  # noqa: S603
    return python


def measure(tree: Path, python: str, words: Sequence[str]) -> Turn:
    """Run benchmarks of a tree once.

    Raises:
        subprocess.CalledProcessError: they failed; they said why on standard error.
    """
    done = subprocess.run(  # noqa: S603
        [python, "-m", "benchmarks", *words],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE,
        check=True,
    )
    found = [msgspec.json.decode(x, type=Measured) for x in done.stdout.splitlines()]
    return {(x.benchmark, x.figure): x for x in found if x.subject == OURS}


def ratios(pairs: Sequence[tuple[Turn, Turn]]) -> Iterator[Ratio]:
    """Compare turn by turn what both have measured, the commit's first in each pair.

    Raises:
        ValueError: there was no turn.
    """
    if not pairs:
        raise ValueError("no turn was measured, so there is nothing to compare")
    for key, first in pairs[0][1].items():
        if not all(key in before and key in now for before, now in pairs):
            continue
        both = [(before[key].median, now[key].median) for before, now in pairs]
        rate = is_rate(first.unit)
        times = [times_better(now, was, more_is_better=rate) for was, now in both]
        yield Ratio(
            benchmark=first.benchmark,
            figure=first.figure,
            unit=first.unit,
            before=summarise([was for was, _ in both]).median,
            now=summarise([now for _, now in both]).median,
            times=summarise(times),
        )


def table(found: Sequence[Ratio], commit: str) -> str:
    """Draw the comparison in Markdown."""
    heads = tuple(head.format(commit=commit) for head in HEAD)
    rows = [heads, ("---",) * len(heads)]
    rows += [
        (
            each.benchmark,
            each.figure,
            f"{number(each.before)} {each.unit}",
            f"{number(each.now)} {each.unit}",
            f"{each.times.median:.3g}",
            f"{each.times.lowest:.3g} to {each.times.highest:.3g}",
        )
        for each in found
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def compare(root: Path, wanted: Comparison, options: Sequence[str]) -> list[Ratio]:
    """Measure in turns, and compare.

    Args:
        root: this tree.
        wanted: which commit and benchmarks, and how often.
        options: for both, as `--size 1000`.

    Raises:
        SystemExit: the commit cannot be checked out.
        subprocess.CalledProcessError: a benchmark failed, or an installation.
    """
    words = [*wanted.names, *options]
    with checked_out(root, wanted.commit) as tree:
        python = python_for(tree, root)
        pairs: list[tuple[Turn, Turn]] = []
        for turn in range(1, wanted.turns + 1):
            tell(f"turn {turn} of {wanted.turns}: {wanted.commit}")
            before = measure(tree, python, words)
            tell(f"turn {turn} of {wanted.turns}: this tree")
            pairs.append((before, measure(root, sys.executable, words)))
    return list(ratios(pairs))


def tell(text: str) -> None:
    """Write a line for the person who waits."""
    print(text, file=sys.stderr, flush=True)


def main(words: Sequence[str]) -> None:
    """Measure, compare and print; see above."""
    wanted, options = read_arguments(words)
    try:
        found = compare(ROOT, wanted, options)
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(error.cmd)} failed with {error.returncode}; see above")
    print(table(found, wanted.commit))
    load = os.getloadavg()[0]
    print(f"\n{cpu_model()}, {os.cpu_count()} cores, load {load:.1f} at the end.")


if __name__ == "__main__":
    main(sys.argv[1:])
