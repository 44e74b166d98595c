"""`callboard forget-person`: erase all that is kept of somebody."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import msgspec
import trio

from actors.people.identity import Person
from connectors.admin.forgetting import FoundRows, PersonTraces
from connectors.commands.common.database import (
    DatabaseChoice,
    database_of_store,
    database_options,
)
from connectors.commands.common.output import (
    FAILED,
    complain,
    counted,
    is_wanted,
    json_option,
    say,
    say_json,
    with_slash,
    yes_option,
)
from connectors.config.app import AppConfig, StoreConfig
from runtime.clock import SystemClock
from runtime.config.loader import Settings
from runtime.errors import StoreError, StoreUnavailableError
from runtime.store.database import Database
from runtime.store.port import Entries, Store
from runtime.store.rows import AnyRow, Commit, Entry
from runtime.telemetry.logs import EventLog

LOG = EventLog("serve")

ORDER = "forget-person"
"""Kind of the entries that order somebody to be erased, by account."""

NOW, DONE = "now", "done"
"""Owners of orders: a company that runs is to begin anew for it; it has been done, and
the body says what came of it. Others wait for the next start."""

DONE_WITHIN = 300.0
"""Seconds that a company which runs is waited for."""

LOOK_EVERY = 0.5
"""Seconds between two looks whether it is done."""

ORDERED_EVERY = 2.0
"""Seconds between two looks of a company whether somebody is to be forgotten."""

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

    exported: int | None = None
    """Rows that were written to a file; None: no file was asked for."""

    at_next_start: bool = False
    """Whether it is only ordered: then nothing is erased or counted yet."""


@click.command(name="forget-person")
@database_options
@click.argument("account", type=with_slash)
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
    linked with it are meant. Asks first. A company that runs pauses for it and begins
    anew, so that its memory forgets, too. A second run finds nothing.
    """
    database, accounts = choice.database, accounts_of(choice, account)
    exported = None if target is None else export(target, mine(database, accounts))
    if exported is not None and not as_json:
        say(f"{target}: {exported:,} rows, private to this user")
    names = ", ".join(accounts)
    if not is_wanted(f"Erase all that is kept of {names}?", yes=yes):
        return FAILED
    if at_next_start:
        database.write((order(account, accounts),))
        found = ErasedRows(accounts, {}, {}, at_next_start=True)
    else:
        found = erase_now(choice, account, accounts)
    if as_json:
        say_json(msgspec.structs.replace(found, exported=exported))
    elif at_next_start:
        is_one = not are_nodes_connected(choice)
        how = "restart it" if is_one else "stop all of its nodes, then start them"
        say(f"{names}: erased when the company starts again; {how}")
    else:
        for line in lines(found):
            say(line)
        if not found.erased:
            doubt(choice, account)
    return 0


def doubt(choice: DatabaseChoice, account: str) -> None:
    """Say that an account of which nothing is kept may be written wrongly."""
    settings, connector = choice.settings, account.partition("/")[0]
    if settings is not None and connector not in settings.value.connectors:
        known = ", ".join(settings.value.connectors)
        complain(f"the settings have no connector {connector!r}; known: {known}")


def erase_now(
    choice: DatabaseChoice, account: str, accounts: tuple[str, ...]
) -> ErasedRows:
    """Erase what is a person's, or have a company that runs do it.

    Raises:
        click.ClickException: see `erase_beside`.
    """
    with contextlib.ExitStack() as stack:
        # Why by itself: what fails while it erases says nothing of a company.
        try:
            stack.enter_context(choice.database.claim())
        except StoreUnavailableError as error:
            return erase_beside(choice, account, accounts, error)
        return erase(choice.database, choice.settings, accounts)


def erase_beside(
    choice: DatabaseChoice,
    account: str,
    accounts: tuple[str, ...],
    refusal: StoreUnavailableError,
) -> ErasedRows:
    """Have a company that runs erase what is a person's.

    Raises:
        click.ClickException: it has several nodes, or has not erased it for long.
    """
    database = choice.database
    if are_nodes_connected(choice):
        raise click.ClickException(
            f"{refusal}. This company has several nodes: stop all, then try again"
        ) from refusal
    if next(mine(database, accounts), None) is None:
        return ErasedRows(accounts, {}, named(database, accounts))
    database.write((order(account, accounts, NOW),))
    click.echo("The company runs: it ends its turns, erases, goes on.", err=True)
    return wait_done(database, account, accounts, refusal)


def are_nodes_connected(choice: DatabaseChoice) -> bool:
    """Whether the company that runs has nodes, whatever the settings here say."""
    if choice.store.kind != "postgresql":
        return False
    # Why here: it loads psycopg, and most companies have a file.
    from connectors.commands.nodes import outside  # noqa: PLC0415

    nodes, _ = outside(choice.store).read()
    return any(each.is_connected for each in nodes)


def order(account: str, accounts: tuple[str, ...], owner: str = "") -> Commit:
    """Order somebody to be erased; see `NOW`."""
    body = msgspec.json.encode(accounts)
    row = Entry(kind=ORDER, id=account, owner=owner, part=0, body=body)
    return Commit(at=SystemClock().wall(), entries=(row,))


def wait_done(
    database: Database,
    account: str,
    accounts: tuple[str, ...],
    refusal: StoreUnavailableError,
) -> ErasedRows:
    """Wait until a company that runs has carried out an order, and take it away.

    Raises:
        click.ClickException: it has not, for long, or leaves it to its next start.
    """
    began = SystemClock().monotonic()
    while SystemClock().monotonic() < began + DONE_WITHIN:
        with database.inspect() as rows:
            found = {each.id: each for each in rows.entries(ORDER)}
        if account not in found:  # another command had ordered it, too, and was told
            return ErasedRows(accounts, {}, named(database, accounts))
        if found[account].owner == DONE:
            database.write((ended(account),))
            return msgspec.json.decode(found[account].body, type=ErasedRows)
        if found[account].owner != NOW:
            break
        threading.Event().wait(LOOK_EVERY)
    raise click.ClickException(
        f"{account} is not erased yet, but will be when the company starts again;"
        f" restart it ({refusal})"
    )


