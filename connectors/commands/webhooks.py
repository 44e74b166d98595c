"""`callboard webhooks`: events that other programs are told, and signed tests.

`sign` shows a signature and never the secret: one delivery can be made of it, for as
long as Callboard takes it: five minutes.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec

from actors.journal.notices import DEAD, DUE, Notice, as_entry
from actors.webhooks.signature import (
    GITHUB_EVENT,
    GITHUB_SIGNATURE,
    ID_HEADER,
    SIGNATURE_HEADER,
    TIME_HEADER,
    key_of,
    sign,
    sign_github,
)
from connectors.admin.display import lasting, moment, when
from connectors.commands import config_option
from connectors.commands.common.database import (
    DatabaseChoice,
    database_options,
    is_stored,
    load_settings,
)
from connectors.commands.common.output import (
    FAILED,
    is_wanted,
    named_or_all,
    refuse_unclear,
    rows_options,
    say,
    say_json,
    say_rows,
)
from connectors.config.app import AppConfig, HttpConfig
from connectors.config.hooks import WebhookInConfig
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.store.database import Database
from runtime.store.rows import Commit, Entry, decoded

HEADERS = ("ID", "WEBHOOK", "EVENT", "AGE", "STATE", "TRIES", "NEXT", "WHY")
TEST = b'{"type":"test","data":{}}'
ALL_FAILED = "All that were given up, instead of IDs."


@dataclass(frozen=True)
class UnsentEvent:
    """One event that is not sent."""

    kind: str
    """`DUE` or `DEAD`."""

    id: str
    webhook: str
    version: int
    notice: Notice

    @property
    def is_dead(self) -> bool:
        """Whether it was given up."""
        return self.kind == DEAD

    @property
    def state(self) -> str:
        """How it stands, for people."""
        return "given up" if self.is_dead else "waits"


class ShownEvent(msgspec.Struct, frozen=True):
    """One event, for programs."""

    id: str
    webhook: str
    event: str
    state: str
    made_at: str | None
    tries: int
    next_at: str | None
    why: str
    body: str


@click.group()
def command() -> None:
    """Look at events that are not sent; send them again or drop them; sign a test.

    May be used while `callboard serve` is running: it takes changes up within
    seconds.
    """


@command.command("list")
@database_options
@click.option("--webhook", metavar="NAME", help="Only this one's.")
@click.option("--failed", is_flag=True, help="Only those that were given up.")
@rows_options
def list_(
    choice: DatabaseChoice, webhook: str | None, *, failed: bool, as_json: bool
) -> None:
    """List the events that are not sent, the oldest first."""
    rows = [
        row
        for row in all_rows(choice.database)
        if webhook in {None, row.webhook} and (row.is_dead or not failed)
    ]
    if as_json:
        say_json([shown(row) for row in rows])
    else:
        say_rows(rows, HEADERS, cells, "No event waits to be sent.")


def shown(row: UnsentEvent) -> ShownEvent:
    """Give an event as programs get it."""
    notice = row.notice
    return ShownEvent(
        id=row.id,
        webhook=row.webhook,
        event=notice.event,
        state=row.state,
        made_at=moment(notice.made_at),
        tries=notice.attempts,
        next_at=moment(notice.due_at),
        why=notice.why,
        body=notice.body,
    )


def cells(row: UnsentEvent) -> tuple[object, ...]:
    """Give the columns of one event."""
    notice = row.notice
    return (
        row.id,
        row.webhook,
        notice.event,
        lasting(max(0.0, SystemClock().wall() - notice.made_at)),
        row.state,
        notice.attempts,
        when(notice.due_at),
        notice.why,
    )


@command.command()
@database_options
@named_or_all(ALL_FAILED)
def retry(
    choice: DatabaseChoice, ids: tuple[str, ...], *, all_failed: bool, yes: bool
) -> int:
    """Send events at once that wait or were given up, with all their tries anew.

    A receiver that had taken one may get it twice, under the same id.
    """
    rows = find_rows(choice.database, ids, all_failed=all_failed)
    if not is_agreed("Send", rows, yes=yes or bool(ids)):
        return FAILED
    return change(choice.database, rows, sent_again, "is sent at once")


@command.command()
@database_options
@named_or_all(ALL_FAILED)
def drop(
    choice: DatabaseChoice, ids: tuple[str, ...], *, all_failed: bool, yes: bool
) -> int:
    """Give events up for good: they are told to nobody."""
    rows = find_rows(choice.database, ids, all_failed=all_failed)
    if not is_agreed("Drop", rows, yes=yes or bool(ids)):
        return FAILED
    return change(choice.database, rows, forgotten, "is dropped")


def all_rows(database: Database) -> list[UnsentEvent]:
    """Read all events, the oldest first."""
    with database.inspect() as rows:
        found = [
            (row, decoded(row, Notice))
            for kind in (DUE, DEAD)
            for row in rows.entries(kind)
        ]
    kept = [
        UnsentEvent(row.kind, row.id, row.owner, row.version, notice)
        for row, notice in found
        if notice is not None
    ]
    return sorted(kept, key=lambda row: (row.notice.made_at, row.id))


def find_rows(
    database: Database, ids: tuple[str, ...], *, all_failed: bool
) -> list[UnsentEvent]:
    """Find the events that are meant.

    Raises:
        click.UsageError: none is named, or both ways are used.
        click.ClickException: an id fits none, or more than one.
    """
    refuse_unclear(ids, "were given up", all_failed=all_failed)
    rows = all_rows(database)
    if all_failed:
        return [row for row in rows if row.is_dead]
    return [one_of(rows, name) for name in ids]


def one_of(rows: list[UnsentEvent], name: str) -> UnsentEvent:
    """Find the one event whose id begins so.

    Raises:
        click.ClickException: there is none, or more than one.
    """
    found = [row for row in rows if row.id.startswith(name.upper())]
    if len(found) == 1:
        return found[0]
    many = f"{len(found)} events begin with {name!r}; write more of the id"
    none = f"there is no event {name!r} that is not sent; see: callboard webhooks list"
    raise click.ClickException(many if found else none)


def is_agreed(verb: str, rows: list[UnsentEvent], *, yes: bool) -> bool:
    """Ask whether events are to be changed, if there are any."""
    count = "1 event" if len(rows) == 1 else f"{len(rows)} events"
    return not rows or is_wanted(f"{verb} {count}?", yes=yes)


def change(
    database: Database,
    rows: list[UnsentEvent],
    entries_of: Callable[[UnsentEvent], tuple[Entry, ...]],
    told: str,
) -> int:
    """Change events; give the exit code."""
    if not rows:
        say("There is none.")
    is_done = True
    for row in rows:
        commit = Commit(at=SystemClock().wall(), entries=entries_of(row))
        conflict = f"{row.id} was sent or changed at the same moment; look again"
        if is_stored(database, commit, conflict):
            say(f"{row.id} ({row.webhook}: {row.notice.event}) {told}", id=row.id)
        else:
            is_done = False
    return 0 if is_done else FAILED


def sent_again(row: UnsentEvent) -> tuple[Entry, ...]:
    """Have an event sent at once; one that was given up gets all its tries anew."""
    now, notice = SystemClock().wall(), row.notice
    # Why the time: an event of long ago would be given up at its first failure.
    again = Notice(event=notice.event, made_at=now, body=notice.body, why=notice.why)
    if not row.is_dead:
        return (as_entry(DUE, row.id, row.webhook, again, row.version),)
    return (*forgotten(row), as_entry(DUE, row.id, row.webhook, again, 0))


def forgotten(row: UnsentEvent) -> tuple[Entry, ...]:
    """Have an event not sent any more."""
    return (as_entry(row.kind, row.id, row.webhook, None, row.version),)


@command.command("sign")
@config_option
@click.argument("name", metavar="NAME")
@click.option(
    "--body",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help='What is sent. Without it: {"type":"test","data":{}}.',
)
@click.option("--event", default="push", help="Of GitHub's: the event it tells of.")
@click.option("--url", help="Where to. Without it: the HTTP server of the settings.")
def sign_one(
    config: Path | None, name: str, body: Path | None, event: str, url: str | None
) -> None:
    """Sign a request to the webhook NAME, and print a line for curl that sends it."""
    app = load_settings(config).value
    webhook = app.webhooks.incoming.get(name)
    if webhook is None:
        known = ", ".join(app.webhooks.incoming) or "none"
        raise click.ClickException(f"there is no webhook {name!r}; known: {known}")
    headers = signed(webhook, TEST if body is None else body.read_bytes(), event)
    content = TEST.decode() if body is None else f"@{body}"
    words = ["curl", "-i", url or address(app, name)]
    for header, value in headers.items():
        words += ["-H", f"{header}: {value}"]
    line = shlex.join([*words, "--data-binary", content])
    say(line, url=words[2], headers=headers)


def signed(webhook: WebhookInConfig, body: bytes, event: str) -> dict[str, str]:
    """Give the headers of a request that is made now."""
    key, clock = key_of(webhook.secret.reveal()), SystemClock()
    headers = {"content-type": "application/json"}
    if webhook.scheme == "github":
        return headers | {GITHUB_EVENT: event, GITHUB_SIGNATURE: sign_github(key, body)}
    name, at = IdSource(clock).new(), int(clock.wall())
    return headers | {
        ID_HEADER: name,
        TIME_HEADER: str(at),
        SIGNATURE_HEADER: sign(key, name, at, body),
    }


def address(app: AppConfig, name: str) -> str:
    """Say where the settings' own server takes a webhook."""
    servers = [each for each in app.connectors.values() if isinstance(each, HttpConfig)]
    host, port = servers[0].host, servers[0].port
    place = f"[{host}]" if ":" in host else host
    return f"http://{place}:{port}/webhooks/{name}"
