"""An agent's memory to test with: its actors, an embedder and a log book."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from actors import names
from actors.config.memory import MemoryConfig
from actors.errors import ToolError
from actors.memory.kit import MemoryKit, MemoryMetrics
from actors.memory.messages import (
    Fact,
    KeepFact,
    Note,
    NoteResult,
    NoteSource,
    NotesStored,
    Recall,
    RecalledFacts,
    ReviewedNotes,
    ReviewNotes,
)
from actors.ports import Embedder
from actors.tree import memory_children
from connectors.models.embedders.local import HashingEmbedder
from runtime.actor.ref import ActorRef
from runtime.store.rows import Commit
from runtime.supervision.supervisor import Supervisor
from runtime.system import ActorSystem
from runtime.telemetry.metrics import Metrics
from tests.fakes.actors.neighbours import make_services
from tests.fakes.company.company import EPOCH
from tests.fakes.company.furnished import changed
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

ZOE, SAM, ROOM = "person:fake/zoe", "person:fake/sam", "chat:fake/room/"


class FakeEmbedder:
    """Places texts by their words, as often as it feels like it.

    Args:
        errors: raised by the first calls, one each; None lets one pass.
        refuses: raised whenever a text with this word is among them.
        seconds: before each answer.
        space: which vectors it makes.
    """

    def __init__(
        self,
        errors: Sequence[Exception | None] = (),
        refuses: tuple[str, Exception] | None = None,
        seconds: float = 0.0,
        space: str = "",
    ) -> None:
        self._errors = list(errors)
        self._refuses = refuses
        self._seconds = seconds
        self._hashing = HashingEmbedder(64)
        self._space = space or self._hashing.space
        self.asked: list[list[str]] = []

    @property
    def space(self) -> str:
        return self._space

    async def embed(self, texts: Sequence[str]) -> tuple[bytes, ...]:
        self.asked.append(list(texts))
        await trio.sleep(self._seconds)
        error = self._errors.pop(0) if self._errors else None
        if error is not None:
            raise error
        if self._refuses and any(self._refuses[0] in text for text in texts):
            raise self._refuses[1]
        return await self._hashing.embed(texts)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


class FakeLogBook:
    """Pages in memory; a full one refuses."""

    def __init__(self, *, is_full: bool = False) -> None:
        self.entries: list[tuple[str, float, str]] = []
        self._is_full = is_full

    async def append(self, agent: str, at: float, text: str) -> None:
        await trio.lowlevel.checkpoint()
        if self._is_full:
            raise ToolError("the book is full")
        self.entries.append((agent, at, text))

    async def prune(self, agent: str, before: float) -> int:
        await trio.lowlevel.checkpoint()
        if self._is_full:
            raise ToolError("the book is shut")
        known = len(self.entries)
        self.entries = [x for x in self.entries if x[0] != agent or x[1] >= before]
        return known - len(self.entries)


class FakeMemory:
    """A memory that knows one fact, and keeps all it is told."""

    def __init__(self) -> None:
        self.asked: list[object] = []
        self.told: list[object] = []

    async def ask(self, message: object, *, timeout: float) -> object:  # noqa: ASYNC109
        assert timeout > 0
        self.asked.append(message)
        await trio.lowlevel.checkpoint()
        if isinstance(message, ReviewNotes):
            note = message.notes[0]
            assert isinstance(note, KeepFact)
            kept = NoteResult(outcome="saved", text=note.text)
            return ReviewedNotes(results=(kept,))
        return (
            Fact(
                id="f1",
                scope=ZOE,
                kind="fact",
                category="profile",
                key="",
                text="Likes green tea",
                score=0.5,
                created_at=EPOCH,
            ),
        )

    def tell(self, message: object) -> None:
        self.told.append(message)


class Bed:
    """One agent's memory, alone in a system."""

    def __init__(
        self,
        system: ActorSystem,
        store: MemoryStore,
        kit: MemoryKit,
        metrics: Metrics,
    ) -> None:
        self._system = system
        self.store = store
        self.kit = kit
        self.metrics = metrics

    @property
    def memory(self) -> ActorRef:
        found = self._system.find(names.memory("bot"))
        assert found is not None
        return found

    def find(self, name: str) -> ActorRef | None:
        return self._system.find(name)

    async def recall(self, question: str, *scopes: str, **fields: Any) -> RecalledFacts:
        asked = Recall(
            question=question, scopes=scopes or (ZOE,), now=self.now(), **fields
        )
        recalled: RecalledFacts = await self.memory.ask(asked, timeout=30.0)
        return recalled

    async def consider(self, *notes: Note, **fields: Any) -> ReviewedNotes:
        usual: dict[str, Any] = {"scope": ZOE, "readable": (ZOE, "agent"), "part": 7}
        given = {**usual, **fields}
        asked = ReviewNotes(notes=notes, source=NoteSource(**given), now=self.now())
        considered: ReviewedNotes = await self.memory.ask(asked, timeout=30.0)
        return considered

    async def remember(self, *notes: Note, **fields: Any) -> ReviewedNotes:
        """Consider, commit and tell, as a session does."""
        considered = await self.consider(*notes, **fields)
        await self.store.commit(Commit(at=self.now(), facts=considered.changes))
        self.memory.tell(NotesStored(considered.changes))
        return considered

    @staticmethod
    def now() -> float:
        return EPOCH + trio.current_time()


@asynccontextmanager
async def remembering_bed(
    clock: trio.testing.MockClock,
    *,
    store: MemoryStore | None = None,
    config: MemoryConfig | None = None,
    embedder: Embedder | None = None,
    book: FakeLogBook | None = None,
    redact: Callable[[str], str] = str,
) -> AsyncGenerator[Bed]:
    """Start the memory of the agent `bot`."""
    metrics = Metrics()
    kit = MemoryKit(config or MemoryConfig(), MemoryMetrics(metrics), embedder, book)
    services = make_services(store, metrics=metrics)
    services = changed(services, memory=kit, redact=redact)
    made = services.store
    assert isinstance(made, MemoryStore)
    async with virtual(clock) as system:
        root = Supervisor(memory_children("bot", services))
        await system.start_root(root, f"{names.ROOT}/agents/bot")
        yield Bed(system, made, kit, metrics)
