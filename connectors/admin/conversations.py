"""Lists conversations, and tells what happened in one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import msgspec

from actors.journal import records
from actors.journal.records import ConversationRecord
from connectors.admin.display import Complain, read_record
from connectors.admin.story import StoryEvent, Storyteller
from runtime.errors import MisuseError
from runtime.store.database import FIRST, MOST_NAMED, Inspection, Mark
from runtime.store.rows import StoredEvent

PAGE = 1000

# Chosen: a filter that fits nobody is done within a few milliseconds.
MOST_LOOKED_AT = 5_000
"""Conversations that are read for one page at most."""


class Conversation(msgspec.Struct, frozen=True):
    """One conversation and its record."""

    stream: str
    body: ConversationRecord


class ConversationPage(msgspec.Struct, frozen=True):
    """One page of conversations, the one with the newest message first."""

    found: list[Conversation]
    next: Mark | None
    """Where the next page begins; None: there is none."""


class StoryPage(msgspec.Struct, frozen=True):
    """One page of a conversation's events, in their order."""

    scenes: list[StoryEvent]
    before: int
    """Where the page before this one ends; 0: there is none."""

    after: int
    """Where the next page begins; 0: there is none."""


def everything(_conversation: Conversation) -> bool:
    """Want every conversation."""
    return True


def read_conversations(  # noqa: PLR0913  each filter has a name
    rows: Inspection,
    limit: int,
    complain: Complain,
    *,
    past: Mark = FIRST,
    agent: str = "",
    connector: str = "",
    fits: Callable[[Conversation], bool] = everything,
) -> ConversationPage:
    """List conversations, the one with the newest message first.

    Args:
        rows: the database.
        limit: most of them to give.
        complain: told of rows that cannot be read.
        past: where the page begins.
        agent: only this one's; empty: all.
        connector: only those there; empty: all.
        fits: says which of these are wanted.
    """
    found: list[Conversation] = []
    mark = past
    for looked_at, row in enumerate(rows.records(records.CONVERSATION, past=past)):
        if len(found) == limit or looked_at == MOST_LOOKED_AT:
            return ConversationPage(found, mark)
        mark = (row.at, row.number)
        body = read_record(row, ConversationRecord, complain)
        if body is None or agent not in {"", body.agent}:
            continue
        conversation = Conversation(row.id, body)
        if connector in {"", body.connector} and fits(conversation):
            found.append(conversation)
    return ConversationPage(found, None)


def read_story(
    rows: Inspection,
    stream: str,
    limit: int,
    key: bytes = b"",
    *,
    before: int = 0,
    after: int = 0,
) -> StoryPage:
    """Give one page of a conversation's events; without `before` or `after` the last.

    Args:
        rows: the database.
        stream: its whole name.
        limit: most events to tell.
        key: checks receipts of tool calls; empty: none is checked.
        before: number of the event up to which they are wanted; 0: to the last.
        after: number of the event from which on they are wanted instead.

    Raises:
        MisuseError: nothing of that name has happened there.
    """
    if after:
        found = rows.events(stream, after, limit)
    else:
        found = rows.events_before(stream, before, limit)
    if not found:
        raise MisuseError(f"there is no conversation {stream!r}, or no more of it")
    teller = Storyteller(rows, key)
    scenes = [scene for each in found for scene in teller.tell(each.event)]
    first, last = found[0].number, found[-1].number
    has_earlier = bool(rows.events_before(stream, first, 1))
    has_later = bool(rows.events(stream, last, 1))
    return StoryPage(scenes, first if has_earlier else 0, last if has_later else 0)


def find_conversation(rows: Inspection, name: str) -> str:
    """Find the stream that a name means.

    Raises:
        MisuseError: there is none, or more than one.
    """
    if rows.events(name, limit=1):
        return name
    found = (row.id for row in rows.records(records.CONVERSATION) if name in row.id)
    streams = list(itertools.islice(found, MOST_NAMED + 1))
    if not streams:
        raise MisuseError(
            f"no conversation has {name!r} in its name; `callboard replay` lists them"
        )
    if len(streams) > 1:
        more = ", …" if len(streams) > MOST_NAMED else ""
        raise MisuseError(
            f"more than one conversation has {name!r} in its name:"
            f" {', '.join(streams[:MOST_NAMED])}{more}; give more of it"
        )
    return streams[0]


def events_of(rows: Inspection, stream: str) -> Iterator[StoredEvent]:
    """Give the events of a conversation and of its turns, as they happened."""
    after = 0
    while True:
        entries = rows.events(stream, after, PAGE)
        for entry in entries:
            after = entry.number
            yield entry.event
        if len(entries) < PAGE:
            return
