"""`callboard clients`: whom the company works for, as conductors wrote it down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from actors import staff_rows
from actors.rules.hired import Client
from actors.staff_rows import CLIENT
from connectors.commands.database import database_options, find_database, json_option
from connectors.commands.printing import complain, say, say_json, table
from connectors.commands.staffed import write
from connectors.office.moments import when
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from pathlib import Path


class Row(msgspec.Struct, frozen=True):
    """One client, as listed."""

    id: str
    version: int
    client: Client


def read(path: Path) -> dict[str, Row]:
    """Read all clients; those that cannot be read are named."""
    found: dict[str, Row] = {}
    with survey(path) as rows:
        for row in rows.entries(CLIENT):
            client = staff_rows.decoded(row, Client)
            if client is None:
                complain(f"client {row.id!r} is of another release: it cannot be read")
            else:
                found[row.id] = Row(row.id, row.version, client)
    return found


def find(path: Path, name: str) -> Row:
    """Find one by its id.

    Raises:
        click.BadParameter: there is none.
    """
    rows = read(path)
    if name not in rows:
        text = f"there is no client {name!r}; `callboard clients list` shows the ids"
        raise click.BadParameter(text, param_hint="CLIENT")
    return rows[name]


@click.group()
def command() -> None:
    """Show or remove clients; conductors write them down by [CREATE_CLIENT]."""


@command.command("list")
@database_options
@json_option
def list_(config: Path | None, db: Path | None, *, as_json: bool) -> None:
    """List all clients."""
    rows = list(read(find_database(config, db)).values())
    if as_json:
        say_json(rows)
    elif not rows:
        say("There is no client.")
    else:
        headers = ("CLIENT", "NAME", "EMAIL", "PHONE", "MADE BY", "SINCE")
        for line in table(headers, map(cells, rows)):
            say(line)


@command.command()
@database_options
@click.argument("client")
@json_option
def show(config: Path | None, db: Path | None, client: str, *, as_json: bool) -> None:
    """Show all that is written down of CLIENT."""
    row = find(find_database(config, db), client)
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
def remove(config: Path | None, db: Path | None, client: str) -> int:
    """Forget CLIENT; what was said of it in conversations stays there."""
    path = find_database(config, db)
    row = find(path, client)
    entry = staff_rows.as_entry(CLIENT, row.id, None, row.version)
    return write(path, entry, "removed", 0)


def cells(row: Row) -> tuple[object, ...]:
    """Give what the table says of one client."""
    client = row.client
    since = when(client.created_at)
    return (row.id, client.name, client.email, client.phone, client.made_by, since)
