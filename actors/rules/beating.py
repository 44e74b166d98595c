"""Heartbeats, as models ask for them; pure (F240, F252-F254).

An agent has one heartbeat in each chat: what it looks after there, and how often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules import recurrence
from actors.rules.appointing import refused
from actors.rules.confirming import Outcome

if TYPE_CHECKING:
    from actors.rules import actions
    from actors.rules.appointing import Book
    from actors.rules.schedule import Appointment

HALF_HOUR = 30
"""Minutes between two heartbeats if nobody says otherwise (F296)."""


def create(book: Book, wish: actions.CreateHeartbeat) -> Outcome:
    """Set what an agent looks after, and how often (F240)."""
    agent = book.agent(wish.agent)
    if agent is None:
        return refused(wish.prompt, f"there is no agent {wish.agent!r}")
    found, it = _beating(book, agent)
    rule = recurrence.beat(wish.minutes)
    it = msgspec.structs.replace(it, text=wish.prompt, repeat=rule)
    told = book.set(found, it)
    if told.kind == "refused":
        return told
    return Outcome(kind="heartbeat_created", what=wish.prompt, count=wish.minutes)


def add_item(book: Book, item: str) -> Outcome:
    """Put an item on the list; the first begins the heartbeat (F252)."""
    found, it = _beating(book, book.origin.agent)
    if _folded(item) in map(_folded, it.items):
        return Outcome(kind="heartbeat_added", what=item)
    if len(it.items) >= book.config.max_items:
        return refused(item, f"{book.config.max_items} items are the most")
    told = book.set(found, msgspec.structs.replace(it, items=(*it.items, item)))
    if told.kind == "refused":
        return msgspec.structs.replace(told, what=item)
    return Outcome(kind="heartbeat_added", what=item)


def remove_item(book: Book, item: str) -> Outcome:
    """Take an item off the list; after the last it rests (F253)."""
    found, it = _beating(book, book.origin.agent)
    wanted = _folded(item)
    gone = [each for each in it.items if _folded(each) == wanted]
    gone = gone or [each for each in it.items if wanted in _folded(each)]
    if len(gone) != 1:
        return Outcome(kind="not_found", what=item)
    left = tuple(each for each in it.items if each != gone[0])
    changed = msgspec.structs.replace(it, items=left)
    if not (left or it.text or it.by_settings):
        changed = msgspec.structs.replace(changed, next_due=0.0)
    book.keep(found, changed)
    return Outcome(kind="heartbeat_removed", what=gone[0])


def set_interval(book: Book, minutes: int) -> Outcome:
    """Say how often the list is looked at (F254)."""
    found, it = _beating(book, book.origin.agent)
    rule = recurrence.beat(minutes)
    told = book.set(found, msgspec.structs.replace(it, repeat=rule))
    if told.kind == "refused":
        return told
    return Outcome(kind="heartbeat_set", count=minutes)


def _beating(book: Book, agent: str) -> tuple[str, Appointment]:
    """Give an agent's heartbeat for this chat, or how a new one would begin."""
    address = book.origin.address
    for name, it in book.kept.items():
        if it.kind == "heartbeat" and (it.agent, it.address) == (agent, address):
            return name, it
    rule = recurrence.beat(HALF_HOUR)
    return book.new_id(), book.new("heartbeat", "", rule, book.now // 1, agent)


def _folded(item: str) -> str:
    return " ".join(item.split()).casefold()
