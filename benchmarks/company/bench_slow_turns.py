"""Slow turns: a thousand people at once, and a model that takes half a second.

The whole tree of `callboard serve` but its HTTP server, with the SQLite store; the
model is asked over HTTP, in a process of its own. Once with the default limits, which
let 64 turns run and keep the others waiting; once with a thousand turns running on the
default 128 connections. What the process holds for each waiting person must stay small,
and the provider must never see more than the caps allow.
"""

from __future__ import annotations

import os
import tempfile
import urllib.request
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import trio

from actors import names
from actors.config.limits import LimitsConfig
from actors.metrics import LineMetrics
from actors.tree import tree
from benchmarks.company.bench_line import AGENT, company_of
from benchmarks.company.bench_model_call import make_openai
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.fresh import in_fresh_process
from benchmarks.machine import resident
from benchmarks.stage.people import People
from benchmarks.stage.vendors import served
from benchmarks.stopwatch import now
from connectors.config.models import OpenAIModelConfig
from runtime.clock import SystemClock
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.system import open_system
from runtime.telemetry.logs import writing
from runtime.telemetry.metrics import Metrics

CONNECTIONS = OpenAIModelConfig(model="m").max_connections
RUNNING = LimitsConfig().max_in_flight


def measure(plan: Plan) -> list[Figure]:
    """Have `size` people write at the same moment, with each of the limits."""
    return in_fresh_process(some_run, plan) + in_fresh_process(all_run, plan)


def some_run(plan: Plan) -> list[Figure]:
    """Let as many turns run as the settings say by default."""
    return crowd(plan.size, RUNNING, f"{RUNNING} turns running")


def all_run(plan: Plan) -> list[Figure]:
    """Let all turns run; connections bound what the provider sees."""
    return crowd(plan.size, max(plan.size, RUNNING), "all turns running")


def crowd(size: int, running: int, name: str) -> list[Figure]:
    """Run a company until everybody has had an answer."""
    with (
        served() as address,
        tempfile.TemporaryDirectory() as folder,
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        writing(stream=nowhere),
    ):
        begin = now()
        path = Path(folder) / "turns.db"
        held, most = trio.run(converse, address, path, size, running)
        seconds = now() - begin
        with urllib.request.urlopen(address) as told:  # noqa: S310  our own address
            seen = int(told.read())
    assert seen <= min(running, CONNECTIONS), f"{seen} requests at once"
    return [
        Figure(f"all answered, {name}", seconds, "s"),
        Figure(f"memory for each, {name}", max(most - held, 1) / size / 1024, "KB"),
        Figure(f"most requests at once, {name}", seen, "requests"),
    ]


async def converse(
    address: str, path: Path, size: int, running: int
) -> tuple[int, int]:
    """Have them all write; give the bytes held before, and the most meanwhile."""
    people = People(size, 1, AGENT, SystemClock())
    metrics = Metrics()
    line = LineMetrics(metrics)
    async with AsyncExitStack() as stack:
        store = await SqliteStore.open(SqliteFile(path), on_commit=line.commit)
        stack.push_async_callback(store.aclose)
        system = await stack.enter_async_context(open_system())
        metrics.watch(system)
        model = make_openai(address, stream=True)
        stack.push_async_callback(model.aclose)
        company = company_of(people, model, store, line)
        limits = LimitsConfig(max_in_flight=running)
        place = company.services.in_force
        place.current = replace(place.current, limits=limits)
        held = most = resident()
        await system.start_root(tree(company), names.ROOT)
        while not people.done.is_set():
            with trio.move_on_after(0.05):
                await people.done.wait()
            most = max(most, resident())
    assert all(way.said for way in people.ways.values())
    return held, most


BENCHMARK = Benchmark(
    name="slow_turns",
    about="1,000 people at once, 500 ms model over HTTP: memory, and the caps kept",
    full=Plan(1_000, 1),
    quick=Plan(8, 1),
    measure=measure,
    warms_up=False,
)
