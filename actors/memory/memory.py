"""The actors of one agent's memory: turns ask it, sessions store notes through it.

`Memory` answers many at once: each question is a recollection of its own, so that a
slow embedder or disk keeps nobody else waiting. What may be read is named by every
question; `runtime/store/facts.py` has no way round that. Beside it one actor writes the
daily log, a file for each day, and one makes the vectors of facts in the background.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from actors import names
from actors.errors import (
    ChatError,
    ModelBusyError,
    ModelRefusedError,
    OverloadedError,
    ToolError,
)
from actors.journal.parts import facts_commit
from actors.memory.kit import MemoryKit
from actors.memory.messages import (
    Fact,
    FactsUsed,
    NotesStored,
    Recall,
    RecalledFacts,
    ReviewNotes,
    SearchMemory,
)
from actors.memory.recall import ForgetExpired, StartWork, WorkDone
from actors.memory.scopes import EmptyScopes, ReadStarted
from actors.ports import Embedder, LogBook
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Keyed
from runtime.actor.reply import Reply
from runtime.clock import Clock
from runtime.errors import StoreError
from runtime.store.facts import FactChange, PutVector, SaveFact, StoredFact, UseFacts
from runtime.store.rows import Committed
from runtime.supervision.keyed import KeyGivenUp
from runtime.telemetry.logs import EventLog, Quoted

LOG = EventLog("memory")

DAY = 86_400.0


class WriteLogEntry(msgspec.Struct, frozen=True):
    """An entry for the file of its day."""

    at: float
    """Unix seconds."""

    text: str


class RemoveOldLogs(msgspec.Struct, frozen=True):
    """A note to itself: delete files older than the settings keep."""


class Scribe(Actor):
    """Writes log entries in their order, away from the actors that cause them.

    Takes: `WriteLogEntry`, from the memory.
    Sends: nothing.
    Keeps: nothing. Files of days long past go, once a day.
    Fails: never by a disk that fails; the entry is in the store all the same.
    Ends: with the system.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=1_000)

    def __init__(self, agent: str, book: LogBook, kit: MemoryKit, clock: Clock) -> None:
        super().__init__()
        self._agent = agent
        self._book = book
        self._keep = kit.config.log_days * DAY
        self._metrics = kit.metrics
        self._clock = clock

    def on_start(self) -> None:
        """Look for what is too old, now and every day."""
        if self._keep:
            self.note(RemoveOldLogs())
            self.every(DAY, RemoveOldLogs())

    async def on_receive(self, message: object) -> None:
        """Write one entry, or remove what is too old."""
        match message:
            case WriteLogEntry(at=at, text=text):
                await self._write(at, text)
            case RemoveOldLogs():
                await self._tidy()
            case _:
                super().on_receive(message)

    async def _write(self, at: float, text: str) -> None:
        try:
            await self._book.append(self._agent, at, text)
            self._metrics.logs.add(1, self._agent, "ok")
        except ToolError as error:
            self._metrics.logs.add(1, self._agent, "failed")
            LOG.warning("daily log not written", agent=self._agent, why=str(error))

    async def _tidy(self) -> None:
        before = self._clock.wall() - self._keep
        try:
            removed = await self._book.prune(self._agent, before)
        except ToolError as error:
            LOG.warning("daily logs not tidied", agent=self._agent, why=str(error))
            return
        if removed:
            self._metrics.logs_removed.add(removed)
            LOG.info("old daily logs removed", agent=self._agent, count=removed)


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
            self._kit.metrics.embeddings.add(1, self._agent, "busy")
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
        self._kit.metrics.embeddings.add(len(rows), self._agent, "ok")
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
            self._kit.metrics.embeddings.add(1, self._agent, "refused")
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


# Chosen: twice as long as a recollection may take; by then nobody waits for it.
FORGOTTEN_AFTER = 240.0
"""Seconds until it counts no more: its end was not heard of, as when those who answer
were restarted together."""

FORGET_EVERY = 3_600.0
"""Seconds between two looks for what has expired."""

MOST_OPEN = 1_000
"""Questions answered at once; one more is refused."""

NOTE_USE_AFTER = 60.0
"""Seconds until it is written down that a fact was of use, with others by then."""

MOST_USED = 2_000
"""Facts of use after which that is written down at once."""


class StoreUse(msgspec.Struct, frozen=True):
    """A note to itself: store which facts were shown to a model."""


class OpenRecall(msgspec.Struct, frozen=True):
    """One question to the memory whose answer is not complete yet."""

    reply: Reply | None
    began_at: float
    """Seconds on the clock that never goes back."""

    look: ReadStarted


