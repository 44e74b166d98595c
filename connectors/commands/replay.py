"""`callboard replay`: what happened in a conversation, from its journal."""

from __future__ import annotations

from collections.abc import Iterator

import click
import msgspec

from connectors.admin.conversations import (
    Conversation,
    StoryEvent,
    Storyteller,
    events_of,
    find_conversation,
    read_conversations,
)
from connectors.admin.display import NONE, moment, when
from connectors.commands.common.database import DatabaseChoice, database_options
from connectors.commands.common.output import (
    complain,
    first_words,
    indented,
    rows_options,
    say,
    say_json,
    say_rows,
)
from runtime.store.database import Inspection
from runtime.store.rows import MAX_ROWS

HEADERS = ("CONVERSATION", "MESSAGES", "TOKENS", "LAST")

WIDEST = 9
"""Characters of the longest word for what happened."""


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
@rows_options
def command(
    choice: DatabaseChoice, conversation: str, limit: int, *, as_json: bool
) -> None:
    """Tell what happened in a CONVERSATION, event by event.

    It is named by any part of its name that no other one has. Without a name:
    lists the conversations, the newest first.
    """
    # Why live: whoever reads the output page by page would hold up a server.
    with choice.database.inspect(live=True) as rows:
        if not conversation:
            list_conversations(rows, limit, as_json=as_json)
            return
        stream = find_conversation(rows, conversation)
        teller = Storyteller(rows, choice.receipt_key())
        for event in events_of(rows, stream):
            for scene in teller.tell(event):
                if as_json:
                    say_json(scene, is_line=True)
                else:
                    say("\n".join(lines_of(scene)))


def list_conversations(rows: Inspection, limit: int, *, as_json: bool) -> None:
    """Write down all conversations, the newest first."""
    found = read_conversations(rows, limit, complain).found
    if not as_json:
        say_rows(found, HEADERS, cells, "There is no conversation yet.")
        return
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


def cells(each: Conversation) -> tuple[object, ...]:
    """Give the columns of one conversation."""
    body = each.body
    last = when(body.last_message_at)
    return (each.stream, body.message_count, body.tokens_estimate, last)


def lines_of(scene: StoryEvent) -> Iterator[str]:
    """Write an event for people: time, kind, text and details."""
    at = (scene.at or NONE).replace(".000", "")
    head = f"{at:<29}  {scene.what:<{WIDEST}}  "
    words = [f"{scene.who}: {scene.text}" if scene.who else scene.text]
    words += [f"calls {call.name} {call.arguments}" for call in scene.calls]
    words.append(", ".join(details(scene)))
    text = "\n".join(each for each in words if each)
    yield f"{head}{indented(text, len(head))}".rstrip()


def details(scene: StoryEvent) -> Iterator[str]:
    """Give the details of an event beside its text."""
    if scene.delivery:
        yield f"{scene.delivery} {scene.state}"
    if scene.reason not in {"", "ok"}:
        yield f"reason {scene.reason}"
    if scene.run is not None:
        run = scene.run
        yield f"attempt {run.attempt} with {run.provider}"
        yield f"{run.seconds:.2f} s"
        yield f"{run.usage.input_tokens} + {run.usage.output_tokens} tokens"
    if scene.due_at:
        yield f"again at {scene.due_at}"
    if scene.attempts:
        yield f"{scene.attempts} attempt{'' if scene.attempts == 1 else 's'}"
    if scene.proof:
        yield f"receipt {scene.proof}"
    if scene.receipt:
        yield f"receipt {first_words(scene.receipt, 80)}"
