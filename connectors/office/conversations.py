"""Conversations: which there are, and what happened in each."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import msgspec

from actors import records
from actors.records import ConversationRecord
from connectors import receipt_key
from connectors.office.record import read_record
from connectors.office.scene import Scene
from connectors.office.story import Storyteller
from runtime.errors import MisuseError
from runtime.sqlite_browse import browse
from runtime.sqlite_survey import FIRST, Mark, survey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from connectors.office.record import Complain
    from runtime.rows import StoredEvent
    from runtime.sqlite_browse import Browser

PAGE = 1000

MOST_NAMED = 5
"""How many of the conversations that a name may mean are named."""


# Chosen: a filter that fits nobody is done within a few milliseconds.
MOST_LOOKED_AT = 5_000
"""Conversations that are read for one page at most."""


class Conversation(msgspec.Struct, frozen=True):
    """One conversation, and what is counted of it."""

    stream: str
    body: ConversationRecord


class Conversations(msgspec.Struct, frozen=True):
    """Some conversations, that with the newest words first."""

    found: list[Conversation]
    next: Mark | None
    """Where the next page begins; None: there is none."""


class Told(msgspec.Struct, frozen=True):
    """Some of what happened in a conversation, in its order."""

    scenes: list[Scene]
    before: int
    """Where the page before this one ends; 0: there is none."""

    after: int
    """Where the next page begins; 0: there is none."""


def read_conversations(
    path: Path,
    limit: int,
    complain: Complain,
    *,
    past: Mark = FIRST,
    agent: str = "",
    connector: str = "",
) -> Conversations:
    """List conversations, that with the newest words first.

    Args:
        path: the database.
        limit: most of them to give.
        complain: told of rows that cannot be read.
        past: where the page begins.
        agent: only this one's; empty: all.
        connector: only those there; empty: all.
    """
    found: list[Conversation] = []
    mark = past
    with survey(path) as rows:
        for looked_at, row in enumerate(rows.recent(records.CONVERSATION, past=past)):
            if len(found) == limit or looked_at == MOST_LOOKED_AT:
                return Conversations(found, mark)
            mark = (row.at, row.number)
            body = read_record(row, ConversationRecord, complain)
            if body is None or agent not in {"", body.agent}:
                continue
            if connector in {"", body.connector}:
                found.append(Conversation(row.id, body))
    return Conversations(found, None)


def read_story(
    path: Path, stream: str, limit: int, *, before: int = 0, after: int = 0
) -> Told:
    """Tell some of what happened in a conversation; the last of it if not said else.

    Args:
        path: the database.
        stream: its whole name.
        limit: most events to tell.
        before: number of the event up to which they are wanted; 0: to the last.
        after: number of the event from which on they are wanted instead.

    Raises:
        MisuseError: nothing of that name has happened there.
    """
    with browse(path) as browser:
        if after:
            found = browser.events(stream, after, limit)
        else:
            found = browser.events_before(stream, before, limit)
        if not found:
            raise MisuseError(f"there is no conversation {stream!r}, or no more of it")
        teller = Storyteller(browser, receipt_key.load(path))
        scenes = [scene for each in found for scene in teller.tell(each.event)]
        first, last = found[0].number, found[-1].number
        has_earlier = bool(browser.events_before(stream, first, 1))
        has_later = bool(browser.events(stream, last, 1))
    return Told(scenes, first if has_earlier else 0, last if has_later else 0)


def find_conversation(path: Path, name: str) -> str:
    """Find the stream that a name means.

    Raises:
        MisuseError: there is none, or more than one.
    """
    with browse(path) as browser:
        if browser.events(name, limit=1):
            return name
    with survey(path) as rows:
        found = (row.id for row in rows.recent(records.CONVERSATION) if name in row.id)
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


def events_of(browser: Browser, stream: str) -> Iterator[StoredEvent]:
    """Give the events of a conversation and of its turns, as they happened."""
    after = 0
    while True:
        entries = browser.events(stream, after, PAGE)
        for entry in entries:
            after = entry.number
            yield entry.event
        if len(entries) < PAGE:
            return
