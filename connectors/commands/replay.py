"""`callboard replay`: what happened in a conversation, from its journal."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import click
import msgspec

from actors import records
from actors.records import ConversationRecord
from connectors import receipt_key
from connectors.commands.database import database_options, find_database, json_option
from connectors.commands.printing import moment, say, say_json, table, when
from connectors.commands.reading import read_record
from connectors.commands.scene import lines_of
from connectors.commands.story import Storyteller
from runtime.errors import MisuseError
from runtime.rows import MAX_ROWS
from runtime.sqlite_browse import browse
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runtime.rows import StoredEvent
    from runtime.sqlite_browse import Browser

HEADERS = ("CONVERSATION", "MESSAGES", "TOKENS", "LAST")
PAGE = 1000

MOST_NAMED = 5
"""How many of the conversations that a name may mean are named."""


@click.command()
@database_options
@click.argument("conversation", default="")
@click.option(
    "--limit",
    type=click.IntRange(1, MAX_ROWS),
    default=100,
    show_default=True,
    help="Most conversations listed.",
)
@json_option
def command(
    config: Path | None,
    db: Path | None,
    conversation: str,
    limit: int,
    *,
    as_json: bool,
) -> None:
    """Tell what happened in a CONVERSATION, event by event.

    It is named by any part of its name that no other one has. Without a name:
    lists the conversations, the newest first.
    """
    path = find_database(config, db)
    if not conversation:
        list_conversations(path, limit, as_json=as_json)
        return
    stream = find_conversation(path, conversation)
    with browse(path) as browser:
        teller = Storyteller(browser, receipt_key.load(path))
        for event in events_of(browser, stream):
            for scene in teller.tell(event):
                if as_json:
                    say_json(scene, is_line=True)
                else:
                    say("\n".join(lines_of(scene)))


def list_conversations(path: Path, limit: int, *, as_json: bool) -> None:
    """Write down all conversations, the newest first."""
    with survey(path) as rows:
        found = list(itertools.islice(rows.recent(records.CONVERSATION), limit))
    read = [
        (row.id, body)
        for row in found
        if (body := read_record(row, ConversationRecord)) is not None
    ]
    if as_json:
        say_json(
            [
                {"conversation": stream}
                | msgspec.to_builtins(body)
                | {
                    "started_at": moment(body.started_at),
                    "last_message_at": moment(body.last_message_at),
                }
                for stream, body in read
            ]
        )
    elif not read:
        say("There is no conversation yet.")
    else:
        cells = [
            (
                stream,
                body.message_count,
                body.tokens_estimate,
                when(body.last_message_at),
            )
            for stream, body in read
        ]
        for line in table(HEADERS, cells):
            say(line)


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
