"""Rooms in memory: group chats in which somebody writes and times what is said.

With the company that answers in them: the whole tree of `callboard serve` but its HTTP
server, with the SQLite store at `synchronous = full`, metrics, and log lines written to
nowhere.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import trio

from actors import names
from actors.agents.persona import Persona
from actors.config.limits import LimitsConfig
from actors.config.sessions import SessionConfig
from actors.messages.deliveries import Abilities
from actors.messages.inbound import Address, Inbound
from actors.metrics import LineMetrics
from actors.models.catalogue import of_one
from actors.rules.groups.routes import routing_table
from actors.services import Furnishing, InForce, Services
from actors.tree import Company, tree
from benchmarks.stopwatch import now_ns
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.supervision.watchdog import WatchdogConfig
from runtime.system import SystemConfig, open_system
from runtime.telemetry.logs import writing
from runtime.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from actors.config.agents import AgentConfig
    from actors.messages.deliveries import Delivery, Draft, Typing
    from actors.ports import Model
    from actors.transport import Ingress
    from runtime.store.port import Store

CONNECTOR = "rooms"
PERSON = "sam"


class Heard(msgspec.Struct):
    """What came of one message."""

    wanted: int
    """How many answers are waited for."""

    written: int
    """When it was handed in; like all times here in nanoseconds of the stopwatch."""

    said: list[int]
    """When each answer was said."""

    over: trio.Event
    reason: str = ""
    """Why nobody answered, should that be so."""


class Rooms:
    """Implements `actors.transport.Transport`: rooms in which all agents are.

    Args:
        agents: names of those present.
    """

    presence = None
    """It can show nothing but messages."""

    def __init__(self, agents: tuple[str, ...]) -> None:
        self._agents = agents
        self._clock = SystemClock()
        self._ingress: Ingress | None = None
        self._has_ingress = trio.Event()
        self._heard: dict[str, Heard] = {}
        self._count = 0

    @property
    def abilities(self) -> Abilities:
        """Say that a repeated answer is one answer."""
        return Abilities(is_idempotent=True)

    async def listen(self, ingress: Ingress) -> None:
        """Stay until cancelled."""
        self._ingress = ingress
        self._has_ingress.set()
        await trio.sleep_forever()

    async def write(self, text: str, answers: int, room: str = "room") -> Heard:
        """Have a person write; returns when so many answers were said, or none is due.

        Args:
            text: what is said; who is meant stands in it.
            answers: how many there will be; 0: it is for nobody.
            room: in which room.
        """
        await self._has_ingress.wait()
        assert self._ingress is not None
        self._count += 1
        name = f"message-{self._count}"
        inbound = Inbound(
            id=name,
            platform=CONNECTOR,
            platform_id=name,
            address=Address(CONNECTOR, room),
            sender_id=PERSON,
            sender_name=PERSON,
            text=text,
            received_at=self._clock.wall(),
            is_direct=False,
            present=self._agents,
        )
        heard = self._heard[name] = Heard(answers, now_ns(), [], trio.Event())
        await self._ingress.accept(inbound)
        await heard.over.wait()
        del self._heard[name]
        assert len(heard.said) == answers, f"{text!r}: {heard}"
        return heard

    async def deliver(self, delivery: Delivery) -> str:
        """Hear an answer."""
        heard = self._heard.get(delivery.correlation_id)
        if heard is not None:
            heard.said.append(now_ns())
            if len(heard.said) == heard.wanted:
                heard.over.set()
        await trio.lowlevel.checkpoint()
        return "heard"

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """Learn that nobody answers."""
        heard = self._heard.get(inbound.correlation_id)
        if heard is not None and not heard.wanted:
            heard.reason = reason
            heard.over.set()

    async def look_up(self, delivery: Delivery) -> str | None:
        """Say that it was said; nobody asks."""
        await trio.lowlevel.checkpoint()
        return delivery.id

    def show_draft(self, draft: Draft) -> None:
        """Look at a draft and do nothing."""

    def show_typing(self, typing: Typing) -> None:
        """Look at nothing; `abilities` says so."""


@asynccontextmanager
async def gathered(
    rooms: Rooms, model: Model, agents: dict[str, AgentConfig]
) -> AsyncGenerator[None]:
    """Run a company of these agents until the block ends."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,  # noqa: ASYNC230
        writing(stream=nowhere),
    ):
        metrics = Metrics()
        line = LineMetrics(metrics)
        async with AsyncExitStack() as stack:
            file = SqliteFile(Path(folder) / "rooms.db")
            store = await SqliteStore.open(file, on_commit=line.commit)
            stack.push_async_callback(store.aclose)
            watched = SystemConfig(watchdog=WatchdogConfig())
            system = await stack.enter_async_context(open_system(watched))
            metrics.watch(system)
            company = company_of(rooms, model, agents, store, line)
            await system.start_root(tree(company), names.ROOT)
            yield


def company_of(
    rooms: Rooms,
    model: Model,
    agents: dict[str, AgentConfig],
    store: Store,
    line: LineMetrics,
) -> Company:
    """Put the agents and their rooms together."""
    clock = SystemClock()
    return Company(
        personas=tuple(
            Persona(
                name,
                config,
                colleagues=dict.fromkeys(config.delegates, "a colleague"),
                everybody=tuple(agents),
            )
            for name, config in agents.items()
        ),
        transports={CONNECTOR: rooms},
        routes=routing_table(agents),
        services=Services(
            store=store,
            clock=clock,
            ids=IdSource(clock),
            metrics=line,
            in_force=InForce(
                Furnishing(limits=LimitsConfig(), sessions=SessionConfig())
            ),
        ),
        catalogue=lambda: of_one(model),
    )
