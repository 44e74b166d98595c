"""`callboard pairing`: who asks to be let in, and who was (B5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from actors import pairing_rows
from actors.pairing_rows import COMMAND_LINE, GUEST, MOST_GUESTS, PAIRING
from actors.redaction import Keep
from actors.rules.codes import plain, shown
from actors.rules.pairing import denied, is_open
from connectors.commands.database import database_options, find_database, json_option
from connectors.commands.pairing_explain import explain
from connectors.commands.printing import complain, say, say_json, table
from connectors.office.moments import when
from runtime import sqlite_mend
from runtime.clock import SystemClock
from runtime.errors import SequenceConflictError
from runtime.ids import IdSource
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from pathlib import Path

    from actors.pairing_rows import Rows
    from actors.rules.pairing import Guest, Request
    from runtime.rows import Commit

FAILED = 1
CLOCK = SystemClock()


class Row(msgspec.Struct, frozen=True):
    """One account, as listed."""

    account: str
    name: str
    """What they call themselves."""

    state: str
    """`asks`, or `let in`."""

    code: str
    """Empty unless they ask."""

    at: float
    """Unix seconds: when they asked, or were let in."""

    until: float
    """Unix seconds: until when the code holds; 0: they are in for good."""

    by: str
    """Who let them in."""


def read(path: Path) -> Rows:
    """Read all rows, as they stand at one moment."""
    with survey(path) as rows:
        asking, let_in = list(rows.entries(PAIRING)), list(rows.entries(GUEST))
    return pairing_rows.rows_of(asking, let_in)


def listed(rows: Rows, now: float) -> list[Row]:
    """List who asks now, then who was let in."""
    asking = [each for each in rows.requests if is_open(each, now)]
    asking.sort(key=lambda each: each.asked_at)
    return [*map(asked, asking), *map(let_in, rows.guests)]


def asked(each: Request) -> Row:
    """Give what is listed of somebody who asks."""
    code = shown(each.code)
    return Row(each.account, each.name, "asks", code, each.asked_at, each.until, by="")


def let_in(each: Guest) -> Row:
    """Give what is listed of somebody who was let in."""
    return Row(each.account, each.name, "let in", "", each.at, 0.0, each.by)


@click.group()
def command() -> None:
    """Let strangers in who were told a code, or end that again.

    May be used while `callboard serve` is running: it follows within seconds, and
    tells whom you let in.
    """


@command.command("list")
@database_options
@json_option
def list_(config: Path | None, db: Path | None, *, as_json: bool) -> None:
    """List who asks to be let in, and who was.

    Anybody can call themselves anything: compare the code with the one they tell you.
    """
    rows = listed(read(find_database(config, db)), CLOCK.wall())
    if as_json:
        say_json(rows)
    elif not rows:
        say("Nobody asks to be let in, and nobody was.")
    else:
        headers = ("ACCOUNT", "NAME", "STATE", "CODE", "SINCE", "UNTIL", "BY")
        for line in table(headers, map(cells, rows)):
            say(line)


@command.command()
@database_options
@click.argument("code")
def approve(config: Path | None, db: Path | None, code: str) -> int:
    """Let somebody in, by the code that they were told; they are told so."""
    path = find_database(config, db)
    rows = read(path)
    request = found(rows, code)
    if request is None:
        return unknown(code)
    if len(rows.guests) >= MOST_GUESTS:
        complain(f"{MOST_GUESTS} were let in; list people in the settings instead")
        return FAILED
    now, known = CLOCK.wall(), {each.account: each for each in rows.guests}
    was = known.get(request.account)
    guest = pairing_rows.as_let_in(request, COMMAND_LINE, now, was)
    commit = pairing_rows.as_approved(request, guest, record(), now)
    return write(path, commit, f"{guest.account} may write")


@command.command()
@database_options
@click.argument("code")
def deny(config: Path | None, db: Path | None, code: str) -> int:
    """Do not let somebody in; they are told no other code for a day."""
    path = find_database(config, db)
    request = found(read(path), code)
    if request is None:
        return unknown(code)
    now = CLOCK.wall()
    commit = pairing_rows.as_denied(denied(request, now), COMMAND_LINE, record(), now)
    return write(path, commit, f"{request.account} is not let in")


@command.command()
@database_options
@click.argument("account")
def revoke(config: Path | None, db: Path | None, account: str) -> int:
    """Let an account, CONNECTOR/SENDER, write no more.

    What was taken in before is answered. Whom the settings list may go on.
    """
    path = find_database(config, db)
    if all(each.account != account for each in read(path).guests):
        complain(f"nobody let {account} in; see `callboard pairing list`")
        return FAILED
    commit = pairing_rows.as_revoked(account, COMMAND_LINE, record(), CLOCK.wall())
    return write(path, commit, f"{account} may write no more")


command.add_command(explain)


def found(rows: Rows, code: str) -> Request | None:
    """Find whose code somebody typed, if it holds."""
    wanted, now = plain(code), CLOCK.wall()
    holding = (each for each in rows.requests if is_open(each, now))
    return next((each for each in holding if each.code == wanted), None)


def unknown(code: str) -> int:
    """Say that nobody has a code; give the exit code."""
    complain(
        f"nobody waits under {code}: it may have been too long ago; see"
        " `callboard pairing list`"
    )
    return FAILED


def record() -> tuple[str, Keep]:
    """Give the id of a new record, and what is kept in it."""
    return IdSource(CLOCK).new(), Keep()


def write(path: Path, commit: Commit, done: str) -> int:
    """Store a change beside a running server; give the exit code."""
    try:
        sqlite_mend.write(path, commit)
    except SequenceConflictError:
        complain("somebody wrote to the same rows at the same moment; try again")
        return FAILED
    say(done)
    return 0


def cells(row: Row) -> tuple[object, ...]:
    """Give what the table says of one account."""
    until = when(row.until) if row.until else ""
    return (row.account, row.name, row.state, row.code, when(row.at), until, row.by)
