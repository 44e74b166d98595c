"""Medians, spreads and ratios. Pure: numbers in, numbers out."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


class Summary(msgspec.Struct, frozen=True):
    """What several rounds say together."""

    median: float
    lowest: float
    highest: float
    runs: int


def summarise(values: Sequence[float]) -> Summary:
    """Put the rounds of one figure together.

    Raises:
        ValueError: there was no round.
    """
    if not values:
        raise ValueError("no round was measured, so there is nothing to summarise")
    return Summary(statistics.median(values), min(values), max(values), len(values))


def percentile(values: Sequence[float], share: float) -> float:
    """Give the value that `share` of all values (0 to 1) do not exceed.

    Raises:
        ValueError: there are no values, or `share` is outside 0 to 1.
    """
    if not values or not 0 <= share <= 1:
        raise ValueError(f"no {share} share of {len(values)} values")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def times_better(ours: float, theirs: float, *, more_is_better: bool) -> float:
    """Tell how many times better `ours` is; below 1 it is worse."""
    good, bad = (ours, theirs) if more_is_better else (theirs, ours)
    return good / bad if bad else float("inf")


def median_times_better(
    ours: Sequence[float], theirs: Sequence[float], *, more_is_better: bool
) -> float:
    """Give the median over rounds of how many times better `ours` was.

    Round by round, because two neighbouring rounds share the machine's mood.

    Raises:
        ValueError: not the same number of rounds.
    """
    pairs = zip(ours, theirs, strict=True)
    return statistics.median(
        times_better(our, their, more_is_better=more_is_better) for our, their in pairs
    )


def is_worse(now: Summary, before: Summary, *, more_is_better: bool) -> bool:
    """Whether a figure got worse by more than its own spread explains.

    It did when each median lies outside of the other's rounds, on the wrong side.
    """
    if more_is_better:
        return now.median < before.lowest and before.median > now.highest
    return now.median > before.highest and before.median < now.lowest
