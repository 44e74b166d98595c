"""What is said to an agent's memory, and what it answers.

A turn asks `Recall` before it asks a model, and `Consider` when it knows what its
answer wants remembered. `Considered.changes` go into the one commit that carries the
answer (`Commit.facts`), so nothing is remembered of a turn that was stopped; after
that commit `Remembered` tells the memory, which makes vectors in the background.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from actors import names
from actors.notes import Note
from actors.rules.needs import Need
from runtime.entries import Entry
from runtime.fact_rows import FactChange

if TYPE_CHECKING:
    from runtime.actor import Actor


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """Something remembered, for a prompt or for people."""

    id: str
    scope: str
    kind: str
    category: str
    """Of facts: `sticky`, `user_preference`, …; of lessons and outcomes: the domain."""

    key: str
    """Of states: what it is the value of; mostly empty otherwise."""

    text: str
    score: float = 1.0
    """How much it has to do with the question, 0 to 1; 1 for what is always given."""

    created_at: float
    """Unix seconds."""

    provenance: str = ""
    """JSON: who told it, where, in which message."""


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """Asked: what is known that a model should know now? Answered by `Recalled`.

    The answer comes within `within` seconds, whatever the disk and the embedder do:
    with what there is by then.
    """

    question: str
    """What somebody said; who speaks (`[Name]: `) may stand before it."""

    scopes: tuple[str, ...]
    """Whose memory may be read, as `rules.scopes.reading` gives it; at least one."""

    now: float
    """Unix seconds."""

    needs: frozenset[Need] | None = None
    """What is wanted beside what is always given; None: as the settings say."""

    within: float = 0.0
    """Seconds; 0: `memory.recall_timeout`."""


class Recalled(msgspec.Struct, frozen=True, kw_only=True):
    """What is known; each tuple in the order in which a prompt shows it."""

    sticky: tuple[Fact, ...] = ()
    relevant: tuple[Fact, ...] = ()
    """What has to do with the question, the best first, within the limits."""

    states: tuple[Fact, ...] = ()
    lessons: tuple[Fact, ...] = ()
    outcomes: tuple[Fact, ...] = ()
    summaries: tuple[Fact, ...] = ()
    """Of earlier conversations, the newest first."""

    profile: tuple[Fact, ...] = ()
    """Who the person is: facts of the category `profile`."""

    logs: tuple[Fact, ...] = ()
    """Entries of the daily logs of today and yesterday, the oldest first."""

    missed: str = ""
    """Why something may be missing; empty: nothing is. For logs."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where notes come from."""

    scope: str
    """Where they belong: `rules.scopes.writing`."""

    readable: tuple[str, ...]
    """What may be read and forgotten from here: `rules.scopes.reading`."""

    part: int
    """Of the conversation, for the store."""

    by: Literal["model", "person", "tool", "settings"] = "model"
    is_owner: bool = False
    """Whether an owner said so: only then is `agent` written, which every chat sees."""

    connector: str = ""
    chat: str = ""
    sender_id: str = ""
    message_id: str = ""
    as_of: str = ""
    """Id of the message whose words it rests on, or of what was before them all: if
    something was forgotten since, nothing is remembered. Empty: whatever was."""


class Consider(msgspec.Struct, frozen=True, kw_only=True):
    """Asked: what would these notes change? Answered by `Considered`."""

    notes: tuple[Note, ...]
    source: Source
    now: float
    """Unix seconds."""


class NoteResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the store will hold of one note, once the changes are committed."""

    outcome: Literal["saved", "known", "refused", "forgotten"]
    text: str = ""
    """What is kept, after redaction; of `known` what was there; of `refused` why."""

    reason: str = ""
    """Of `refused`: one bounded word."""

    ids: tuple[str, ...] = ()
    count: int = 0
    """Of `forgotten`: how many."""


class Considered(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be committed, and what each note will have come to."""

    changes: tuple[FactChange, ...] = ()
    entries: tuple[Entry, ...] = ()
    """What is written down of a forgetting."""

    results: tuple[NoteResult, ...] = ()
    """One for each note, in order."""


class Remembered(msgspec.Struct, frozen=True):
    """Told: these changes, which `Considered` gave, are durable."""

    changes: tuple[FactChange, ...]


class LookUp(msgspec.Struct, frozen=True, kw_only=True):
    """Asked: facts that have to do with a question, more and longer than a prompt has.

    Answered by a tuple of `Fact`, the best first.
    """

    question: str
    scopes: tuple[str, ...]
    now: float
    limit: int = 10


class WereOfUse(msgspec.Struct, frozen=True):
    """Told by whoever recalled them: a model was shown these facts."""

    facts: tuple[Fact, ...]


def tell_remembered(actor: Actor, agent: str, changes: tuple[FactChange, ...]) -> None:
    """Tell a memory that what it gave is durable."""
    if changes:
        actor.tell(names.memory(agent), Remembered(changes))
