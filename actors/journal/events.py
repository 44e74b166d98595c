"""Makes the events, records and snapshots of a session's journal; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.journal import records
from actors.journal.history import (
    SCHEMA,
    Chapter,
    Compacted,
    Deferred,
    Event,
    Exchanged,
    Flushed,
    History,
    Reset,
    kind_of,
)
from actors.journal.parts import in_one_part
from actors.messages.keys import parse_key
from actors.rules.prompt.compaction import tokens_of
from runtime.store.rows import Append, Commit, NewEvent, Record, Snapshot

if TYPE_CHECKING:
    from actors.journal.answers import ChapterEntry
    from actors.rules.text.secrets import AuditRedaction
    from actors.services import Services


def as_entry(
    entry: ChapterEntry, event: Chapter, history: History, services: Services
) -> Commit:
    """Make the commit of an entry that answers no message.

    Args:
        event: its event, as `as_chapter` gives it.
        history: knows the journal's last event, and the counters.
    """
    commit = as_journal((event,), history, services.clock.wall(), services.keep)
    if is_void(entry, history):
        return commit
    if not entry.remembered:
        return commit
    commit = msgspec.structs.replace(commit, facts=entry.remembered)
    part = records.part_of(parse_key(history.stream))
    return in_one_part(commit, part, f"{history.stream}@{history.version}")


def as_journal(
    events: tuple[Event, ...], history: History, now: float, keep: AuditRedaction
) -> Commit:
    """Make the rows of a session's events, and the records that follow from them.

    Args:
        events: in order.
        history: knows the journal's last event, and the counters.
        now: Unix seconds.
    """
    part = records.part_of(parse_key(history.stream))
    counted = history.counted
    made: dict[tuple[str, str], Record] = {}
    for event in events:
        counted = counted.after(event, now)
        for record in records.of_event(history.stream, event, counted, keep):
            made[record.kind, record.id] = record
    body = history.snapshot_after(events, now)
    snapshot = Snapshot(
        stream=history.stream,
        sequence=history.version + len(events),
        schema=SCHEMA,
        part=part,
        body=body or b"",
    )
    journal = Append(
        stream=history.stream,
        expected=history.version,
        part=part,
        events=tuple(
            [
                NewEvent(event_kind(event), msgspec.json.encode(event))
                for event in events
            ]
        ),
    )
    return Commit(
        at=now,
        appends=(journal,),
        snapshots=(snapshot,) if body is not None else (),
        records=tuple(made.values()),
    )


def event_kind(event: Event) -> str:
    """Name an event of a session's journal."""
    if isinstance(event, Exchanged):
        return "exchanged"
    return "deferred" if isinstance(event, Deferred) else kind_of(event)


def is_void(entry: ChapterEntry, history: History) -> bool:
    """Whether an entry's conversation has ended since it was made."""
    is_reset = isinstance(entry.chapter, Reset)
    return history.counted.resets != entry.resets or (
        history.counted.is_closed and not is_reset
    )


def as_chapter(entry: ChapterEntry, history: History) -> Chapter:
    """Give the event of an entry as it is right by now.

    Lines that came since it was made stay. Of a conversation that has ended meanwhile,
    only the entry's cost is recorded.
    """
    chapter = entry.chapter
    if isinstance(chapter, Compacted):
        since = history.counted.message_count - entry.messages
        if is_void(entry, history) or since < 0:
            return msgspec.structs.replace(
                chapter, outcome="kept", summary="", messages_after=0, tokens_after=0
            )
        newest = history.lines[max(0, len(history.lines) - since) :] if since else ()
        return msgspec.structs.replace(
            chapter,
            messages_before=chapter.messages_before + since,
            messages_after=chapter.messages_after + since,
            tokens_before=chapter.tokens_before + tokens_of(newest),
            tokens_after=chapter.tokens_after + tokens_of(newest),
        )
    if isinstance(chapter, Flushed) and is_void(entry, history):
        return msgspec.structs.replace(chapter, messages=0)
    return chapter
