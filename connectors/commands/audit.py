"""`callboard audit`: who asked what, and what came of it."""

from __future__ import annotations

import itertools

import click
import msgspec

from connectors.admin.audit import Found, matching
from connectors.admin.display import moment, when
from connectors.commands.common.database import DatabaseChoice, database_options
from connectors.commands.common.output import (
    complain,
    rows_options,
    say_json,
    say_rows,
    since_option,
)

HEADERS = ("TIME", "CHAT", "SENDER", "AGENT", "STATUS", "SECONDS", "ASKED", "ANSWERED")


@click.command()
@database_options
@click.option("--chat", default="", help="Only this chat: `id` or `connector/id`.")
@click.option(
    "--sender", default="", help="Only this person: name, `id` or `connector/id`."
)
@since_option
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=50, show_default=True
)
@rows_options
def command(
    choice: DatabaseChoice,
    chat: str,
    sender: str,
    since: float,
    limit: int,
    *,
    as_json: bool,
) -> None:
    """Show exchanges and refused attempts, the newest first.

    Secrets were taken out of the words before they were kept, and the settings
    say whether and how long they are kept at all.
    """
    with choice.database.inspect() as rows:
        wanted = matching(rows, chat, sender, since, complain)
        found = list(itertools.islice(wanted, limit))
    if as_json:
        for row, body in found:
            rest = msgspec.structs.asdict(body)
            say_json({"id": row.id, "at": moment(row.at), **rest}, is_line=True)
    else:
        say_rows(found, HEADERS, cells, "Nothing is on record that fits.")


def cells(found: Found) -> tuple[object, ...]:
    """Give the columns of one exchange."""
    row, body = found
    is_plain = body.reason in {"", "ok"}
    return (
        when(row.at),
        f"{body.channel}/{body.chat}",
        body.sender_name or body.sender_id,
        body.agent,
        body.status if is_plain else f"{body.status}:{body.reason}",
        f"{body.seconds:.2f}",
        body.input,
        body.output,
    )
