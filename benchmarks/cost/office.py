"""A company in virtual time, the chat in which people write to it, and its model.

The whole tree of `callboard serve` with the real store, metrics and log lines. Every
stage of a message begins where something comes to the chat or to the model, so that
`Ledger` can tell what was done for which.
"""

from __future__ import annotations

import gc
import io
import random
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import trio

from actors import names
from actors.agents.persona import Persona
from actors.config.limits import LimitsConfig
from actors.config.sessions import SessionConfig
from actors.messages.deliveries import Abilities
from actors.messages.inbound import Address, Inbound, TranscriptLine
from actors.metrics import LineMetrics
from actors.models.catalogue import of_one
from actors.rules.groups.routes import routing_table
from actors.services import Furnishing, InForce, Services
from actors.transport import Account
from actors.tree import Company, tree
from benchmarks.cost.disk import FLUSH, CountingDisk, SteppedThread
from benchmarks.peers.peer_bare import BareLine
from connectors.models.scripted import ScriptedModel
from runtime.ids import IdSource
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.system import open_system
from runtime.telemetry.logs import writing
from runtime.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from actors.config.agents import AgentConfig
    from actors.messages.deliveries import Delivery, Draft, Typing
    from actors.messages.inbound import ModelAnswer, ModelRequest
    from actors.ports import ReadChecklist, Speak, Tool
    from actors.transport import Ingress, Transport
    from benchmarks.cost.counting import Ledger
    from connectors.models.scripted import Script
    from runtime.supervision.child import ChildSpec

CONNECTOR = "chat"
PERSON = "sam"
EPOCH = 1_700_000_000.0
"""Unix seconds at which the virtual clock stands at 0."""

TO_MODEL = "to the model"
MODEL = "while the model works"
TO_CHAT = "to the chat"
AFTERWARDS = "afterwards"
"""The stages of a message; when several models are asked, all their turns together."""

TO_REST = 1.5
"""Seconds after an answer in which all is done that is left to do for it."""


class VirtualClock:
    """Tells the time of trio's clock."""

    def monotonic(self) -> float:
        """Seconds since the run began."""
        return trio.current_time()

    def wall(self) -> float:
        """Unix seconds."""
        return EPOCH + trio.current_time()


