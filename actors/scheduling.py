"""What is said to the scheduler, and what it answers.

A turn that ends asks `Arrange` for what its answer wants done later. The rows of
`Arranged` go into the one commit that carries the answer, so nothing is promised by a
turn that was stopped; after that commit `Scheduled` tells the scheduler to look at
them.
"""

from __future__ import annotations

import msgspec

from actors.rules.appointing import Origin
from actors.rules.arranging import Wish
from actors.rules.confirming import Outcome
from runtime.entries import Entry


class Arrange(msgspec.Struct, frozen=True, kw_only=True):
    """Asked: what would these wishes change? Answered by `Arranged`."""

    wishes: tuple[Wish, ...]
    origin: Origin


class Arranged(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be committed, and what each wish will have come to."""

    changes: tuple[Entry, ...] = ()
    results: tuple[Outcome, ...] = ()
    """One for each wish, in order."""


class Scheduled(msgspec.Struct, frozen=True):
    """Told: the rows with these ids, which `Arranged` gave, are durable."""

    ids: tuple[str, ...]


class LookAgain(msgspec.Struct, frozen=True):
    """Told by the store's keeper: another program changed rows.

    Also by whoever takes settings over: they may want others kept.
    """


def all_refused(arrange: Arrange, why: str) -> Arranged:
    """Say that none of the wishes comes to anything."""
    refused = Outcome(kind="refused", what="schedule", why=why)
    return Arranged(results=(refused,) * len(arrange.wishes))