async def wait_ordered(store: Entries) -> None:
    """Wait until somebody is to be forgotten at once."""
    while True:
        await trio.sleep(ORDERED_EVERY)
        with contextlib.suppress(StoreError):  # it is looked after elsewhere
            if await store.entries(ORDER, NOW, limit=1):
                return


async def put_off_orders(store: Store) -> None:
    """Leave to the next start who is to be forgotten at once; never returns.

    For a company that cannot begin anew by itself: who ordered it is told at once.
    """
    while True:
        await wait_ordered(store)
        with contextlib.suppress(StoreError):
            await put_off(store)


async def put_off(store: Store) -> None:
    """Leave to the next start who is to be forgotten now.

    Raises:
        runtime.errors.StoreError: the database fails, or another program was first.
    """
    for each in await store.entries(ORDER, NOW):
        row = Entry(
            kind=ORDER, id=each.id, part=0, body=each.body, expected=each.version
        )
        await store.commit(Commit(at=SystemClock().wall(), entries=(row,)))


def ended(account: str) -> Commit:
    """Take an order away."""
    row = Entry(kind=ORDER, id=account, part=0, body=None)
    return Commit(at=SystemClock().wall(), entries=(row,))


def accounts_of(choice: DatabaseChoice, account: str) -> tuple[str, ...]:
    """Name all accounts of a person.

    Raises:
        click.BadParameter: this is no account.
    """
    is_text = account == account.encode(errors="replace").decode()
    if "/" not in account.strip("/") or not is_text:
        raise click.BadParameter(
            f"{account!r} is no account; write connector/id, as `callboard people list`"
            " shows it",
            param_hint="ACCOUNT",
        )
    # Why here, as below: each start of a server loads this module.
    from connectors.commands.people import PeopleRows  # noqa: PLC0415

    person: Person = PeopleRows(choice.database).of(account).person
    return tuple(dict.fromkeys((account, person.id, *person.aliases)))


def traces(database: Database, accounts: Iterable[str]) -> PersonTraces:
    """Learn what is a person's."""
    known = PersonTraces(accounts)
    for row in database.every_row():
        known.learn(row)
    return known


def mine(database: Database, accounts: Iterable[str]) -> Iterator[AnyRow]:
    """Give the rows that are a person's, in whole or in part."""
    known = traces(database, accounts)
    return (row for row in database.every_row() if known.left_of(row) != row.body)


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


def erase(
    database: Database,
    settings: Settings[AppConfig] | None,
    accounts: tuple[str, ...],
    *,
    keeps_orders: bool = False,
) -> ErasedRows:
    """Erase what is a person's; the database is claimed.

    Args:
        settings: by which audit records are kept, if they are known.
        keeps_orders: whether orders to erase stay: whoever waits for one looks at it.
    """
    known, found = traces(database, accounts), FoundRows()

    def decide(row: AnyRow) -> bytes | None:
        if keeps_orders and row.kind == ORDER:
            return row.body
        body = known.left_of(row)
        if body != row.body:
            found.add(row)
        return body

    try:
        database.rewrite(decide)
    finally:  # also if rows are changed and only their files could not be written anew
        if found.counts:
            from connectors.commands import records  # noqa: PLC0415

            keep = records.keeping(settings)
            with database.inspect() as rows:
                since = records.audited_since(settings)
                follows = records.RecordComparison(rows, since)
                database.write(records.repairs(follows, keep, []))
    return ErasedRows(accounts, dict(found.counts), named(database, accounts))


def named(database: Database, accounts: Iterable[str]) -> dict[str, int]:
    """Count rows that name an account, by what they are."""
    known, left = PersonTraces(accounts), FoundRows()
    for row in database.every_row():
        if row.kind != ORDER and known.names(row):
            left.add(row)
    return dict(left.counts)


def carry_out_orders(database: Database) -> tuple[list[ErasedRows], bool]:
    """Erase who was ordered to be; the database is not in use.

    Returns:
        What came of it, and whether all has been done.
    """
    # An older one is brought up to date first; the next start does it.
    if not (database.exists() and database.is_current()):
        return [], True
    with database.inspect() as rows:
        orders = list(rows.entries(ORDER))
    done: list[ErasedRows] = []
    for each in orders:
        if each.owner == DONE:  # and nobody waits for it any more
            database.write((ended(each.id),))
            continue
        accounts = msgspec.json.decode(each.body, type=tuple[str, ...])
        try:
            with database.claim():
                found = erase(database, None, accounts, keeps_orders=True)
        except StoreError as error:
            LOG.warning(
                "a person is not forgotten yet, as ordered; the next start tries again",
                why=str(error),
            )
            return done, False
        done.append(found)
        body = msgspec.json.encode(found) if each.owner == NOW else None
        row = Entry(kind=ORDER, id=each.id, owner=DONE, part=0, body=body)
        database.write((Commit(at=SystemClock().wall(), entries=(row,)),))
    return done, True


def erase_ordered(store: StoreConfig) -> bool:
    """Erase who was ordered to be, and say so in the log; False: not all are."""
    erased, is_done = carry_out_orders(database_of_store(store))
    for each in erased:
        LOG.info("a person is forgotten, as ordered", rows=sum(each.erased.values()))
    return is_done


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
