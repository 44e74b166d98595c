"""One measured figure as it is printed and kept: one JSON line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from benchmarks.arithmetic import Summary, is_worse, times_better
from benchmarks.figure import is_rate

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


class Machine(msgspec.Struct, frozen=True):
    """Where it was measured."""

    cpu: str
    cores: int
    system: str
    load: float
    """Tasks that wanted a core in the minute before; above `cores` it was busy."""


class Setting(msgspec.Struct, frozen=True):
    """What all figures of one run have in common."""

    seed: int
    machine: Machine
    python: str
    versions: dict[str, str]
    commit: str
    gc: str


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One figure of one subject."""

    benchmark: str
    subject: str
    figure: str
    unit: str
    median: float
    min: float
    max: float
    runs: int
    seed: int
    machine: Machine
    python: str
    versions: dict[str, str]
    commit: str
    gc: str
    times_better: float | None = None
    """On a peer's line: how many times better Callboard was, median of the rounds."""

    against_baseline: float | None = None
    """How many times better than the kept baseline; below 1 it is worse."""

    is_slower: bool | None = None
    """Whether it is worse than the baseline by more than the spread of both."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two records speak of the same figure."""
        return self.benchmark, self.subject, self.figure

    @property
    def summary(self) -> Summary:
        """The numbers alone."""
        return Summary(self.median, self.min, self.max, self.runs)


def compared(record: Record, baseline: Iterable[Record]) -> Record:
    """Give the record with how it compares; unchanged if it is not in the baseline."""
    before = next((old for old in baseline if old.key == record.key), None)
    if before is None:
        return record
    rate = is_rate(record.unit)
    return msgspec.structs.replace(
        record,
        against_baseline=rounded(
            times_better(record.median, before.median, more_is_better=rate)
        ),
        is_slower=is_worse(record.summary, before.summary, more_is_better=rate),
    )


def rounded(value: float) -> float:
    """Cut a number to four significant digits; more are noise."""
    return float(f"{value:.4g}")


def line(record: Record) -> str:
    """Give a record as one line of JSON."""
    return msgspec.json.encode(record).decode()


def load(path: Path) -> list[Record]:
    """Read records that `save` wrote.

    Raises:
        OSError: there is no such file, or it cannot be read.
        msgspec.DecodeError: it is not a list of records.
    """
    return msgspec.json.decode(path.read_bytes(), type=list[Record])


def save(path: Path, records: Iterable[Record]) -> None:
    """Keep records in a file, in place of older ones of the same figures."""
    kept = {old.key: old for old in load(path)} if path.exists() else {}
    for record in records:
        # A comparison belongs to its run, not to what later runs compare with.
        kept[record.key] = msgspec.structs.replace(
            record, against_baseline=None, is_slower=None
        )
    lines = ",\n".join(line(record) for record in kept.values())
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
