"""Events that other programs are told of: what they say, and their rows; pure.

A row is written in the commit of what it tells of: whatever happened is told, and what
did not happen is not. `notifier.py` sends them, each at least once; the row's id is
the event's id to the receiver, the same with every try.
"""

from __future__ import annotations

from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

import msgspec

from actors.rules.keys import partition
from runtime.entries import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from runtime.entries import StoredEntry

DUE = "webhook_due"
DEAD = "webhook_dead"
"""Kinds of entries: what is to be sent, and what was given up."""

MOST_TEXT = 4_000
"""Characters of each text in an event; the rest is cut, and marked so."""

CUT = "…"

EventType = Literal[
    "turn.finished",
    "turn.cancelled",
    "turn.failed",
    "message.dropped",
    "appointment.fired",
    "appointment.paused",
    "agent.created",
    "agent.updated",
    "settings.applied",
    "settings.refused",
]
Value = str | int | float | bool | tuple[str, ...]


class Happened(msgspec.Struct, frozen=True):
    """Something that other programs may be told of."""

    type: EventType
    data: dict[str, Value]
    agent: str = ""
    """Whom it is about; empty: nobody, and every webhook is told of it."""

    texts: dict[str, str] = {}
    """What people and agents wrote: only for webhooks that are to have it."""


class Body(msgspec.Struct, frozen=True):
    """What is sent, as Standard Webhooks have it."""

    type: str
    timestamp: str
    data: dict[str, Value]


class Notice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event on its way to one receiver: the body of its row."""

    event: str
    made_at: float
    """Unix seconds."""

    body: str
    """JSON text, sent as it is with every try."""

    attempts: int = 0
    due_at: float = 0.0
    """Unix seconds before which it is not tried; 0: at once."""

    why: str = ""
    """Of the last try that failed."""


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """What one webhook is told of."""

    name: str
    events: tuple[str, ...] = ("*",)
    agents: tuple[str, ...] = ("*",)
    has_texts: bool = False

    def wants(self, happened: Happened) -> bool:
        """Tell whether it is told of something."""
        is_about = not happened.agent or _fits(happened.agent, self.agents)
        return is_about and _fits(happened.type, self.events)


class Announcer(msgspec.Struct, frozen=True):
    """Writes events down for those webhooks that are told of them."""

    subscriptions: tuple[Subscription, ...] = ()

    def __bool__(self) -> bool:
        """Whether anybody is told of anything."""
        return bool(self.subscriptions)

    def entries(
        self, happened: Iterable[Happened], now: float, new_id: Callable[[], str]
    ) -> tuple[Entry, ...]:
        """Give the rows for something that happens.

        Args:
            happened: what, in order.
            now: Unix seconds.
            new_id: gives an id that grows.
        """
        if not self.subscriptions:
            return ()
        return tuple(
            _as_due(each, to, now, new_id())
            for each in happened
            for to in self.subscriptions
            if to.wants(each)
        )


def as_entry(
    kind: str, name: str, webhook: str, notice: Notice | None, expected: int | None
) -> Entry:
    """Write a notice down; None: it is to go."""
    return Entry(
        kind=kind,
        id=name,
        owner=webhook,
        part=partition(webhook),
        body=None if notice is None else msgspec.json.encode(notice),
        expected=expected,
    )


def read(row: StoredEntry) -> Notice | None:
    """Read a notice; None if that cannot be done."""
    try:
        return msgspec.json.decode(row.body, type=Notice)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _as_due(happened: Happened, to: Subscription, now: float, name: str) -> Entry:
    data = dict(happened.data)
    if to.has_texts:
        data |= {key: _cut(text) for key, text in happened.texts.items()}
    at = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")
    body = Body(happened.type, at.replace("+00:00", "Z"), data)
    notice = Notice(
        event=happened.type, made_at=now, body=msgspec.json.encode(body).decode()
    )
    return as_entry(DUE, name, to.name, notice, 0)


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _cut(text: str) -> str:
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + CUT
