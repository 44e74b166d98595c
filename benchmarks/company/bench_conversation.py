"""Conversation: the memory of one that is open, and of those that have left memory.

The whole tree of `callboard serve` but its HTTP server, with the SQLite store, in a
process of its own. Every conversation has one message and its answer: a session, a
courier and their history. Sessions leave memory when they are told to; couriers
stay for a minute, and are left here.
"""

from __future__ import annotations

import gc
import os
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from actors import names
from actors.config.sessions import SessionConfig
from actors.metrics import LineMetrics
from actors.session.session import Session
from actors.tree import tree
from benchmarks.company.bench_line import AGENT, SCRIPT, company_of
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.fresh import in_fresh_process
from benchmarks.machine import resident
from benchmarks.stage.crowd import Crowd
from benchmarks.stage.people import CONNECTOR
from connectors.models.scripted import Script, ScriptedModel
from runtime.clock import SystemClock
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.system import open_system
from runtime.telemetry.logs import writing
from runtime.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from runtime.system import ActorSystem

WARM_UP = 1_000
"""Most conversations that are not counted: caches fill, code is loaded."""

IDLE_AFTER = 1.0
"""Seconds after which a session leaves memory, where all of them shall."""

NEVER = 86_400.0


def measure(plan: Plan) -> list[Figure]:
    """Weigh `size` conversations, once all open, once with all sessions gone."""
    return in_fresh_process(opened, plan) + in_fresh_process(passed, plan)


def opened(plan: Plan) -> list[Figure]:
    """Weigh conversations that stay open."""
    before, after = weigh(plan, NEVER)
    # Not below a byte: a few find room in what the warm-up left free.
    one = max((after - before) / plan.size, 1)
    return [
        Figure("one open", one / 1024, "KB"),
        Figure("all open", after / 1e6, "MB"),
    ]


def passed(plan: Plan) -> list[Figure]:
    """Weigh what is left when all sessions have left memory."""
    before, after = weigh(plan, IDLE_AFTER)
    return [
        Figure("none yet", before / 1e6, "MB"),
        Figure("all sessions passivated", after / 1e6, "MB"),
    ]


def weigh(plan: Plan, idle_after: float) -> tuple[int, int]:
    """Give the bytes held before and after the counted conversations."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        writing(stream=nowhere),
    ):
        path = Path(folder) / "conversation.db"
        return trio.run(converse, path, plan.size, idle_after)


async def converse(path: Path, size: int, idle_after: float) -> tuple[int, int]:
    """Run a company, have its conversations, and weigh the process around them."""
    clock = SystemClock()
    crowd = Crowd(CONNECTOR, AGENT, clock)
    model = ScriptedModel(Script(SCRIPT))
    metrics = Metrics()
    line = LineMetrics(metrics)
    sessions = SessionConfig(idle_after=idle_after)
    async with AsyncExitStack() as stack:
        store = await SqliteStore.open(SqliteFile(path), on_commit=line.commit)
        stack.push_async_callback(store.aclose)
        system = await stack.enter_async_context(open_system())
        metrics.watch(system)
        company = company_of(crowd, model, store, line, sessions)
        await system.start_root(tree(company), names.ROOT)
        warm_up = min(WARM_UP, size)
        await crowd.write(0, warm_up)
        before = held()
        await crowd.write(warm_up, size)
        if idle_after < NEVER:
            await wait_passivated(system)
        return before, held()


async def wait_passivated(system: ActorSystem) -> None:
    """Wait until no session lives."""
    # Why not told: nobody counts actors but the system, which tells nobody.
    while any(a.kind == Session.__name__ for a in system.actors()):  # noqa: ASYNC110
        await trio.sleep(IDLE_AFTER / 10)


def held() -> int:
    """Bytes held, after a look for garbage."""
    gc.collect()
    return resident()


BENCHMARK = Benchmark(
    name="conversation",
    about="memory of an open conversation: session, courier and history",
    full=Plan(10_000, 1),
    quick=Plan(100, 1),
    measure=measure,
    warms_up=False,
)