class Memory(Actor):
    """What one agent remembers.

    Takes: `Recall`, `ReviewNotes`, `SearchMemory`, asked; `NotesStored`, `FactsUsed`,
        told; `WorkDone`, `KeyGivenUp` about a recollection.
    Sends: `StartWork` to new recollections; `Embed` to the embedding; `WriteLogEntry`
        to the scribe; which facts were of use to the store.
    Keeps: who waits for which recollection, what was of use of late, and of whom
        nothing is known: they are answered at once.
    Fails: never by a recollection that breaks; its asker is told. Restarted, it
        forgets who waits, and their own deadlines end the waiting.
    Ends: with the system.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=10_000)

    def __init__(self, agent: str, kit: MemoryKit, services: Services) -> None:
        super().__init__()
        self._agent = agent
        self._kit = kit
        self._services = services
        self._open: dict[str, OpenRecall] = {}
        self._blanks = EmptyScopes()
        self._used: dict[str, dict[str, None]] = {}
        """By scope: ids."""

    def on_start(self) -> None:
        """Look for what has expired, now and every now and then."""
        self.every(FORGET_EVERY, ForgetExpired())
        self.note(ForgetExpired())

    def on_receive(self, message: object) -> None:
        """Hand a question on, or take in what has happened."""
        match message:
            case Recall() | ReviewNotes() | SearchMemory() | ForgetExpired():
                self._begin(message)
            case WorkDone(key=key, blank=blank):
                done = self._open.pop(key, None)
                if done is not None:
                    self._blanks.found(blank, done.look)
            case KeyGivenUp(key=key, reason=reason):
                self._answer_for(key, reason)
            case NotesStored(changes=changes):
                self._take_in(changes)
            case FactsUsed(facts=facts):
                self._see_used(facts)
            case StoreUse():
                self._note_use()
            case _:
                super().on_receive(message)

    def on_stop(self) -> None:
        """Write down what was of use."""
        self._note_use()

    def _begin(
        self, asked: Recall | ReviewNotes | SearchMemory | ForgetExpired
    ) -> None:
        reply, now = self.defer_reply(), self._services.clock.monotonic()
        if isinstance(asked, Recall) and self._blanks.cover(asked.scopes, now):
            self._kit.metrics.recalls.observe(0.0, self._agent, "ok")
            if reply is not None:
                reply.offer(RecalledFacts())
            return
        if len(self._open) >= MOST_OPEN:
            since = now - FORGOTTEN_AFTER
            self._open = {k: x for k, x in self._open.items() if x.began_at > since}
        if len(self._open) >= MOST_OPEN:
            text = f"the memory of {self._agent} is asked too much at once; try again"
            self._refuse(reply, text)
            return
        key = self._services.ids.new()
        self._open[key] = OpenRecall(reply, now, self._blanks.look(now))
        work = Keyed(key, StartWork(key, asked, reply))
        if not self.tell(names.recollections(self._agent), work):
            self._open.pop(key)
            self._refuse(
                reply, f"the memory of {self._agent} is not running; try again"
            )

    def _refuse(self, reply: Reply | None, text: str) -> None:
        if reply is not None:
            reply.offer_error(OverloadedError(text))

    def _answer_for(self, key: str, reason: str) -> None:
        given_up = self._open.pop(key, None)
        if given_up is not None and given_up.reply is not None:
            given_up.reply.offer_error(
                ChatError(f"the memory of {self._agent} broke: {reason}")
            )

    def _take_in(self, changes: tuple[FactChange, ...]) -> None:
        saved = [change for change in changes if isinstance(change, SaveFact)]
        if saved:
            self._blanks.wrote([row.scope for row in saved])
        if self._kit.embedder is not None and any(row.wants_vector for row in saved):
            self.tell(names.embedding(self._agent), Embed())
        if self._kit.log_book is None:
            return
        at = self._services.clock.wall()
        for row in saved:
            entry = WriteLogEntry(at, row.text)
            if row.kind == "log" and not self.tell(names.scribe(self._agent), entry):
                self._kit.metrics.logs.add(1, self._agent, "dropped")

    def _see_used(self, facts: tuple[Fact, ...]) -> None:
        if facts and not self._used:
            self.after(NOTE_USE_AFTER, StoreUse())
        for fact in facts:
            self._used.setdefault(fact.scope, {})[fact.id] = None
        if sum(map(len, self._used.values())) >= MOST_USED:
            self._note_use()

    def _note_use(self) -> None:
        used, self._used = self._used, {}
        changes: list[FactChange] = [
            UseFacts(agent=self._agent, scopes=(scope,), ids=tuple(ids))
            for scope, ids in used.items()
        ]
        if changes:
            at = self._services.clock.wall()
            commit = facts_commit(at, tuple(changes), self._services.ids.new())
            self._services.store.submit(commit, self._noted)

    def _noted(self, outcome: Committed | Exception) -> None:
        if isinstance(outcome, Exception):
            LOG.warning(
                "not noted which facts were of use",
                agent=self._agent,
                why=str(outcome),
            )
