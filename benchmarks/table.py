"""Records as a Markdown table, for people and for the README."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.record import Record

HEAD = (
    "benchmark",
    "figure",
    "subject",
    "median",
    "lowest to highest",
    "callboard against it",
)


def table(records: Sequence[Record]) -> str:
    """Draw all records as one table, and say below it where they were measured.

    The last column says how many times better Callboard was, round by round.
    """
    rows = [HEAD, ("---",) * len(HEAD), *(row(record) for record in records)]
    drawn = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
    return "\n".join((drawn, "", *settings(records)))


def row(record: Record) -> tuple[str, ...]:
    """Give the cells of one record."""
    better = "" if record.times_better is None else f"{record.times_better:.3g}x"
    return (
        record.benchmark,
        record.figure,
        record.subject,
        f"{number(record.median)} {record.unit}",
        f"{number(record.min)} to {number(record.max)}",
        better,
    )


def number(value: float) -> str:
    """Write a number with the digits that mean something."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def settings(records: Sequence[Record]) -> Iterator[str]:
    """Say of each machine and set of versions once what they are."""
    told: set[str] = set()
    for record in records:
        machine = record.machine
        versions = ", ".join(f"{name} {v}" for name, v in record.versions.items())
        text = (
            f"{machine.cpu}, {machine.cores} cores, {machine.system}; Python"
            f" {record.python}; {versions}; medians of {record.runs} runs, seed"
            f" {record.seed}; gc {record.gc}."
        )
        if text not in told:
            told.add(text)
            yield text
