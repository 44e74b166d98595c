"""One thing that a memory is asked, done while others are."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors import names
from actors.considering import Considering
from actors.forgetting import mark_of
from actors.recalling import Recalling
from actors.remembering import Consider, Considered, LookUp, Recall
from runtime.actor import Actor
from runtime.errors import MisuseError, StoreError
from runtime.logs import EventLog
from runtime.reply import Reply

if TYPE_CHECKING:
    from actors.memory_kit import MemoryKit
    from actors.services import Services

LOG = EventLog("memory")

PRUNE_LIMIT = 1000
"""Facts forgotten at once because their time is over."""


class Sweep(msgspec.Struct, frozen=True):
    """A memory's note to itself: forget what has expired, count what there is."""


class Work(msgspec.Struct, frozen=True):
    """To a new recollection: do this, and answer."""

    key: str
    asked: Recall | Consider | LookUp | Sweep
    reply: Reply | None = None


class WorkDone(msgspec.Struct, frozen=True):
    """To a memory: this recollection has ended."""

    key: str
    blank: tuple[str, ...] = ()
    """Scopes in which it found nothing at all."""


class Recollection(Actor):
    """Does one thing for an agent's memory, then ends.

    Takes: `Work`, once.
    Sends: the answer; `WorkDone` to the memory.
    Keeps: nothing.
    Fails: on a bug; the memory answers in its place.
    Ends: with its answer.
    """

    deadline: ClassVar[float | None] = 120.0

    def __init__(self, agent: str, kit: MemoryKit, services: Services) -> None:
        super().__init__()
        self._agent = agent
        self._kit = kit
        self._services = services
        self._blank: tuple[str, ...] = ()

    async def on_receive(self, message: object) -> None:
        """Do it."""
        if not isinstance(message, Work):
            super().on_receive(message)
            return
        reply = message.reply or Reply()
        try:
            reply.offer(await self._answer(message.asked))
        except (StoreError, MisuseError) as error:
            reply.offer_error(error)
            LOG.warning("memory cannot be read", agent=self._agent, why=str(error))
        self.tell(names.memory(self._agent), WorkDone(message.key, self._blank))
        self.stop()

    async def _answer(self, asked: Recall | Consider | LookUp | Sweep) -> object:
        recalling = Recalling(self._agent, self._services.store.facts, self._kit)
        match asked:
            case Recall():
                clock = self._services.clock
                began = clock.monotonic()
                recalled, outcome = await recalling.recall(asked)
                took = clock.monotonic() - began
                self._kit.metrics.recall(self._agent, outcome, took)
                if recalling.is_blank:
                    self._blank = asked.scopes
                return recalled
            case LookUp():
                return await recalling.look_up(asked)
            case Consider():
                return await self._consider(asked)
            case Sweep():
                await self._sweep()
                return None

    async def _consider(self, asked: Consider) -> Considered:
        services = self._services
        considering = Considering(
            self._agent,
            services.store.facts,
            self._kit.config,
            services.ids,
            services.redact,
        )
        source = asked.source
        mark = ""
        if source.as_of:
            whose = (source.scope, *source.readable)
            mark = await mark_of(services.store, self._agent, whose)
        considered = await considering.consider(asked, mark)
        for note, result in zip(asked.notes, considered.results, strict=True):
            outcome = f"refused:{result.reason}" if result.reason else result.outcome
            self._kit.metrics.note(self._agent, type(note).__name__, outcome)
        return considered

    async def _sweep(self) -> None:
        services = self._services
        facts, now = services.store.facts, services.sure_clock.wall()
        while pruned := await facts.prune(now, PRUNE_LIMIT):
            self._kit.metrics.expired(pruned)
        counted: dict[tuple[str, str], int] = {}
        for (kind, category), count in (await facts.counts(self._agent)).items():
            # Domains of lessons and outcomes are anybody's words: no label.
            label = (kind, category if kind == "fact" else "")
            counted[label] = counted.get(label, 0) + count
        for (kind, category), count in counted.items():
            self._kit.metrics.facts(self._agent, kind, category, count)
