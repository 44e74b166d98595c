"""When somebody last had something forgotten: one entry for each agent and scope.

Written in the commit that forgets. It says nothing of what was forgotten.

What was said before somebody had something forgotten, and so stays forgotten; pure.

A forgetting takes facts out of the memory, but not the words they came from out of the
conversation: gone through once more, these would bring the facts back. So each
forgetting leaves its *mark*, the id of the message that asked for it: ids are in the
order of their time (`runtime/ids.py`). Of what is older nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from actors.journal.history import Exchanged
from actors.messages.inbound import TranscriptLine
from actors.messages.keys import fact_partition
from runtime.store.port import Entries, Store
from runtime.store.rows import Entry, StoredEvent


def is_forgotten(name: str, mark: str) -> bool:
    """Whether words are older than a forgetting.

    Args:
        name: id of the message they stand in, or mark of the forgetting that they are
            known to be newer than; empty: nobody says.
        mark: of the last forgetting, by the message that asked for it; empty: there
            was none.
    """
    return "" < name < mark


def since(
    lines: Sequence[TranscriptLine],
    said: Iterable[tuple[str, int]],
    mark: str,
    newer: int = 0,
) -> tuple[TranscriptLine, ...]:
    """Give the newest lines that were said after a forgetting.

    Args:
        lines: of one conversation, oldest first.
        said: each exchange of it, the newest first: id of its message, how many lines.
        mark: of the forgetting; empty: there was none.
        newer: how many lines the conversation has after these.

    Returns:
        All, if nothing was forgotten. In doubt a line is older: what `said` does not
        reach is left out, and so is all before the first exchange that is older.
    """
    if not mark:
        return tuple(lines)
    count = 0
    for name, size in said:
        if name <= mark:
            break
        count += size
    left = max(0, min(count - newer, len(lines)))
    return tuple(lines[len(lines) - left :])


KIND = "forgetting"

# Chosen: a conversation holds at most twice `max_history` lines, mostly two to an
# event; what is further back counts as older than any forgetting.
PAGE = 1_000
"""Events of a conversation that are read, the newest."""


class SpokenLines(msgspec.Struct, frozen=True, kw_only=True):
    """Lines of a conversation, and their places in it."""

    stream: str
    version: int
    """Number of the journal's last event when they were the newest."""

    lines: tuple[TranscriptLine, ...]
    newer: int = 0
    """How many lines the conversation has after these."""


def marked(agent: str, scopes: tuple[str, ...], mark: str) -> tuple[Entry, ...]:
    """Write down that something was forgotten.

    Args:
        mark: id of the message that asked for it.
    """
    return tuple(
        Entry(
            kind=KIND,
            id=f"{agent}/{scope}",
            owner=agent,
            part=fact_partition(agent, scope),
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


async def lines_since(
    store: Store, said: SpokenLines, mark: str
) -> tuple[TranscriptLine, ...]:
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
    return since(said.lines, sizes, mark, said.newer)


def exchanges(events: list[StoredEvent]) -> list[Exchanged]:
    """Read those events that brought lines."""
    found = [
        msgspec.json.decode(each.body, type=Exchanged)
        for each in events
        if each.kind == "exchanged"
    ]
    return [each for each in found if each.lines]
