"""`callboard conversations`: into a file, and out of one (C10)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from actors.chapters import Compacted, Flushed, Reset
from actors.history import History
from actors.journal import as_journal
from actors.rules.keys import parse_key
from connectors.commands.database import (
    database_options,
    find_database,
    settings_beside,
)
from connectors.commands.printing import say
from connectors.commands.records import keeping
from connectors.commands.transcript_file import read_file, written
from connectors.office.conversations import events_of, find_conversation
from runtime import sqlite_mend
from runtime.clock import SystemClock
from runtime.errors import MisuseError
from runtime.ids import IdSource
from runtime.sqlite_browse import browse
from runtime.sqlite_file import SqliteFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.history import Event
    from actors.redaction import Keep
    from connectors.commands.transcript_file import Dated
    from runtime.rows import Commit

# Only what snapshots are cut to depends on it, and a session cuts anew.
MAX_HISTORY = 100


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
def export(config: Path | None, db: Path | None, name: str, out: Path | None) -> None:
    """Write a CONVERSATION as JSON Lines: each message, summary and end in a line.

    It is named as for `callboard replay`, which lists them. What people wrote is
    written as it was, secrets included.
    """
    path = find_database(config, db)
    stream = find_conversation(path, name)
    with browse(path) as browser:
        own = (each for each in events_of(browser, stream) if each.stream == stream)
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
def import_(config: Path | None, db: Path | None, file: Path, name: str) -> None:
    """Read a FILE of `export` into a new conversation; no server may be running.

    The next message in that chat goes on with it.
    """
    path, settings = find_database(config, db), settings_beside(config, db)
    try:
        parse_key(name)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    with file.open("rb") as lines:
        dated = read_file(lines, str(file))
    store_all(path, name, dated, keeping(settings))
    say(f"{name}: {len(dated):,} events read from {file}")


def store_all(path: Path, stream: str, dated: list[Dated], keep: Keep) -> None:
    """Store the events of a new conversation, with all that follows from them.

    All or nothing: what is cut off can simply be done again.

    Raises:
        MisuseError: there is such a conversation already.
        runtime.errors.StoreError: there is no such database, a server uses it, or the
            disk fails.
    """
    with browse(path) as browser:
        if browser.events(stream, limit=1):
            raise MisuseError(f"there is a conversation {stream!r} already")
    lock = SqliteFile(
        path
    ).lock()  # a server may have it open, and nothing of it stored
    try:
        sqlite_mend.write_all(path, commits_of(stream, dated, keep))
    finally:
        lock.release()


def commits_of(stream: str, dated: list[Dated], keep: Keep) -> Iterator[Commit]:
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
