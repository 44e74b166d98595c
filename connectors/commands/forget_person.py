"""`callboard forget-person`: erase all that is kept of somebody."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import msgspec

from actors.people.identity import Person
from connectors.admin.forgetting import FoundRows, PersonTraces
from connectors.commands.common.database import (
    DatabaseChoice,
    database_options,
    every_row,
    is_stored,
    rewrite,
)
from connectors.commands.common.options import is_wanted, yes_option
from connectors.commands.common.output import (
    FAILED,
    counted,
    json_option,
    say,
    say_json,
)
from connectors.commands.people import PeopleRows
from connectors.commands.records import (
    RecordComparison,
    audited_since,
    keeping,
    repairs,
)
from connectors.config.app import StoreConfig
from runtime.clock import SystemClock
from runtime.errors import StoreUnavailableError
from runtime.store.rows import AnyRow, Commit, Entry
from runtime.telemetry.logs import EventLog

LOG = EventLog("serve")

ORDER = "forget-person"
"""Kind of the entries that wait for the next start, by account."""

PRIVATE = 0o600

UNREACHED = (
    "what others wrote of them, and what agents noted of a group or for themselves",
    "files that agents wrote (workspaces, notebooks, daily logs, personas)",
    "files that were sent (until files.keep_days), what was typed at terminals",
    "copies and backups made before now, and the log",
    "what platforms, model providers, hooks, tools and webhooks were sent",
)
"""What this command does not know as somebody's."""


class ErasedRows(msgspec.Struct, frozen=True):
    """What came of it."""

    accounts: tuple[str, ...]
    erased: dict[str, int]
    """Rows that were removed or emptied, by what they are."""

    still_named_in: dict[str, int]
    """Rows left that name an account, by what they are."""

    not_reached: tuple[str, ...] = UNREACHED


@click.command(name="forget-person")
@database_options
@click.argument("account")
@click.option(
    "--export",
    "target",
    type=click.Path(path_type=Path),
    help="First write all of it to this file, a JSON object in each line.",
)
@click.option(
    "--at-next-start",
    is_flag=True,
    help="While the company runs: erase when it starts again.",
)
@yes_option
@json_option
def command(
    choice: DatabaseChoice,
    account: str,
    target: Path | None,
    *,
    at_next_start: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Erase all that is kept of a person: words, facts, answers, audit texts.

    ACCOUNT is `connector/sender id`, as `callboard people list` shows it; all accounts
    linked with it are meant. Asks first. No server may use the database, because it
    would go on with what it has in memory. A second run finds nothing.
    """
    choice.refuse_server("forget-person")
    path, accounts = choice.path, accounts_of(choice, account)
    if target is not None:
        count = export(target, mine(path, accounts))
        say(f"{target}: {count:,} rows, private to this user")
    names = ", ".join(accounts)
    if not is_wanted(f"Erase all that is kept of {names}?", yes=yes):
        return FAILED
    if at_next_start:
        order = Entry(
            kind=ORDER, id=account, part=0, body=msgspec.json.encode(accounts)
        )
        commit = Commit(at=SystemClock().wall(), entries=(order,))
        if not is_stored(choice.database, commit):
            return FAILED
        say(f"{names}: erased when the company starts again; restart it")
        return 0
    try:
        with choice.database.claim():
            found = erase(choice, accounts)
    except StoreUnavailableError as error:
        raise click.ClickException(
            f"{error}; or give --at-next-start, and restart it"
        ) from error
    if as_json:
        say_json(found)
    else:
        for line in lines(found):
            say(line)
    return 0


def accounts_of(choice: DatabaseChoice, account: str) -> tuple[str, ...]:
    """Name all accounts of a person.

    Raises:
        click.BadParameter: this is no account.
    """
    if "/" not in account.strip("/"):
        raise click.BadParameter(
            f"{account!r} is no account; write connector/id, as `callboard people list`"
            " shows it",
            param_hint="ACCOUNT",
        )
    person: Person = PeopleRows(choice.database).of(account).person
    return tuple(dict.fromkeys((account, person.id, *person.aliases)))


def traces(path: Path, accounts: Iterable[str]) -> PersonTraces:
    """Learn what is a person's."""
    known = PersonTraces(accounts)
    for row in every_row(path):
        known.learn(row)
    return known


def mine(path: Path, accounts: Iterable[str]) -> Iterator[AnyRow]:
    """Give the rows that are a person's, in whole or in part."""
    known = traces(path, accounts)
    return (row for row in every_row(path) if known.left_of(row) != row.body)


def export(target: Path, rows: Iterable[AnyRow]) -> int:
    """Write rows to a file; count them.

    Raises:
        OSError: it exists, or cannot be written.
    """
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    count = 0
    with os.fdopen(os.open(target, how, PRIVATE), "wb") as file:
        for row in rows:
            told = {"table": row.table, "kind": row.kind, "id": row.id}
            told["body"] = row.body.decode("utf-8", "replace")
            file.write(msgspec.json.encode(told) + b"\n")
            count += 1
    return count


def erase(choice: DatabaseChoice, accounts: tuple[str, ...]) -> ErasedRows:
    """Erase what is a person's; the database is claimed."""
    path = choice.path
    known, found, left = traces(path, accounts), FoundRows(), FoundRows()

    def decide(row: AnyRow) -> bytes | None:
        body = known.left_of(row)
        if body != row.body:
            found.add(row)
        return body

    rewrite(path, decide)
    if found.counts:
        keep = keeping(choice.settings)
        with choice.database.inspect() as rows:
            follows = RecordComparison(rows, audited_since(choice.settings))
            choice.database.write(repairs(follows, keep, []))
    for row in every_row(path):
        if known.names(row):
            left.add(row)
    return ErasedRows(accounts, dict(found.counts), dict(left.counts))


def carry_out_orders(path: Path) -> list[ErasedRows]:
    """Erase who was to be erased at the next start; the database is not in use."""
    if not path.is_file():
        return []
    choice = DatabaseChoice(None, path)
    if not choice.database.is_current():
        return []  # an older one is brought up to date first; the next start does it
    with choice.database.inspect() as rows:
        orders = {each.id: each.body for each in rows.entries(ORDER)}
    done: list[ErasedRows] = []
    for account, body in orders.items():
        with choice.database.claim():
            done.append(erase(choice, msgspec.json.decode(body, type=tuple[str, ...])))
        ended = Entry(kind=ORDER, id=account, part=0, body=None)
        choice.database.write((Commit(at=SystemClock().wall(), entries=(ended,)),))
    return done


def erase_ordered(store: StoreConfig) -> None:
    """Erase who was to be erased at the next start, and say so in the log."""
    if store.kind != "sqlite":
        return  # nobody is ordered to be forgotten elsewhere
    for done in carry_out_orders(Path(store.path)):
        LOG.info("a person is forgotten, as ordered", rows=sum(done.erased.values()))


def lines(found: ErasedRows) -> Iterator[str]:
    """Write for people what came of it."""
    names = ", ".join(found.accounts)
    if not found.erased:
        yield f"Nothing is kept of {names}."
    else:
        yield f"Erased of {names}: {told(found.erased)}."
    if found.still_named_in:
        yield f"Still named in what others wrote: {told(found.still_named_in)}."
    yield "Not reached; look there yourself (docs/operate/privacy.md):"
    yield from (f"  - {each}" for each in found.not_reached)


def told(counts: dict[str, int]) -> str:
    """Write how many rows of each kind."""
    return ", ".join(counted(count, name) for name, count in sorted(counts.items()))
