"""`python -m benchmarks`: measure, print one JSON line per figure, compare, keep.

`python -m benchmarks cost` counts instead, the same on every machine
(`benchmarks/cost/ledger.py`). `python -m benchmarks against COMMIT NAME…` measures a
commit and this tree in turns (`benchmarks/against.py`).

Figures go to standard output, everything for the reader's patience to standard
error. A run never fails because something is slow: a shared machine is slow for
reasons of its own.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec

from benchmarks import against
from benchmarks.against import tell
from benchmarks.cost import ledger as cost
from benchmarks.machine import setting
from benchmarks.peers import installed as peers
from benchmarks.record import Record, compared, line, load, save
from benchmarks.registry import BENCHMARKS
from benchmarks.runner import Options, records, run
from benchmarks.table import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.peers.installed import Peer

FEWEST_RUNS = 5
QUICK_RUNS = 2


class Arguments(msgspec.Struct, frozen=True):
    """What the command line says."""

    names: list[str]
    runs: int
    seed: int
    size: Annotated[int, msgspec.Meta(ge=1)] | None
    quick: bool
    peers: bool
    table: bool
    compare: Path | None
    save: Path | None
    show: Path | None

    @property
    def options(self) -> Options:
        """How to run."""
        runs = QUICK_RUNS if self.quick else max(FEWEST_RUNS, self.runs)
        return Options(runs, is_quick=self.quick, seed=self.seed, size=self.size)


def read_arguments(words: Sequence[str] | None = None) -> Arguments:
    """Read a command line; without one, this process's.

    Raises:
        SystemExit: it cannot be understood, or asks for help.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    add = parser.add_argument
    add("names", nargs="*", help=f"which; all without one: {', '.join(BENCHMARKS)}")
    add("--runs", type=int, default=FEWEST_RUNS, help="counted rounds; at least 5")
    add("--seed", type=int, default=1, help="decides every order; default 1")
    add("--size", type=int, help="how much one round does, in place of its own size")
    add("--quick", action="store_true", help="tiny sizes: shows only that all runs")
    add("--peers", action="store_true", help="others too, in turn with Callboard")
    add("--table", action="store_true", help="print Markdown in place of JSON lines")
    add("--compare", type=Path, help="a kept baseline to compare with")
    add("--save", type=Path, help="keep the figures in this file, as a baseline")
    add("--show", type=Path, help="print this file's figures and measure nothing")
    arguments = msgspec.convert(vars(parser.parse_args(words)), Arguments)
    unknown = [name for name in arguments.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; known: {', '.join(BENCHMARKS)}")
    return arguments


def main(arguments: Arguments) -> None:
    """Measure, or read, and print."""
    printed: list[Record] = []
    for record in found(arguments):
        if arguments.table:
            printed.append(record)
        else:
            print(line(record), flush=True)
    if arguments.table:
        print(table(printed))


def found(arguments: Arguments) -> Iterator[Record]:
    """Give the records to print, each benchmark's as soon as it has been measured."""
    baseline = load(arguments.compare) if arguments.compare is not None else []
    if arguments.show is not None:
        wanted = arguments.names or BENCHMARKS
        shown = [old for old in load(arguments.show) if old.benchmark in wanted]
        yield from (compared(record, baseline) for record in shown)
        return
    invited = present_peers() if arguments.peers else []
    here = setting(arguments.seed)
    for name in arguments.names or BENCHMARKS:
        measured = run(BENCHMARKS[name], invited, arguments.options, tell)
        fresh = list(records(name, measured, here))
        if arguments.save is not None:
            save(arguments.save, fresh)
        for record in fresh:
            against = compared(record, baseline)
            tell_comparison(against)
            yield against


def present_peers() -> list[Peer]:
    """Give the peers that are installed; say of the others how to install them."""
    installed, missing = peers.load()
    for text in missing:
        tell(text)
    return installed


def tell_comparison(record: Record) -> None:
    """Say how a figure compares with the baseline, if it is in there."""
    if record.against_baseline is None:
        return
    verdict = "SLOWER than the spread explains" if record.is_slower else "not slower"
    figure = f"{record.benchmark} {record.figure} ({record.subject})"
    times = f"{record.against_baseline:.2f} times as good as the baseline"
    tell(f"{figure}: {times}: {verdict}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["cost"]:
        cost.main(sys.argv[2:])
    elif sys.argv[1:2] == ["against"]:
        against.main(sys.argv[2:])
    else:
        main(read_arguments())
