"""The line: a message from a person to an agent and back, stored on its way.

The whole tree of `callboard serve` but its HTTP server, with the SQLite store at
`synchronous = full`, the watchdog, metrics, and log lines written to nowhere. Only
the model is wrapped, to note when it is asked. The people are in memory, and each
writes again when answered.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import trio

from actors import names
from actors.agents.persona import Persona
from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.config.sessions import SessionConfig
from actors.metrics import LineMetrics
from actors.models.catalogue import of_one
from actors.rules.groups.routes import routing_table
from actors.services import Furnishing, InForce, Services
from actors.tree import Company, tree
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stage.people import CONNECTOR, People, TimedModel
from benchmarks.stopwatch import now, rate, spans
from connectors.models.scripted import (
    ActionSettings,
    Script,
    ScriptedModel,
    ScriptSettings,
)
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.supervision.watchdog import WatchdogConfig
from runtime.system import SystemConfig, open_system
from runtime.telemetry.logs import writing
from runtime.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from actors.ports import Model
    from actors.transport import Transport
    from benchmarks.stage.people import Way
    from runtime.store.port import Store

    class Opens(Protocol):
        """Opens a store."""

        async def __call__(
            self, *, on_commit: Callable[[float, int, int], None]
        ) -> Store:
            """Open it; see `runtime.sql.store.SqlStore`."""
            ...


AGENT = "anna"
CHATS = (1, 16, 64)
SCRIPT = ScriptSettings(ActionSettings(reply="You said: {0}"))


def measure(plan: Plan) -> list[Figure]:
    """Let one, sixteen and sixty-four people write; `size` messages among many."""
    figures: list[Figure] = []
    for chats in CHATS:
        share = max(1, plan.size // max(chats, 8))
        with (
            tempfile.TemporaryDirectory() as folder,
            Path(os.devnull).open("w", encoding="utf-8") as nowhere,
            writing(stream=nowhere, has_words=False),
        ):
            file = SqliteFile(Path(folder) / "line.db")
            figures += trio.run(converse, partial(SqliteStore.open, file), chats, share)
    return figures


async def converse(open_store: Opens, chats: int, share: int) -> list[Figure]:
    """Run a company until everybody has had all answers."""
    people = People(chats, share, AGENT, SystemClock())
    metrics = Metrics()
    line = LineMetrics(metrics)
    async with AsyncExitStack() as stack:
        store = await open_store(on_commit=line.commit)
        stack.push_async_callback(store.aclose)
        config = SystemConfig(watchdog=WatchdogConfig())
        system = await stack.enter_async_context(open_system(config))
        metrics.watch(system)
        model = TimedModel(ScriptedModel(Script(SCRIPT)), people.ways)
        company = company_of(people, model, store, line)
        begin = now()
        await system.start_root(tree(company), names.ROOT)
        await people.done.wait()
        answered = rate(len(people.ways), begin, "messages", f"rate, {chats}")
    return [answered, *overheads(people.ways.values(), chats)]


def company_of(
    transport: Transport,
    model: Model,
    store: Store,
    line: LineMetrics,
    sessions: SessionConfig | None = None,
) -> Company:
    """Put one agent and the people together."""
    clock = SystemClock()
    persona = Persona(AGENT, AgentConfig(), everybody=(AGENT,))
    return Company(
        personas=(persona,),
        transports={CONNECTOR: transport},
        routes=routing_table((AGENT,)),
        services=Services(
            store=store,
            clock=clock,
            ids=IdSource(clock),
            metrics=line,
            in_force=InForce(
                Furnishing(limits=LimitsConfig(), sessions=sessions or SessionConfig())
            ),
        ),
        catalogue=lambda: of_one(model),
    )


def overheads(ways: Iterable[Way], chats: int) -> list[Figure]:
    """Say how long messages were on their way before and after the model."""
    done = list(ways)
    assert all(way.said for way in done)
    before = [way.asked - way.handed_in for way in done]
    after = [way.said - way.answered for way in done]
    return [
        *spans(before, f" accept → model, {chats}"),
        *spans(after, f" model → send, {chats}"),
    ]


BENCHMARK = Benchmark(
    name="line",
    about="message in, durable, scripted model, answer out; 1, 16 and 64 chats",
    full=Plan(3_200, 1),
    quick=Plan(16, 1),
    measure=measure,
)
