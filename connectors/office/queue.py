"""Messages as jobs, everything of one, and what failed; changes of it by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.deliveries import GONE, Delivery
from actors.rules.keys import SessionKey
from connectors import receipt_key
from connectors.office.dropping import dropping
from connectors.office.job import STATES, Job, job_of, read_inbound
from connectors.office.moments import moment
from connectors.office.scene import Scene
from connectors.office.story import Storyteller
from runtime import sqlite_mend
from runtime.errors import MisuseError
from runtime.rows import StoredMessage
from runtime.sqlite_browse import browse
from runtime.sqlite_mend import DROPPED, Mended
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from connectors.office.record import Complain
    from runtime.rows import DeliveryState, InboxState, StoredDelivery
    from runtime.sqlite_browse import Browser

RETRIED: tuple[DeliveryState, ...] = ("dead", "unknown")
"""Deliveries that can be sent again, unless nobody wants or can take them."""

OVER = (DROPPED, f"{GONE}*")
"""Receipts of deliveries that have not failed: whoever dropped one does not want it
said after all, and one whose client has gone cannot be said."""

NOBODY = (
    "nobody is there to take it any more. Over HTTP, who asks again with the same"
    " Idempotency-Key gets it"
)

USUAL = ("pending", "running", "failed")
"""What is listed unless somebody asks for something else."""

# Chosen: time to the millisecond and 15 random bits; what was made in the same
# millisecond is told apart by the whole id.
SHORT = 13


class Jobs(msgspec.Struct, frozen=True):
    """Some messages, the newest first."""

    jobs: list[Job]
    rows: tuple[StoredMessage, ...]
    """What they were read from, in the same order."""

    short: dict[str, str]
    """By id its beginning, if that means no other message."""

    next: int
    """Where the next page begins; 0: there is none."""


class Sent(msgspec.Struct, frozen=True):
    """One delivery of a message; times in ISO 8601, local with offset."""

    id: str
    state: str
    attempts: int
    enqueued_at: str | None
    settled_at: str | None
    receipt: str
    text: str

    @property
    def is_gone(self) -> bool:
        """Whether nobody is there to take it, now or later."""
        return self.state == "dead" and self.receipt.startswith(GONE)


class Whole(msgspec.Struct, frozen=True):
    """A message with all that belongs to it."""

    message: Job
    conversation: str
    """Its stream, for `callboard replay`; empty before its first event."""

    deliveries: list[Sent]
    steps: list[Scene]


def read_jobs(
    path: Path, statuses: Iterable[str], limit: int, complain: Complain, past: int = 0
) -> Jobs:
    """List messages, the newest first.

    Args:
        path: the database.
        statuses: which; see `STATES`.
        limit: most messages to give, below `MAX_ROWS`.
        complain: told of rows that cannot be read.
        past: where the page begins; 0: with the newest.
    """
    states: list[InboxState] = [each for name in statuses for each in STATES[name]]
    with browse(path) as browser, survey(path) as rows:
        found = browser.messages(states, past=past, limit=limit + 1)
        kept = found[:limit]
        jobs = [job_of(row, rows, complain) for row in kept]
        short = {job.id: shortened(browser, job.id) for job in jobs}
    more = kept[-1].number if len(found) > limit else 0
    return Jobs(jobs, kept, short, more)


def shortened(browser: Browser, name: str) -> str:
    """Give the beginning of a message's id, if that means no other one."""
    try:
        browser.message(name[:SHORT])
    except MisuseError:
        return name
    return name[:SHORT]


def read_unsent(path: Path, limit: int) -> list[Sent]:
    """List deliveries that were given up, or may not have been sent; newest first."""
    with browse(path) as browser:
        found = browser.deliveries(RETRIED, besides=OVER, limit=limit)
    return [sent(row) for row in found]


def count_unsent(path: Path) -> int:
    """Count the deliveries that `read_unsent` lists."""
    with browse(path) as browser:
        return browser.count_deliveries(RETRIED, OVER)


def collect(path: Path, name: str, complain: Complain) -> Whole:
    """Look up all that belongs to a message.

    Args:
        path: the database.
        name: the message's id, or its beginning.
        complain: told of rows that cannot be read.

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
        job = job_of(row, rows, complain)
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


def retry_one(path: Path, name: str, now: float) -> Mended:
    """Try one message, or one delivery, again."""
    if ":" in name:
        with browse(path) as browser:
            found = sent(browser.delivery(name))
        if found.is_gone:
            text = f"delivery {found.id} is {found.state}: {found.receipt}; {NOBODY}"
            return Mended(has_changed=False, text=text)
        return sqlite_mend.retry_delivery(path, found.id)
    return sqlite_mend.retry(path, name, now)


def drop_one(path: Path, name: str, now: float) -> Mended:
    """Give up one message, or one delivery."""
    if ":" in name:
        return sqlite_mend.drop_delivery(path, name, now)
    return sqlite_mend.drop(path, name, now, dropping)
