"""Runs benchmarks round by round and puts their figures together.

The subjects of a benchmark take turns, A B A B, so that what else the machine does
meets all of them alike. Writes nothing: gives records, and tells of its progress
through a function it is given.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import msgspec

from benchmarks.arithmetic import median_times_better, summarise
from benchmarks.figure import OURS, is_rate
from benchmarks.record import Record, rounded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.figure import Benchmark, Figure, Plan
    from benchmarks.peers.installed import Peer
    from benchmarks.record import Setting

    Measured = dict[str, dict[str, list[Figure]]]
    """Subject → figure's name → that figure in each round."""


class Options(msgspec.Struct, frozen=True):
    """How a run is made."""

    runs: int = 5
    """Counted rounds of every benchmark."""

    is_quick: bool = False
    """Tiny sizes and no warm-up: only to see that everything runs."""

    seed: int = 1
    size: int | None = None
    """How much one round does; None: what the benchmark says."""


def run(
    benchmark: Benchmark,
    peers: Sequence[Peer],
    options: Options,
    progress: Callable[[str], None],
) -> Measured:
    """Measure a benchmark with all its subjects.

    Args:
        benchmark: what to measure.
        peers: who else to measure, where they can do it.
        options: how often, and how much.
        progress: told one line about each round.
    """
    plan = benchmark.quick if options.is_quick else benchmark.full
    size = plan.size if options.size is None else options.size
    plan = msgspec.structs.replace(plan, size=size, seed=options.seed)
    subjects = subjects_of(benchmark, peers)
    if benchmark.warms_up and not options.is_quick:
        for subject, measure in subjects.items():
            progress(f"{benchmark.name}: {subject} warms up")
            measure(plan)
    measured: Measured = {subject: {} for subject in subjects}
    runs = min(options.runs, benchmark.most_runs or options.runs)
    for number in range(1, runs + 1):
        for subject, measure in subjects.items():
            gc.collect()
            figures = measure(plan)
            for figure in figures:
                measured[subject].setdefault(figure.name, []).append(figure)
            values = ", ".join(f"{f.name} {f.value:,.4g} {f.unit}" for f in figures)
            progress(f"{benchmark.name} {number}/{runs}: {subject}: {values}")
    return measured


def subjects_of(
    benchmark: Benchmark, peers: Sequence[Peer]
) -> dict[str, Callable[[Plan], list[Figure]]]:
    """Give who is measured, by name, Callboard first."""
    subjects = {OURS: benchmark.measure}
    for peer in peers:
        if benchmark.name in peer.rounds:
            subjects[peer.name] = bind(peer, benchmark.name)
    return subjects


def bind(peer: Peer, benchmark: str) -> Callable[[Plan], list[Figure]]:
    """Give one peer's round of one benchmark."""
    return lambda plan: peer.measure(benchmark, plan)


def records(benchmark: str, measured: Measured, setting: Setting) -> Iterator[Record]:
    """Summarise the rounds, one record for each figure of each subject."""
    ours = measured[OURS]
    for subject, figures in measured.items():
        for name, rounds in figures.items():
            values = [each.value for each in rounds]
            summary = summarise(values)
            better = None
            if subject != OURS and name in ours:
                better = rounded(
                    median_times_better(
                        [each.value for each in ours[name]],
                        values,
                        more_is_better=is_rate(rounds[0].unit),
                    )
                )
            yield Record(
                benchmark=benchmark,
                subject=subject,
                figure=name,
                unit=rounds[0].unit,
                median=rounded(summary.median),
                min=rounded(summary.lowest),
                max=rounded(summary.highest),
                runs=summary.runs,
                times_better=better,
                **msgspec.structs.asdict(setting),
            )
