"""`callboard clients`: whom the company works for, as conductors wrote it down."""

from __future__ import annotations

import click
import msgspec

from actors.agents import rows as staff_rows
from actors.agents.hired import Client
from actors.agents.rows import CLIENT
from connectors.admin.display import when
from connectors.commands.common.database import DatabaseChoice, database_options
from connectors.commands.common.output import (
    complain,
    json_option,
    rows_options,
    say,
    say_json,
    say_rows,
)
from connectors.commands.common.staff import write
from runtime.store.database import Database


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
            client = staff_rows.decoded(row, Client)
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
def command() -> None:
    """Show or remove clients; conductors write them down by [CREATE_CLIENT]."""


@command.command("list")
@database_options
@rows_options
def list_(choice: DatabaseChoice, *, as_json: bool) -> None:
    """List all clients."""
    rows = list(read(choice.database).values())
    if as_json:
        say_json(rows)
    else:
        headers = ("CLIENT", "NAME", "EMAIL", "PHONE", "MADE BY", "SINCE")
        say_rows(rows, headers, cells, "There is no client.")


@command.command()
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


@command.command()
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
