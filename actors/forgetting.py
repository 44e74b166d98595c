"""When somebody had something forgotten last: one entry for each agent and scope.

Written in the commit that forgets. It says nothing of what was forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.history import Exchanged
from actors.messages import Line
from actors.rules import forgetting as rules
from runtime.entries import Entry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runtime.rows import StoredEvent
    from runtime.store import Entries, Store

KIND = "forgetting"

# Chosen: a conversation holds at most twice `max_history` lines, mostly two to an
# event; what is further back counts as older than any forgetting.
PAGE = 1_000
"""Events of a conversation that are read, the newest."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """Some lines of a conversation, and where in it they stand."""

    stream: str
    version: int
    """Number of the journal's last event when they were the newest."""

    lines: tuple[Line, ...]
    newer: int = 0
    """How many lines the conversation has after these."""


def marked(
    agent: str, scopes: tuple[str, ...], part: int, mark: str
) -> tuple[Entry, ...]:
    """Write down that something was forgotten.

    Args:
        agent: by whom.
        scopes: whose memory it was.
        part: partition of the chat in which it was asked for.
        mark: id of the message that asked for it.
    """
    return tuple(
        Entry(
            kind=KIND,
            id=f"{agent}/{scope}",
            owner=agent,
            part=part,
            body=mark.encode(),
        )
        for scope in scopes
    )


async def mark_of(store: Entries, agent: str, scopes: Iterable[str]) -> str:
    """Give the mark of the last forgetting in any of these; empty: there was none.

    Raises:
        StoreError: the disk fails.
    """
    mark = ""
    for scope in dict.fromkeys(scopes):
        row = await store.entry(KIND, f"{agent}/{scope}")
        mark = mark if row is None else max(mark, row.body.decode())
    return mark


async def lines_since(store: Store, said: Said, mark: str) -> tuple[Line, ...]:
    """Give those of some lines that were said after a forgetting.

    Raises:
        StoreError: the disk fails.
    """
    if not mark:
        return said.lines
    first = max(0, said.version - PAGE)
    events = await store.read(said.stream, first, PAGE)
    newest = [each for each in reversed(events) if each.sequence <= said.version]
    sizes = [(each.inbound_id, len(each.lines)) for each in exchanges(newest)]
    return rules.since(said.lines, sizes, mark, said.newer)


def exchanges(events: list[StoredEvent]) -> list[Exchanged]:
    """Read those events that brought lines."""
    found = [
        msgspec.json.decode(each.body, type=Exchanged)
        for each in events
        if each.kind == "exchanged"
    ]
    return [each for each in found if each.lines]
