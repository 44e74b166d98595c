"""Messages to an agent's memory, and its answers.

A turn asks `Recall` before it asks a model, and `ReviewNotes` when it knows what its
answer wants remembered. `ReviewedNotes.changes` go into the one commit that carries the
answer (`Commit.facts`), so nothing is remembered of a turn that was stopped; after
that commit `NotesStored` tells the memory, which makes vectors in the background.

What can be said to a memory: notes that a model, a person or a tool makes.

`needs` judges by a question's words which parts of memory it needs. Off, everything is
loaded. On, the words of a subject decide, as they do about the sections of a prompt.
Profile, lessons and what sticks are never gated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from actors import names
from actors.rules.prompt.build import speaks_of
from runtime.store.facts import FactChange
from runtime.store.rows import Entry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.config.prompt import GateName
    from runtime.actor.actor import Actor


Need = Literal["outcomes", "tasks", "summaries", "recall"]
"""Rewards of late; what is planned; earlier conversations; what has to do with it."""

EVERYTHING: frozenset[Need] = frozenset(get_args(Need))

SUBJECTS: Mapping[Need, GateName] = {
    "outcomes": "outcomes",
    "tasks": "scheduling",
    "summaries": "recall",
    "recall": "recall",
}


def needs(question: str, *, is_gated: bool) -> frozenset[Need]:
    """Say what a question needs; all of it unless the gates are on."""
    if not is_gated:
        return EVERYTHING
    return frozenset(
        need for need, subject in SUBJECTS.items() if speaks_of(question, subject)
    )


FactKind = Literal["fact", "state", "lesson", "outcome", "summary", "log"]


class KeepFact(msgspec.Struct, frozen=True, kw_only=True):
    """Remember a fact."""

    category: str
    text: str
    scope: str = ""
    """Empty: where the note comes from; the only other one is `agent`."""

    key: str = ""
    """If given, it takes the place of the fact with the same key."""


class SetState(msgspec.Struct, frozen=True):
    """A key has this value from now on."""

    key: str
    value: str


class LearnLesson(msgspec.Struct, frozen=True):
    """Remember a rule for the future."""

    domain: str
    rule: str


class CountReward(msgspec.Struct, frozen=True):
    """Rate an answer: 1 helpful, 0 neutral, -1 unhelpful."""

    reward: Literal[-1, 0, 1]
    domain: str
    text: str


class Summarise(msgspec.Struct, frozen=True):
    """Remember a summary of a conversation."""

    text: str


class KeepLog(msgspec.Struct, frozen=True):
    """Add an entry to the daily log."""

    text: str


class Forget(msgspec.Struct, frozen=True, kw_only=True):
    """Forget the facts that match every filter that is not empty."""

    scopes: tuple[str, ...] = ()
    """Of `NoteSource.readable`; empty: where the note comes from."""

    ids: tuple[str, ...] = ()
    kinds: tuple[FactKind, ...] = ()
    categories: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    is_asked: bool = False
    """Whether somebody asked for it: of what was said before, nothing is remembered
    any more."""


Note = KeepFact | SetState | LearnLesson | CountReward | Summarise | KeepLog | Forget


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
    """Asked: what should a model know for this question? Answered by `RecalledFacts`.

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


class RecalledFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt shows of memory; each tuple in the order it is shown."""

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


class NoteSource(msgspec.Struct, frozen=True, kw_only=True):
    """The conversation and the person that notes come from."""

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


class ReviewNotes(msgspec.Struct, frozen=True, kw_only=True):
    """Asked: what would these notes change? Answered by `ReviewedNotes`."""

    notes: tuple[Note, ...]
    source: NoteSource
    now: float
    """Unix seconds."""


class NoteResult(msgspec.Struct, frozen=True, kw_only=True):
    """The fact that results from one note, once the changes are committed."""

    outcome: Literal["saved", "known", "refused", "forgotten"]
    text: str = ""
    """What is kept, after redaction; of `known` what was there; of `refused` why."""

    reason: str = ""
    """Of `refused`: one bounded word."""

    ids: tuple[str, ...] = ()
    count: int = 0
    """Of `forgotten`: how many."""


class ReviewedNotes(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to commit, and the result of each note."""

    changes: tuple[FactChange, ...] = ()
    entries: tuple[Entry, ...] = ()
    """What is written down of a forgetting."""

    results: tuple[NoteResult, ...] = ()
    """One for each note, in order."""


class NotesStored(msgspec.Struct, frozen=True):
    """Told: the changes that `ReviewedNotes` gave are durable."""

    changes: tuple[FactChange, ...]


class SearchMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Asked: find facts for a question; more and longer ones than a prompt shows.

    Answered by a tuple of `Fact`, the best first.
    """

    question: str
    scopes: tuple[str, ...]
    now: float
    limit: int = 10


class FactsUsed(msgspec.Struct, frozen=True):
    """Told after a recall: a model was shown these facts."""

    facts: tuple[Fact, ...]


def tell_remembered(actor: Actor, agent: str, changes: tuple[FactChange, ...]) -> None:
    """Tell a memory that what it gave is durable."""
    if changes:
        actor.tell(names.memory(agent), NotesStored(changes))
