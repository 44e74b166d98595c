"""Ten thousand conversations awake at once, and a model that takes two seconds.

The whole tree of `callboard serve` but its HTTP server, with the SQLite store. All
people write at the same moment, and each once more when answered; every turn may run at
once, so that nothing waits but for the processor. Says what a conversation holds, how
long its messages were under way beside the model, and how equally people were served.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from time import process_time

import trio

from actors import names
from actors.config.limits import LimitsConfig
from actors.metrics import LineMetrics
from actors.tree import tree
from benchmarks.arithmetic import percentile
from benchmarks.company.bench_line import AGENT, company_of
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.fresh import in_fresh_process
from benchmarks.machine import resident
from benchmarks.stage.people import People, TimedModel
from benchmarks.stopwatch import now, rate
from connectors.models.scripted import (
    ActionSettings,
    Script,
    ScriptedModel,
    ScriptSettings,
)
from runtime.clock import SystemClock
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.system import open_system
from runtime.telemetry.logs import writing
from runtime.telemetry.metrics import Metrics

SCRIPT = ScriptSettings(ActionSettings(reply="You said: {0}", delay=2.0))
EACH = 2
"""Messages of one person."""


def measure(plan: Plan) -> list[Figure]:
    """Have `size` people write, in a process of its own."""
    return in_fresh_process(crowd, plan)


def crowd(plan: Plan) -> list[Figure]:
    """Run a company until everybody has had all answers."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        writing(stream=nowhere, has_words=False),
    ):
        return trio.run(converse, Path(folder) / "awake.db", plan.size)


async def converse(path: Path, size: int) -> list[Figure]:
    """Have them all write, and look at what is held when all are answered."""
    people = People(size, EACH, AGENT, SystemClock())
    line = LineMetrics(Metrics())
    async with AsyncExitStack() as stack:
        store = await SqliteStore.open(SqliteFile(path), on_commit=line.commit)
        stack.push_async_callback(store.aclose)
        system = await stack.enter_async_context(open_system())
        model = TimedModel(ScriptedModel(Script(SCRIPT)), people.ways)
        company = company_of(people, model, store, line)
        place = company.services.in_force
        limits = LimitsConfig(max_in_flight=size, max_open=2 * size)
        place.current = replace(place.current, limits=limits)
        held, begin, used = resident(), now(), process_time()
        await system.start_root(tree(company), names.ROOT)
        await people.done.wait()
        answered = rate(EACH * size, begin, "messages")
        used = process_time() - used
        grown = resident() - held
    ways = list(people.ways.values())
    beside = [w.asked - w.handed_in + w.said - w.answered for w in ways]
    whole = [w.said - w.handed_in for w in ways]
    median = percentile(whole, 0.50)
    return [
        answered,
        Figure("processor", 1000 * used / len(ways), "ms/message"),
        Figure("memory for each", max(grown, 1) / size / 1024, "KB"),
        Figure("beside the model, p50", percentile(beside, 0.50) / 1e9, "s"),
        Figure("beside the model, p99", percentile(beside, 0.99) / 1e9, "s"),
        Figure("slowest answer to the median", max(whole) / median, "times"),
    ]


BENCHMARK = Benchmark(
    name="awake",
    about="10,000 conversations awake at once, 2 s model: memory, overhead, fairness",
    full=Plan(10_000, 1),
    quick=Plan(8, 1),
    measure=measure,
    warms_up=False,
)
