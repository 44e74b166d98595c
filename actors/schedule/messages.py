"""Messages to the scheduler, and its answers.

A turn that ends asks `Arrange` for what its answer wants done later. The rows of
`Arranged` go into the one commit that carries the answer, so nothing is promised by a
turn that was stopped; after that commit `AppointmentsStored` tells the scheduler to
look at them.
"""

from __future__ import annotations

import msgspec

from actors.rules.markers.outcomes import ActionOutcome
from actors.schedule.booking import RequestOrigin
from actors.schedule.requests import Wish
from runtime.store.rows import Entry


class Arrange(msgspec.Struct, frozen=True, kw_only=True):
    """Asked: what would these requests change? Answered by `Arranged`."""

    wishes: tuple[Wish, ...]
    origin: RequestOrigin


class Arranged(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to commit, and the result of each request."""

    changes: tuple[Entry, ...] = ()
    results: tuple[ActionOutcome, ...] = ()
    """One for each wish, in order."""


class AppointmentsStored(msgspec.Struct, frozen=True):
    """Told: the rows with these ids, which `Arranged` gave, are durable."""

    ids: tuple[str, ...]


class AppointmentsChanged(msgspec.Struct, frozen=True):
    """Told by the store's keeper: another program changed appointments.

    Also by whoever takes settings over: they may want others kept.
    """


def all_refused(arrange: Arrange, why: str) -> Arranged:
    """Say that none of the wishes comes to anything."""
    refused = ActionOutcome(kind="refused", what="schedule", why=why)
    return Arranged(results=(refused,) * len(arrange.wishes))
