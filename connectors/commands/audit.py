"""`callboard audit`: who asked what, and what came of it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import click
import msgspec

from connectors.commands.database import database_options, find_database, json_option
from connectors.commands.printing import complain, first_words, say, say_json, table
from connectors.commands.since import since_option
from connectors.office.audit import matching
from connectors.office.moments import moment, when
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from pathlib import Path

    from connectors.office.audit import Found

HEADERS = ("TIME", "CHAT", "SENDER", "AGENT", "STATUS", "SECONDS", "ASKED", "ANSWERED")


@click.command()
@database_options
@click.option("--chat", default="", help="Only this chat: `id` or `connector/id`.")
@click.option("--sender", default="", help="Only this person: name or id.")
@since_option
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=50, show_default=True
)
@json_option
def command(  # noqa: PLR0913  one for each option
    config: Path | None,
    db: Path | None,
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
    with survey(find_database(config, db)) as rows:
        wanted = matching(rows, chat, sender, since, complain)
        found = list(itertools.islice(wanted, limit))
    if as_json:
        for row, body in found:
            rest = msgspec.structs.asdict(body)
            say_json({"id": row.id, "at": moment(row.at), **rest}, is_line=True)
    elif not found:
        say("Nothing is on record that fits.")
    else:
        for line in table(HEADERS, map(cells, found)):
            say(line)


def cells(found: Found) -> tuple[object, ...]:
    """Give what the table says of one exchange."""
    row, body = found
    is_plain = body.reason in {"", "ok"}
    return (
        when(row.at),
        first_words(f"{body.channel}/{body.chat}", 32),
        first_words(body.sender_name or body.sender_id, 20),
        body.agent,
        body.status if is_plain else f"{body.status}:{body.reason}",
        f"{body.seconds:.2f}",
        first_words(body.input, 32),
        first_words(body.output),
    )
