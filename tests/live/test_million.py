"""Proves that a million actors fit into one process under two gigabytes.

Left out of the ordinary run because it takes the machine for half a minute.
"""

from __future__ import annotations

import pytest

from benchmarks.kernel.bench_million import BENCHMARK

MOST_MEGABYTES = 2000


@pytest.mark.live
def test_a_million_actors_are_started_told_and_stopped() -> None:
    figures = {each.name: each.value for each in BENCHMARK.measure(BENCHMARK.full)}
    assert BENCHMARK.full.size == 1_000_000
    assert figures["peak memory"] < MOST_MEGABYTES
