"""The actor that makes the vectors of facts, in the background."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from actors.errors import ModelBusyError, ModelRefusedError
from actors.journal.parts import facts_commit
from actors.memory.kit import MemoryKit
from actors.ports import Embedder
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.errors import StoreError
from runtime.store.facts import PutVector, StoredFact
from runtime.telemetry.logs import EventLog, Quoted

LOG = EventLog("memory")

FIRST_WAIT = 1.0
LONGEST_WAIT = 300.0
"""Seconds until an embedder that is busy is asked again; doubled each time."""

AT_ONCE = 32
"""Texts given to the embedder in one call."""


class Embed(msgspec.Struct, frozen=True):
    """There may be facts without a vector."""


class RetryEmbedding(msgspec.Struct, frozen=True):
    """A note to itself: ask the embedder again after a failure."""


class Embedding(Actor):
    """Gives a vector to each fact that has none from the present embedder.

    What waits, waits in the store: nothing is held here, so nothing is lost by a
    restart, and another embedder in the settings finds all facts waiting for it.

    Takes: `Embed`, from the memory after each commit.
    Sends: nothing; writes vectors into the store.
    Keeps: how long to wait for an embedder that is busy, and what it refused.
    Fails: never by an embedder or a disk that fails; it tries again.
    Ends: with the system.
    """

    deadline: ClassVar[float | None] = 600.0

    def __init__(
        self, agent: str, kit: MemoryKit, embedder: Embedder, services: Services
    ) -> None:
        super().__init__()
        self._agent = agent
        self._kit = kit
        self._embedder = embedder
        self._services = services
        self._wait = FIRST_WAIT
        self._is_waiting = False
        self._passed_over = 0
        """Number of the last fact that the embedder refused."""

    def on_start(self) -> None:
        """Take up what an earlier process left."""
        self.note(Embed())

    def on_receive(self, message: object) -> object:
        """Work off what has no vector, a batch at a time."""
        match message:
            case Embed():
                return None if self._is_waiting else self._embed()
            case RetryEmbedding():
                self._is_waiting = False
                return self._embed()
            case _:
                return super().on_receive(message)

    async def _embed(self) -> None:
        store = self._services.store
        if store.damaged:  # it still gives rows, and would keep no vector
            return
        try:
            rows = await store.facts.unembedded(
                self._agent, self._embedder.space, self._passed_over, AT_ONCE
            )
            if rows and await self._give_vectors(rows):
                self._wait = FIRST_WAIT
                self.note(Embed())
        except ModelBusyError as error:
            self._kit.metrics.embedding(self._agent, "busy")
            self._try_later(str(error), error.retry_after)
        except StoreError as error:
            self._try_later(str(error), None)

    async def _give_vectors(self, rows: tuple[StoredFact, ...]) -> bool:
        """Embed these; False if there is nothing more to do for now."""
        try:
            vectors = await self._embedder.embed([row.text for row in rows])
        except ModelRefusedError as error:
            return await self._part(rows, error)
        changes = [
            PutVector(
                agent=self._agent,
                scope=row.scope,
                id=row.id,
                space=self._embedder.space,
                vector=vector,
            )
            for row, vector in zip(rows, vectors, strict=True)
        ]
        at = self._services.clock.wall()
        commit = facts_commit(at, tuple(changes), self._services.ids.new())
        await self._services.store.commit(commit)
        self._kit.metrics.embedding(self._agent, "ok", len(rows))
        return True

    async def _part(
        self, rows: tuple[StoredFact, ...], error: ModelRefusedError
    ) -> bool:
        """Find out which text was refused: the others shall have their vectors."""
        if error.kind in ("auth", "quota"):  # not the text's fault
            self._try_later(str(error), LONGEST_WAIT)
            return False
        if len(rows) > 1:
            middle = len(rows) // 2
            first = await self._give_vectors(rows[:middle])
            return first and await self._give_vectors(rows[middle:])
        for row in rows:
            self._passed_over = row.number
            self._kit.metrics.embedding(self._agent, "refused")
            LOG.warning(
                "a fact has no vector and is found by its words only",
                agent=self._agent,
                fact=row.id,
                why=Quoted(error),
            )
        return True

    def _try_later(self, why: str, seconds: float | None) -> None:
        wait = min(max(seconds or self._wait, FIRST_WAIT), LONGEST_WAIT)
        LOG.warning(
            "facts wait for their vectors",
            agent=self._agent,
            why=Quoted(why),
            seconds=wait,
        )
        self._wait = min(self._wait * 2, LONGEST_WAIT)
        self._is_waiting = True
        self.after(wait, RetryEmbedding())
