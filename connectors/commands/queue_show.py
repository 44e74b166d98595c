"""`callboard queue show`: everything that is known of one message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from actors.deliveries import Delivery
from actors.rules.keys import SessionKey
from connectors import receipt_key
from connectors.commands.database import database_options, find_database, json_option
from connectors.commands.job import Job, job_of, read_inbound
from connectors.commands.printing import (
    NONE,
    first_words,
    indented,
    moment,
    say,
    say_json,
    table,
)
from connectors.commands.scene import Scene, lines_of
from connectors.commands.story import Storyteller
from runtime.sqlite_browse import browse
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runtime.rows import StoredDelivery
    from runtime.sqlite_browse import Browser

HEADERS = ("DELIVERY", "STATE", "TRIES", "ENQUEUED", "SETTLED", "RECEIPT", "TEXT")
WIDEST = 14


class Sent(msgspec.Struct, frozen=True):
    """One delivery of a message; times in ISO 8601, local with offset."""

    id: str
    state: str
    attempts: int
    enqueued_at: str | None
    settled_at: str | None
    receipt: str
    text: str


class Whole(msgspec.Struct, frozen=True):
    """A message with all that belongs to it."""

    message: Job
    conversation: str
    """Its stream, for `callboard replay`; empty before its first event."""

    deliveries: list[Sent]
    steps: list[Scene]


@click.command()
@database_options
@click.argument("name", metavar="ID")
@json_option
def show(config: Path | None, db: Path | None, name: str, *, as_json: bool) -> None:
    """Show everything of one message: states, times, words, deliveries, steps.

    ID is the message's, or its beginning; a delivery's id means its message, too.
    """
    whole = collect(find_database(config, db), name.partition(":")[0])
    if as_json:
        say_json(whole)
    else:
        for line in lines(whole):
            say(line)


def collect(path: Path, name: str) -> Whole:
    """Look up all that belongs to a message.

    Raises:
        runtime.errors.MisuseError: there is none, or more than one.
    """
    with browse(path) as browser, survey(path) as rows:
        row = browser.message(name)
        inbound = read_inbound(row)
        correlation_id = row.id if inbound is None else inbound.correlation_id
        deliveries = [
            sent(each)
            for each in browser.deliveries_of(correlation_id)
            if each.id.startswith(f"{row.id}:")
        ]
        key = receipt_key.load(path)
        streams = rows.streams_ending(f"/{row.id}")
        steps = [scene for stream in streams for scene in told(browser, stream, key)]
        job = job_of(row, rows)
        return Whole(job, conversation_of(browser, job), deliveries, steps)


def conversation_of(browser: Browser, job: Job) -> str:
    """Name the stream of the conversation that a message belongs to, if it has one."""
    for sender in ("", job.sender_id):
        key = SessionKey(job.agent, job.connector, job.chat, job.thread, sender)
        if browser.events(key.text, limit=1):
            return key.text
    return ""


def told(browser: Browser, stream: str, key: bytes) -> Iterator[Scene]:
    """Tell the recorded steps of a message's turn."""
    teller = Storyteller(browser, key)
    for entry in browser.events(stream):
        yield from (each for each in teller.tell(entry.event) if each.what != "heard")


def sent(row: StoredDelivery) -> Sent:
    """Describe a delivery."""
    try:
        text = msgspec.json.decode(row.body, type=Delivery).text
    except ValueError:
        text = "(cannot be read by this release)"
    return Sent(
        row.id,
        row.state,
        row.attempts,
        moment(row.at),
        moment(row.settled_at),
        row.receipt,
        text,
    )


def lines(whole: Whole) -> Iterator[str]:
    """Write it all for people."""
    fields = msgspec.structs.asdict(whole.message)
    fields["conversation"] = whole.conversation
    for name, value in fields.items():
        text = indented(str(value), WIDEST) if value not in {None, ""} else NONE
        yield f"{name.replace('_', ' '):<{WIDEST}}{text}"
    if whole.deliveries:
        yield ""
        cells = [
            (*msgspec.structs.astuple(each)[:-1], first_words(each.text))
            for each in whole.deliveries
        ]
        yield from table(HEADERS, cells)
    if whole.steps:
        yield ""
        for scene in whole.steps:
            yield from lines_of(scene)
