"""`callboard replay`: what happened in a conversation, from its journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from connectors import receipt_key
from connectors.commands.database import database_options, find_database, json_option
from connectors.commands.printing import complain, say, say_json, table
from connectors.commands.scene import lines_of
from connectors.office.conversations import (
    events_of,
    find_conversation,
    read_conversations,
)
from connectors.office.moments import moment, when
from connectors.office.story import Storyteller
from runtime.rows import MAX_ROWS
from runtime.sqlite_browse import browse

if TYPE_CHECKING:
    from pathlib import Path

    from connectors.office.conversations import Conversation

HEADERS = ("CONVERSATION", "MESSAGES", "TOKENS", "LAST")


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
    found = read_conversations(path, limit, complain).found
    if as_json:
        say_json(
            [
                {"conversation": each.stream}
                | msgspec.to_builtins(each.body)
                | {
                    "started_at": moment(each.body.started_at),
                    "last_message_at": moment(each.body.last_message_at),
                }
                for each in found
            ]
        )
    elif not found:
        say("There is no conversation yet.")
    else:
        for line in table(HEADERS, map(cells, found)):
            say(line)


def cells(each: Conversation) -> tuple[object, ...]:
    """Give what the table says of one."""
    body = each.body
    return (
        each.stream,
        body.message_count,
        body.tokens_estimate,
        when(body.last_message_at),
    )
