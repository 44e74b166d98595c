"""Whether a note is kept, already known or refused, and as which row; pure.

Pure. Texts come redacted; ids and the time are given; what is there already was read
before. `actors/memory/review.py` is the shell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import assert_never

import msgspec

from actors.config.memory import MemoryConfig
from actors.memory.messages import (
    CountReward,
    FactKind,
    Forget,
    KeepFact,
    KeepLog,
    LearnLesson,
    Note,
    SetState,
    Summarise,
)
from actors.memory.scopes import AGENT
from actors.messages.inbound import Inbound
from actors.messages.keys import fact_partition
from actors.rules.text.secrets import PASSWORD
from actors.rules.text.similarity import is_alike, words_of
from runtime.store.facts import FactChange, SaveFact, StoredFact, UseFacts

DAY = 86_400.0
PLAIN = "plain"
LONGEST_NAME = 64
"""Characters of a category, a key or a domain."""

CATEGORIES = (
    "sticky",
    "profile",
    "user_preference",
    "project_context",
    "learned_pattern",
    "conversation",
)
"""What a fact may be; the first two never expire."""

SEARCHED = ("fact", "summary", "log")
"""Kinds that are found by their words and their meaning."""


class NoteRefusal(msgspec.Struct, frozen=True):
    """Why a note is not kept."""

    reason: str
    """One bounded word."""

    text: str
    """Text for the agent that wrote it."""


class NoteRow(msgspec.Struct, frozen=True):
    """A note in the form of its row."""

    kind: FactKind
    text: str
    category: str = ""
    key: str = ""

    @property
    def is_event(self) -> bool:
        """Whether it is something that happened, and may happen again."""
        return self.kind in ("outcome", "log")


class NotePlace(msgspec.Struct, frozen=True, kw_only=True):
    """The scope and the time of a note."""

    agent: str
    scope: str
    provenance: str
    now: float


def written(note: Note, clean: Callable[[str], str]) -> NoteRow:
    """Write a note down, without secrets.

    Args:
        note: any but `Forget`, which is no text.
        clean: takes out what may not be kept.
    """
    match note:
        case KeepFact(text=text, category=category, key=key):
            found = NoteRow("fact", clean(text), category.strip().lower(), clean(key))
        case SetState(key=key, value=value):
            # What its key calls a secret is one, all of it.
            is_told = clean(f"{key}: {PLAIN}").endswith(PLAIN)
            text = clean(value) if is_told else PASSWORD
            found = NoteRow("state", text, "", clean(key))
        case LearnLesson(domain=domain, rule=rule):
            found = NoteRow("lesson", clean(rule), clean(domain))
        case CountReward(reward=reward, domain=domain, text=text):
            found = NoteRow("outcome", f"{reward:+d} {clean(text)}", clean(domain))
        case Summarise(text=text):
            found = NoteRow("summary", clean(text))
        case KeepLog(text=text):
            found = NoteRow("log", clean(text), "daily")
        case Forget():
            found = NoteRow("fact", "")
        case _:
            assert_never(note)
    return found


def refusal(found: NoteRow, config: MemoryConfig) -> NoteRefusal | None:
    """Say why what is written down cannot be kept, if so."""
    if not found.text.strip():
        return NoteRefusal("empty", "there is nothing to remember")
    if len(found.text) > config.max_fact_chars:
        return NoteRefusal(
            "too_long", f"at most {config.max_fact_chars} characters are kept"
        )
    if found.kind == "fact" and found.category not in CATEGORIES:
        return NoteRefusal(
            "bad_category", f"the categories are: {', '.join(CATEGORIES)}"
        )
    if found.kind in ("lesson", "outcome") and not is_name(found.category):
        return NoteRefusal(
            "bad_name", f"give a domain of 1 to {LONGEST_NAME} characters"
        )
    if (found.key or found.kind == "state") and not is_name(found.key):
        return NoteRefusal("bad_name", f"give a key of 1 to {LONGEST_NAME} characters")
    return None


def out_of_place(note: Note, own: str, *, is_owner: bool) -> NoteRefusal | None:
    """Say why a note cannot be kept where it is meant to be, if so.

    Args:
        own: the scope it comes from.
        is_owner: whether an owner wrote it.
    """
    scope = note.scope if isinstance(note, KeepFact) else ""
    if scope in ("", own):
        return None
    if scope != AGENT:
        return NoteRefusal("other_scope", "what is told here is kept for here")
    return (
        None
        if is_owner
        else NoteRefusal("not_owner", "only an owner may tell all chats")
    )


def is_name(text: str) -> bool:
    """Whether a text can be a key or a domain."""
    return 1 <= len(text.strip()) <= LONGEST_NAME and text.isprintable()


def lifetime(kind: str, category: str, config: MemoryConfig) -> float:
    """Say how many seconds something is kept; 0: for ever."""
    days = {
        ("fact", "user_preference"): config.user_preference_days,
        ("fact", "project_context"): config.project_context_days,
        ("fact", "learned_pattern"): config.learned_pattern_days,
        ("fact", "conversation"): config.conversation_days,
        ("log", "daily"): config.conversation_days,
    }
    if kind == "outcome":
        return config.learned_pattern_days * DAY
    return days.get((kind, category), 0.0) * DAY


def row_of(
    found: NoteRow, place: NotePlace, row_id: str, config: MemoryConfig
) -> SaveFact:
    """Make the row of what is written down."""
    text = found.text.strip()
    is_searched = found.kind in SEARCHED
    seconds = lifetime(found.kind, found.category, config)
    return SaveFact(
        id=row_id,
        agent=place.agent,
        scope=place.scope,
        part=fact_partition(place.agent, place.scope),
        kind=found.kind,
        category=found.category,
        key=found.key,
        text=text,
        words=words_of(text) if is_searched else (),
        provenance=place.provenance,
        expires_at=place.now + seconds if seconds else 0.0,
        wants_vector=is_searched,
    )


def known(found: NoteRow, there: Iterable[StoredFact]) -> StoredFact | None:
    """Find what says the same already.

    What has a key is the same only word by word; what sticks is not known by what
    expires.
    """
    for fact in there:
        lasts = fact.category == found.category or not fact.expires_at
        is_same = fact.text == found.text.strip()
        if lasts and (is_same or (not found.key and is_alike(found.text, fact.text))):
            return fact
    return None


def said_again(fact: StoredFact, place: NotePlace, config: MemoryConfig) -> FactChange:
    """Note that somebody told again what is known: it is kept for as long anew."""
    seconds = lifetime(fact.kind, fact.category, config)
    # Why not always: saving it anew costs its vector.
    if not seconds or place.now + seconds - fact.expires_at < DAY:
        return UseFacts(agent=fact.agent, scopes=(fact.scope,), ids=(fact.id,))
    return SaveFact(
        id=fact.id,
        agent=fact.agent,
        scope=fact.scope,
        part=fact_partition(fact.agent, fact.scope),
        kind=fact.kind,
        category=fact.category,
        key=fact.key,
        text=fact.text,
        words=fact.words,
        provenance=fact.provenance,
        expires_at=place.now + seconds,
        wants_vector=fact.kind in SEARCHED,
    )


def auto_saved(inbound: Inbound, config: MemoryConfig) -> tuple[str, str] | None:
    """Say what is kept of a person's message by itself, if anything.

    Returns:
        Key and text, for a fact of the category `conversation`.
    """
    text = inbound.text.strip()
    is_persons = not (inbound.chain.agents or inbound.occasion)
    if not (config.auto_save and is_persons and len(text) >= config.auto_save_chars):
        return None
    # Why no more in the key: several ids in a row look like a secret, and are redacted.
    return inbound.id, text[: config.max_fact_chars]
