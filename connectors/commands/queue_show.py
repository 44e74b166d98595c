"""`callboard queue show`: everything that is known of one message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from connectors.commands.database import database_options, find_database, json_option
from connectors.commands.printing import (
    complain,
    first_words,
    indented,
    say,
    say_json,
    table,
)
from connectors.commands.scene import lines_of
from connectors.office.moments import NONE
from connectors.office.queue import collect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from connectors.office.queue import Sent, Whole

HEADERS = ("DELIVERY", "STATE", "TRIES", "ENQUEUED", "SETTLED", "RECEIPT", "TEXT")
WIDEST = 14


@click.command()
@database_options
@click.argument("name", metavar="ID")
@json_option
def show(config: Path | None, db: Path | None, name: str, *, as_json: bool) -> None:
    """Show everything of one message: states, times, words, deliveries, steps.

    ID is the message's, or its beginning; a delivery's id means its message, too.
    """
    whole = collect(find_database(config, db), name.partition(":")[0], complain)
    if as_json:
        say_json(whole)
    else:
        for line in lines(whole):
            say(line)


def lines(whole: Whole) -> Iterator[str]:
    """Write it all for people."""
    fields = msgspec.structs.asdict(whole.message)
    fields["conversation"] = whole.conversation
    for name, value in fields.items():
        text = indented(str(value), WIDEST) if value not in {None, ""} else NONE
        yield f"{name.replace('_', ' '):<{WIDEST}}{text}"
    if whole.deliveries:
        yield ""
        yield from table(HEADERS, cells_of(whole.deliveries))
    if whole.steps:
        yield ""
        for scene in whole.steps:
            yield from lines_of(scene)


def cells_of(deliveries: Iterable[Sent]) -> Iterator[tuple[object, ...]]:
    """Give what a table says of each delivery."""
    for each in deliveries:
        yield (*msgspec.structs.astuple(each)[:-1], first_words(each.text))
