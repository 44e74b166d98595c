"""Turning times into figures; the only clock of the rounds."""

from __future__ import annotations

from time import perf_counter, perf_counter_ns, process_time
from typing import TYPE_CHECKING

from benchmarks.arithmetic import percentile
from benchmarks.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Sequence

now = perf_counter
"""Seconds since some fixed moment."""

now_ns = perf_counter_ns
"""The same in nanoseconds, without the rounding of a float."""


def rate(count: int, since: float, unit: str, name: str = "rate") -> Figure:
    """Say how many there were per second since a moment of `now`."""
    return Figure(name, count / (now() - since), f"{unit}/s")


class Lap:
    """The time, and the processor time of this process, since it was made."""

    def __init__(self) -> None:
        self._begin = now()
        self._used = process_time()

    def figures(self, count: int, unit: str, suffix: str = "") -> list[Figure]:
        """Say how many there were per second, and each one's processor time."""
        used = 1e6 * (process_time() - self._used) / count
        return [
            rate(count, self._begin, f"{unit}s", f"rate{suffix}"),
            Figure(f"processor{suffix}", used, f"µs/{unit}"),
        ]


def spans(nanoseconds: Sequence[int], suffix: str = "") -> list[Figure]:
    """Give the median and the 99th percentile of many times, in microseconds."""
    return [
        Figure(f"p50{suffix}", percentile(nanoseconds, 0.50) / 1000, "µs"),
        Figure(f"p99{suffix}", percentile(nanoseconds, 0.99) / 1000, "µs"),
    ]
