"""What can be said to a memory: notes that a model, a person or a tool makes."""

from __future__ import annotations

from typing import Literal

import msgspec

FactKind = Literal["fact", "state", "lesson", "outcome", "summary", "log"]


class KeepFact(msgspec.Struct, frozen=True, kw_only=True):
    """Remember a fact (F136)."""

    category: str
    text: str
    scope: str = ""
    """Empty: where the note comes from; the only other one is `agent`."""

    key: str = ""
    """If given, it takes the place of the fact with the same key."""


class SetState(msgspec.Struct, frozen=True):
    """A key has this value from now on (F137)."""

    key: str
    value: str


class LearnLesson(msgspec.Struct, frozen=True):
    """A rule for the future (F166)."""

    domain: str
    rule: str


class CountReward(msgspec.Struct, frozen=True):
    """How well something went: 1 helpful, 0 neutral, -1 not (F166)."""

    reward: Literal[-1, 0, 1]
    domain: str
    text: str


class Summarise(msgspec.Struct, frozen=True):
    """What a conversation was about (F168)."""

    text: str


class KeepLog(msgspec.Struct, frozen=True):
    """An entry of the day's log (F162)."""

    text: str


class Forget(msgspec.Struct, frozen=True, kw_only=True):
    """Forget what fits each filter that is not empty."""

    scopes: tuple[str, ...] = ()
    """Of `Source.readable`; empty: where the note comes from."""

    ids: tuple[str, ...] = ()
    kinds: tuple[FactKind, ...] = ()
    categories: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    is_asked: bool = False
    """Whether somebody asked for it: of what was said before, nothing is remembered
    any more."""


Note = KeepFact | SetState | LearnLesson | CountReward | Summarise | KeepLog | Forget
