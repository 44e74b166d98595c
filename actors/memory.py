"""What an agent remembers: asked by its turns, told what became durable.

Answers many at once: each question is a recollection of its own, so that a slow
embedder or disk keeps nobody else waiting. What may be read is named by every
question; `runtime/facts.py` has no way round that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors import names
from actors.embedding import Embed
from actors.errors import ChatError, OverloadedError
from actors.recollection import Sweep, Work, WorkDone
from actors.remembering import (
    Consider,
    LookUp,
    Recall,
    Recalled,
    Remembered,
    WereOfUse,
)
from actors.rules.blanks import Blanks, Look
from actors.scribe import WriteDown
from runtime.actor import Actor
from runtime.fact_rows import SaveFact, UseFacts
from runtime.keyed import KeyGivenUp
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig
from runtime.messages import Keyed
from runtime.reply import Reply
from runtime.rows import Commit

if TYPE_CHECKING:
    from actors.memory_kit import MemoryKit
    from actors.remembering import Fact
    from actors.services import Services
    from runtime.fact_rows import FactChange
    from runtime.rows import Committed

LOG = EventLog("memory")

# Chosen: twice as long as a recollection may take; by then nobody waits for it.
FORGOTTEN_AFTER = 240.0
"""Seconds until it counts no more: its end was not heard of, as when those who answer
were restarted together."""

MOST_OPEN = 1_000
"""Questions answered at once; one more is refused."""

NOTE_USE_AFTER = 60.0
"""Seconds until it is written down that a fact was of use, with others by then."""

MOST_USED = 2_000
"""Facts of use after which that is written down at once."""


class NoteUse(msgspec.Struct, frozen=True):
    """A note to itself: write down which facts were of use."""


class Open(msgspec.Struct, frozen=True):
    """A question that is being answered."""

    reply: Reply | None
    began_at: float
    """Seconds on the clock that never goes back."""

    look: Look


class Memory(Actor):
    """What one agent remembers.

    Takes: `Recall`, `Consider`, `LookUp`, asked; `Remembered`, `WereOfUse`, told;
        `WorkDone`, `KeyGivenUp` about a recollection.
    Sends: `Work` to new recollections; `Embed` to the embedding; `WriteDown` to the
        scribe; which facts were of use to the store.
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
        self._open: dict[str, Open] = {}
        self._blanks = Blanks()
        self._used: dict[str, dict[str, None]] = {}
        """By scope: ids."""

    def on_start(self) -> None:
        """Look for what has expired, now and every now and then."""
        self.every(self._kit.config.sweep_every, Sweep())
        self.note(Sweep())

    def on_receive(self, message: object) -> None:
        """Hand a question on, or take in what has happened."""
        match message:
            case Recall() | Consider() | LookUp() | Sweep():
                self._begin(message)
            case WorkDone(key=key, blank=blank):
                done = self._open.pop(key, None)
                if done is not None:
                    self._blanks.found(blank, done.look)
            case KeyGivenUp(key=key, reason=reason):
                self._answer_for(key, reason)
            case Remembered(changes=changes):
                self._take_in(changes)
            case WereOfUse(facts=facts):
                self._see_used(facts)
            case NoteUse():
                self._note_use()
            case _:
                super().on_receive(message)

    def on_stop(self) -> None:
        """Write down what was of use."""
        self._note_use()

    def _begin(self, asked: Recall | Consider | LookUp | Sweep) -> None:
        reply, now = self.defer_reply(), self._services.clock.monotonic()
        if isinstance(asked, Recall) and self._blanks.cover(asked.scopes, now):
            self._kit.metrics.recall(self._agent, "ok", 0.0)
            if reply is not None:
                reply.offer(Recalled())
            return
        if len(self._open) >= MOST_OPEN:
            since = now - FORGOTTEN_AFTER
            self._open = {k: x for k, x in self._open.items() if x.began_at > since}
        if len(self._open) >= MOST_OPEN:
            text = f"the memory of {self._agent} is asked too much at once; try again"
            self._refuse(reply, text)
            return
        key = self._services.ids.new()
        self._open[key] = Open(reply, now, self._blanks.look(now))
        work = Keyed(key, Work(key, asked, reply))
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
            entry = WriteDown(at, row.text)
            if row.kind == "log" and not self.tell(names.scribe(self._agent), entry):
                self._kit.metrics.log(self._agent, "dropped")

    def _see_used(self, facts: tuple[Fact, ...]) -> None:
        if facts and not self._used:
            self.after(NOTE_USE_AFTER, NoteUse())
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
            commit = Commit(at=at, facts=tuple(changes))
            self._services.store.submit(commit, self._noted)

    def _noted(self, outcome: Committed | Exception) -> None:
        if isinstance(outcome, Exception):
            LOG.warning(
                "not noted which facts were of use",
                agent=self._agent,
                why=str(outcome),
            )
