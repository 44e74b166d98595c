"""`callboard login`: a link that logs a browser in to the page, once.

`callboard clients` shows whom the company works for, as conductors wrote it down.
"""

from __future__ import annotations

import secrets

import click
import msgspec

from actors.agents import rows as staff_rows
from actors.agents.hired import Client
from actors.agents.rows import CLIENT
from connectors.admin.display import moment, when
from connectors.commands.common.database import DatabaseChoice, database_options
from connectors.commands.common.output import (
    FAILED,
    complain,
    json_option,
    rows_options,
    say,
    say_json,
    say_rows,
)
from connectors.commands.common.staff import write
from connectors.config.app import AppConfig
from connectors.web.page.login_rows import (
    LINK,
    MOST_LINKS,
    SESSION,
    TOKEN_BYTES,
    LoginLink,
    login_entry,
    new_token,
    row_id,
    surplus,
)
from connectors.web.page.platform import PageConfig
from runtime.clock import SystemClock
from runtime.store.database import Database
from runtime.store.rows import Commit, StoredEntry, decoded

CLOCK = SystemClock()


@click.command()
@database_options
@click.option("--as", "person", metavar="NAME", help="Who logs in, of `people`.")
@click.option(
    "--page", "name", metavar="NAME", help="Which page, if there are several."
)
@click.option(
    "--revoke-all", is_flag=True, help="Log all browsers out; links no longer work."
)
def command(
    choice: DatabaseChoice,
    person: str | None,
    name: str | None,
    *,
    revoke_all: bool,
) -> int:
    """Print a link that logs one browser in to the web page.

    May be used while `callboard serve` is running. Whoever opens the link sees all
    conversations and can stop everything: hand it to nobody else.
    """
    settings = choice.settings
    if settings is None:
        raise click.UsageError("name the settings too: --config PATH")
    page, page_config = find_page(settings.value, name)
    database = choice.database
    if revoke_all:
        return revoke(database, page)
    who = person or page_config.people[0]
    if who not in page_config.people:
        known = ", ".join(page_config.people)
        complain(f"{who!r} may not log in; connectors.{page}.people names: {known}")
        return FAILED
    token = new_token(secrets.token_bytes(TOKEN_BYTES))
    now = CLOCK.wall()
    link = LoginLink(who, now + page_config.login_for, now)
    old = surplus(rows_of(database, page, LINK), LoginLink, now, MOST_LINKS - 1)
    made = login_entry(LINK, row_id(page, token), link, 0)
    database.write((Commit(at=now, entries=(*old, made)),))
    url = f"{address_of(page_config)}/login/{token}"
    say(url, url=url, who=who, until=moment(link.until))
    minutes = f"{page_config.login_for / 60:.0f} minutes"
    click.echo(f"Open it within {minutes}, as {who}; it works once.", err=True)
    return 0


def find_page(app: AppConfig, name: str | None) -> tuple[str, PageConfig]:
    """Find the page that is meant.

    Raises:
        click.UsageError: there is none, or it is not clear which.
    """
    pages = {
        each: connector
        for each, connector in app.connectors.items()
        if isinstance(connector, PageConfig)
    }
    if not pages:
        text = 'the settings have no page: add [connectors.page] kind = "page"'
        raise click.UsageError(text)
    if name is None and len(pages) == 1:
        return next(iter(pages.items()))
    if name is None or name not in pages:
        raise click.UsageError(f"which page? --page {' or '.join(pages)}")
    return name, pages[name]


def address_of(page: PageConfig) -> str:
    """Give the address under which browsers reach it."""
    if page.origin:
        return page.origin.rstrip("/")
    host = f"[{page.host}]" if ":" in page.host else page.host
    # The port is chosen at the start, then; `callboard serve` has printed it.
    return f"http://{host}:{page.port or '<port>'}"


def rows_of(database: Database, page: str, kind: str) -> list[StoredEntry]:
    """Read all rows of one kind and page."""
    with database.inspect() as rows:
        return list(rows.entries(kind, page))


def revoke(database: Database, page: str) -> int:
    """Log all browsers out, and let no link hold."""
    gone = [each for kind in (LINK, SESSION) for each in rows_of(database, page, kind)]
    entries = tuple(login_entry(each.kind, each.id, None) for each in gone)
    if entries:
        database.write((Commit(at=CLOCK.wall(), entries=entries),))
    count = sum(each.kind == SESSION for each in gone)
    say(
        f"{count} browser{'' if count == 1 else 's'} logged out; no link holds.",
        count=count,
    )
    return 0


class ClientRow(msgspec.Struct, frozen=True):
    """One client, as listed."""

    id: str
    version: int
    client: Client


def read(database: Database) -> dict[str, ClientRow]:
    """Read all clients; those that cannot be read are named."""
    found: dict[str, ClientRow] = {}
    with database.inspect() as rows:
        for row in rows.entries(CLIENT):
            client = decoded(row, Client)
            if client is None:
                complain(f"client {row.id!r} is of another release: it cannot be read")
            else:
                found[row.id] = ClientRow(row.id, row.version, client)
    return found


def find(database: Database, name: str) -> ClientRow:
    """Find one by its id.

    Raises:
        click.BadParameter: there is none.
    """
    rows = read(database)
    if name not in rows:
        text = f"there is no client {name!r}; `callboard clients list` shows the ids"
        raise click.BadParameter(text, param_hint="CLIENT")
    return rows[name]


@click.group()
def clients_command() -> None:
    """Show or remove clients; conductors write them down by [CREATE_CLIENT]."""


@clients_command.command("list")
@database_options
@rows_options
def list_(choice: DatabaseChoice, *, as_json: bool) -> None:
    """List all clients."""
    rows = list(read(choice.database).values())
    headers = ("CLIENT", "NAME", "EMAIL", "PHONE", "MADE BY", "SINCE")
    say_rows(rows, headers, cells, "There is no client.", as_json=as_json)


@clients_command.command()
@database_options
@click.argument("client")
@json_option
def show(choice: DatabaseChoice, client: str, *, as_json: bool) -> None:
    """Show all that is written down of CLIENT."""
    row = find(choice.database, client)
    if as_json:
        say_json(row)
        return
    for name, value in msgspec.structs.asdict(row.client).items():
        if value:
            shown = when(value) if name == "created_at" else value
            say(f"{name:12}{shown}")


@clients_command.command()
@database_options
@click.argument("client")
def remove(choice: DatabaseChoice, client: str) -> int:
    """Forget CLIENT; what was said of it in conversations stays there."""
    row = find(choice.database, client)
    entry = staff_rows.as_entry(CLIENT, row.id, None, row.version)
    return write(choice.database, entry, "removed", 0)


def cells(row: ClientRow) -> tuple[object, ...]:
    """Give the columns of one client."""
    client = row.client
    since = when(client.created_at)
    return (row.id, client.name, client.email, client.phone, client.made_by, since)