class Progress:
    """Tells the ledger which stage a message is in, and what it waited for.

    Args:
        ledger: counts.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._began = 0.0

    def begin(self, stage: str) -> None:
        """Begin a message; nobody waited for what was before it."""
        self._began = trio.current_time()
        self.ledger.enter(stage)

    def enter(self, stage: str) -> None:
        """End the present stage; another one begins."""
        waited = trio.current_time() - self._began
        self.ledger.now.waits += round(waited / FLUSH)
        self.begin(stage)


class CountedModel:
    """A scripted model that says when it is asked, and has answered.

    Args:
        script: what it answers.
        progress: told of it.
    """

    def __init__(self, script: Script, progress: Progress) -> None:
        self._model = ScriptedModel(script)
        self._progress = progress

    async def answer(self, request: ModelRequest, speak: Speak) -> ModelAnswer:
        """Answer as the script says."""
        self._progress.enter(MODEL)
        counts = self._progress.ledger.now
        if len(request.lines) > 1:
            counts.copies = max(counts.copies, holders(request.lines[0]))
        answer = await self._model.answer(request, speak)
        self._progress.begin(TO_CHAT)
        return answer

    async def aclose(self) -> None:
        """Have nothing to close."""


def holders(line: TranscriptLine) -> int:
    """Count the sequences that hold a line of the history."""
    found = gc.get_referrers(line)
    return sum(isinstance(each, list | tuple) for each in found)


class Chat:
    """Implements `actors.transport.Transport`: a chat in which one person writes.

    Args:
        progress: told of what comes in and goes out.
        present: names of the agents in the chat; none: a direct one with one agent.
    """

    presence = None
    """It can show nothing but messages."""

    def __init__(self, progress: Progress, present: tuple[str, ...] = ()) -> None:
        self._progress = progress
        self._present = present
        self._ingress: Ingress | None = None
        self._listens = trio.Event()
        self._said = trio.Event()
        self._owed = 0
        self._count = 0

    @property
    def abilities(self) -> Abilities:
        """Say that a repeated answer is one answer."""
        return Abilities(is_idempotent=True)

    async def listen(self, ingress: Ingress) -> None:
        """Stay until cancelled."""
        self._ingress = ingress
        self._listens.set()
        await trio.sleep_forever()

    async def write(self, text: str, agent: str = "", answers: int = 1) -> None:
        """Write something; returns when all answers were said, and all is at rest."""
        await self._listens.wait()
        assert self._ingress is not None
        self._count += 1
        self._owed, self._said = answers, trio.Event()
        name = f"message-{self._count:06}"
        inbound = Inbound(
            id=name,
            platform=CONNECTOR,
            platform_id=name,
            address=Address(CONNECTOR, "room"),
            sender_id=PERSON,
            sender_name=PERSON,
            text=text,
            received_at=EPOCH + trio.current_time(),
            agent=agent,
            is_direct=not self._present,
            present=self._present,
        )
        self._progress.begin(TO_MODEL)
        await self._ingress.accept(inbound)
        await self._said.wait()
        await trio.sleep(TO_REST)

    async def deliver(self, delivery: Delivery) -> str:
        """Say an answer."""
        self._owed -= 1
        self._progress.enter(TO_CHAT if self._owed > 0 else AFTERWARDS)
        if self._owed <= 0:
            self._said.set()
        await trio.lowlevel.checkpoint()
        return f"receipt-{delivery.id}"

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """Hear that nobody will answer."""
        del inbound, reason
        if self._owed == 0 and not self._said.is_set():
            self._progress.enter(AFTERWARDS)
            self._said.set()

    async def look_up(self, delivery: Delivery) -> str | None:
        """Say that it was said; nobody asks."""
        await trio.lowlevel.checkpoint()
        return delivery.id

    def show_draft(self, draft: Draft) -> None:
        """Look at a draft and do nothing."""

    def show_typing(self, typing: Typing) -> None:
        """Look at nothing; `abilities` says so."""


@dataclass(frozen=True)
class Furniture:
    """What a company is made of."""

    agents: Mapping[str, AgentConfig]
    script: Script
    tools: tuple[Tool, ...] = ()
    read_checklist: ReadChecklist | None = None
    edges: tuple[ChildSpec, ...] = ()


@asynccontextmanager
async def open_database(
    progress: Progress, on_commit: Callable[[float, int, int], None] | None = None
) -> AsyncGenerator[SqliteStore]:
    """Open a new database on the disk that counts."""
    disk = CountingDisk(progress.ledger)
    try:
        with tempfile.TemporaryDirectory() as folder:
            store = await SqliteStore.open(
                SqliteFile(Path(folder) / "office.db", vfs=disk.name),
                on_commit=on_commit,
                thread=SteppedThread,
            )
            try:
                yield store
            finally:
                await store.aclose()
    finally:
        disk.unregister()


@asynccontextmanager
async def open_bare(
    script: Script, transport: Transport, progress: Progress
) -> AsyncGenerator[None]:
    """Run the bare loop, which does only what must be done, until the block ends."""
    model = CountedModel(script, progress)
    async with (
        open_database(progress) as store,
        open_system() as system,
        trio.open_nursery() as nursery,
    ):
        line = BareLine(system, store, model, transport, VirtualClock())
        nursery.start_soon(transport.listen, cast("Ingress", line))
        yield
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def open_office(
    furniture: Furniture, transport: Transport, progress: Progress
) -> AsyncGenerator[None]:
    """Run a company until the block ends."""
    lines = CountingLines(progress.ledger)
    dice = random.Random(1)  # noqa: S311  repeatable ids, no secrets
    clock = VirtualClock()
    line = LineMetrics(Metrics())
    async with AsyncExitStack() as stack:
        stack.enter_context(writing(stream=lines, has_words=False))
        opened = open_database(progress, line.commit)
        store = await stack.enter_async_context(opened)
        system = await stack.enter_async_context(open_system())
        services = Services(
            store=store,
            clock=clock,
            ids=IdSource(clock, dice.randbytes),
            metrics=line,
            in_force=InForce(
                Furnishing(
                    limits=LimitsConfig(),
                    sessions=SessionConfig(),
                    accounts={CONNECTOR: Account(transport.abilities)},
                    agent_models=dict.fromkeys(furniture.agents, ""),
                )
            ),
            read_checklist=furniture.read_checklist,
            random_bytes=dice.randbytes,
            receipt_key=b"cost",
        )
        company = Company(
            personas=tuple(personas(furniture)),
            transports={CONNECTOR: transport},
            routes=routing_table(furniture.agents),
            services=services,
            catalogue=lambda: of_one(CountedModel(furniture.script, progress)),
            edges=furniture.edges,
        )
        await system.start_root(tree(company), names.ROOT)
        yield


def personas(furniture: Furniture) -> list[Persona]:
    """Put the agents together."""
    return [
        Persona(
            name,
            config,
            tools={tool.spec.name: tool for tool in furniture.tools},
            colleagues=dict.fromkeys(config.delegates, "a colleague"),
            everybody=tuple(furniture.agents),
        )
        for name, config in furniture.agents.items()
    ]


class CountingLines(io.StringIO):
    """Counts log lines and keeps none.

    Args:
        ledger: where they are counted.
    """

    def __init__(self, ledger: Ledger) -> None:
        super().__init__()
        self._ledger = ledger

    def write(self, text: str, /) -> int:
        """Count the lines of a text."""
        self._ledger.now.log_lines += text.count("\n")
        return len(text)
