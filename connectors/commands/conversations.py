"""`callboard conversations`: export to a file, and import from one.

The file has one JSON object in a line, and one line for each message.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import click
import msgspec

from actors.journal.commits import as_journal
from actors.journal.history import (
    Compacted,
    Event,
    Exchanged,
    Flushed,
    History,
    Reset,
    read_chapter,
)
from actors.messages.inbound import TranscriptLine
from actors.messages.keys import parse_key
from actors.rules.text.secrets import AuditRedaction
from connectors.admin.conversations import events_of, find_conversation
from connectors.commands.common.database import DatabaseChoice, database_options
from connectors.commands.common.output import say
from connectors.commands.records import keeping
from runtime.clock import SystemClock
from runtime.errors import MisuseError
from runtime.ids import IdSource
from runtime.store.database import Database
from runtime.store.rows import Commit, StoredEvent

# Only what snapshots are cut to depends on it, and a session cuts anew.
MAX_HISTORY = 100

LATEST = 253_402_300_799
"""Unix seconds of the last second that has a date: 9999-12-31 23:59:59 UTC."""


class FileLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the file: a message, a compaction or a reset."""

    at: Annotated[float, msgspec.Meta(ge=0, le=LATEST)]
    """Unix seconds."""

    message: str = ""
    """Which exchange it belongs to; lines that follow each other with the same one are
    one exchange."""

    sender: str = ""
    """The platform's id of whoever asked."""

    line: TranscriptLine | None = None
    compacted: Compacted | None = None
    reset: Reset | None = None


class DatedEvent(msgspec.Struct, frozen=True):
    """An event of a journal, and when it happened."""

    at: float
    """Unix seconds."""

    event: Event


@click.group()
def command() -> None:
    """Write conversations to files, and read them back."""


@command.command(name="export")
@database_options
@click.argument("name", metavar="CONVERSATION")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file; it must not be there yet. Without it: standard output.",
)
def export(choice: DatabaseChoice, name: str, out: Path | None) -> None:
    """Write a CONVERSATION as JSON Lines: each message, summary and end in a line.

    It is named as for `callboard replay`, which lists them. What people wrote is
    written as it was, secrets included.
    """
    # Why live: whoever reads the output page by page would hold up a server.
    with choice.database.inspect(live=True) as rows:
        stream = find_conversation(rows, name)
        own = (each for each in events_of(rows, stream) if each.stream == stream)
        if out is None:
            for line in written(own):
                say(line.decode())
            return
        with out.open("xb") as file:
            count = sum(1 for line in written(own) if file.write(line + b"\n"))
    say(f"{stream}: {count:,} lines written to {out}")


@command.command(name="import")
@database_options
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--as",
    "name",
    required=True,
    metavar="CONVERSATION",
    help="Its whole name: agent/connector/chat/thread/sender.",
)
def import_(choice: DatabaseChoice, file: Path, name: str) -> None:
    """Read a FILE of `export` into a new conversation; no server may be running.

    The next message in that chat goes on with it.
    """
    database, settings = choice.database, choice.settings
    try:
        parse_key(name)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    with file.open("rb") as lines:
        dated = read_file(lines, str(file))
    store_all(database, name, dated, keeping(settings))
    say(f"{name}: {len(dated):,} events read from {file}", id=name, count=len(dated))


def written(events: Iterable[StoredEvent]) -> Iterator[bytes]:
    """Write the events of a conversation as lines of the file.

    What is no part of it is left out: commands, refusals, and what calls have cost.

    Raises:
        ValueError: an event cannot be read.
    """
    for event in events:
        for told in told_of(event):
            yield msgspec.json.encode(told)


def told_of(event: StoredEvent) -> Iterator[FileLine]:
    """Give the lines of one event.

    Raises:
        ValueError: it cannot be read.
    """
    if event.kind == "exchanged":
        read = msgspec.json.decode(event.body, type=Exchanged)
        for line in read.lines:
            yield FileLine(
                at=event.at,
                message=read.inbound_id,
                sender=read.sender_id,
                line=line,
            )
        return
    match read_chapter(event.kind, event.body):
        case Compacted() as compacted if compacted.outcome != "kept":
            own = msgspec.structs.replace(compacted, run=None)
            yield FileLine(at=event.at, compacted=own)
        case Reset() as reset:
            own_end = msgspec.structs.replace(reset, run=None)
            yield FileLine(at=event.at, reset=own_end)
        case _:
            return


def read_file(lines: Iterable[bytes], name: str) -> list[DatedEvent]:
    """Read a file back as the events of a journal.

    Raises:
        MisuseError: a line is none that `written` writes, or holds nothing.
    """
    found: list[FileLine] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            told = msgspec.json.decode(line, type=FileLine)
        except (ValueError, RecursionError) as error:
            raise MisuseError(f"{name}:{number}: cannot be read: {error}") from error
        if [told.line, told.compacted, told.reset].count(None) != 2:
            text = "give one of `line`, `compacted` and `reset`"
            raise MisuseError(f"{name}:{number}: {text}")
        found.append(told)
    return [
        each
        for (message, _), group in itertools.groupby(found, key=_exchange)
        for each in _events(message, list(group))
    ]


def _exchange(told: FileLine) -> tuple[str, bool]:
    return (told.message, told.line is None)


def _events(message: str, group: list[FileLine]) -> Iterator[DatedEvent]:
    lines = tuple(told.line for told in group if told.line is not None)
    first = group[0]
    if lines:
        names = [line.name for line in lines if line.role == "user"]
        exchanged = Exchanged(
            inbound_id=message,
            lines=lines,
            sender_id=first.sender,
            sender_name=names[-1] if names else "",
            reason="imported",
        )
        yield DatedEvent(first.at, exchanged)
    for told in group:
        event = told.compacted or told.reset
        if event is not None:
            yield DatedEvent(told.at, event)


def store_all(
    database: Database, stream: str, dated: list[DatedEvent], keep: AuditRedaction
) -> None:
    """Store the events of a new conversation, with their records.

    All or nothing: what is cut off can simply be done again.

    Raises:
        MisuseError: there is such a conversation already.
        runtime.errors.StoreError: there is no such database, a server uses it, or the
            disk fails.
    """
    # Why claimed: a server may have it open, and nothing of it stored.
    with database.claim():
        with database.inspect() as rows:
            if rows.events(stream, limit=1):
                raise MisuseError(f"there is a conversation {stream!r} already")
        database.write(commits_of(stream, dated, keep))


def commits_of(
    stream: str, dated: list[DatedEvent], keep: AuditRedaction
) -> Iterator[Commit]:
    """Make the commits of a new conversation, one for each of its events."""
    history, ids = History(stream, MAX_HISTORY), IdSource(SystemClock())
    for each in dated:
        event = as_another(each.event, ids.new())
        yield as_journal((event,), history, each.at, keep)
        history.take(history.version + 1, event, each.at)


def as_another(event: Event, new_id: str) -> Event:
    """Give an event an id that no other conversation's has.

    The file may come from this very database, where its records stand under the old.
    """
    if isinstance(event, Compacted | Flushed | Reset):
        return msgspec.structs.replace(event, id=new_id)
    return msgspec.structs.replace(event, inbound_id=new_id)
