"""`callboard nodes`: the processes of one company, and which of them runs it."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import click

from connectors.admin.nodes import (
    COMMAND_WITHIN,
    ListedNode,
    NodeCircle,
    NodeQuestion,
    NodeReply,
    described,
    owner_of,
)
from connectors.commands.common.database import DatabaseChoice, database_options
from connectors.commands.common.output import json_option, say, say_rows
from connectors.commands.common.running import run_interruptible
from connectors.config.app import AppConfig, StoreConfig, address_of
from connectors.files import receipt_key
from runtime.nodes.membership import homes
from runtime.nodes.rows import COMPANY

if TYPE_CHECKING:
    from runtime.postgresql.nodes import KnownNode, NodesFromOutside

LOOK_EVERY = 0.5
"""Seconds between two looks whether the company has moved."""


def outside(store: StoreConfig) -> NodesFromOutside:
    """Give the way to the nodes of the database that is meant.

    Raises:
        click.UsageError: it is a file, which has none.
    """
    if store.kind != "postgresql":
        raise click.UsageError(
            'only a company with [store] kind = "postgresql" can have nodes'
        )
    address = address_of(store)
    # Why here: what they need is an extra, and `address_of` says so if it is missing.
    from runtime.postgresql.nodes import NodesFromOutside  # noqa: PLC0415
    from runtime.postgresql.server import PostgresqlServer  # noqa: PLC0415

    return NodesFromOutside(PostgresqlServer(address))


@click.group()
def command() -> None:
    """Show the processes of one company, and move it from one to another."""


@command.command("list")
@database_options
@json_option
def list_(choice: DatabaseChoice, *, as_json: bool) -> None:
    """List all nodes, and say which of them runs the company."""
    rows = listed(choice)
    say_rows(rows, HEADERS, cells, "There is no node.", as_json=as_json)


HEADERS = (
    "NODE",
    "STATE",
    "PARTS",
    "CONNECTORS",
    "MACHINE",
    "PROCESS",
    "ADDRESS",
    "RELEASE",
)


def listed(choice: DatabaseChoice) -> list[ListedNode]:
    """Read all nodes, by name."""
    nodes, leases = outside(choice.store).read()
    return [described(each, leases) for each in nodes]


def ask_all(
    app: AppConfig, question: NodeQuestion, names: Collection[str] = ()
) -> list[NodeReply]:
    """Ask all nodes at once, by name; none: it is one process without nodes.

    Args:
        names: only these; empty: all.

    Raises:
        click.BadParameter: there is no node of such a name.
        click.UsageError: names are given, and there are no nodes.
        runtime.errors.StoreError: the database cannot be read.
    """
    if app.store.kind != "postgresql":
        if names:
            outside(app.store)
        return []
    nodes, leases = outside(app.store).read()
    for name in names:
        find(nodes, name, "'--node'")
    # Why here: most companies are one process.
    from connectors.app.nodes import all_ways  # noqa: PLC0415

    ways = [
        way
        for way in all_ways(app, nodes, leases)
        if way.listed.name in names or not names
    ]
    circle = NodeCircle("", receipt_key.load(Path(app.store.path)), lambda: ways)
    if not ways:
        return []
    return run_interruptible(circle.ask, question, ways, COMMAND_WITHIN)


def cells(node: ListedNode) -> tuple[str, ...]:
    """Give the columns of a node."""
    return (
        node.name,
        node.state,
        str(node.parts or "-"),
        ", ".join(node.connectors) or "-",
        node.machine or "-",
        str(node.process or "-"),
        node.address or "-",
        node.release or "-",
    )


@command.command()
@database_options
@click.argument("name")
@click.option(
    "--wait",
    metavar="SECONDS",
    type=click.FloatRange(0, 3600),
    default=120.0,
    show_default=True,
    help="How long to wait until it has moved.",
)
def drain(choice: DatabaseChoice, name: str, wait: float) -> None:
    """Have the node NAME give the company to another one.

    It finishes what is under way, up to limits.drain_timeout. Then it stands by, or
    works on its parts of the shared chats and runs its connectors, as before. To
    stop the process too, send it SIGTERM instead: that gives everything away.
    """
    desk = outside(choice.store)
    nodes, leases = desk.read()
    find(nodes, name)
    if owner_of(leases) != name:
        say(f"node {name} does not run the company: there is nothing to move")
        return
    others = {x.id for x in nodes if x.is_connected and x.state == "up"} - {name}
    if not others:
        raise click.ClickException(
            "no other node stands by: start one, or stop this one with SIGTERM"
        )
    to = homes([COMPANY], leases, others)[COMPANY]
    desk.want(COMPANY, name, to)
    end = time.monotonic() + wait
    while (owner := owner_of(desk.read()[1])) == name:
        if time.monotonic() > end:
            raise click.ClickException(
                f"node {name} has not given the company to node {to} yet; it will when"
                " what is under way is done. `callboard nodes list` shows it"
            )
        threading.Event().wait(LOOK_EVERY)
    if owner:
        say(f"node {owner} runs the company now")
    else:
        say(f"node {name} gave the company away; the first node that sees it begins")


@command.command()
@database_options
@click.argument("name")
def remove(choice: DatabaseChoice, name: str) -> None:
    """Forget the node NAME, which has ended and does not come back."""
    desk = outside(choice.store)
    nodes, _ = desk.read()
    if find(nodes, name).is_connected:
        raise click.ClickException(
            f"node {name} is connected to the database: stop its process first"
        )
    if not desk.remove(name):
        raise click.ClickException(
            f"node {name} still has leases: start another node, which takes them over"
        )
    say(f"node {name} is forgotten")


def find(nodes: list[KnownNode], name: str, hint: str = "NAME") -> KnownNode:
    """Find a node by its name.

    Args:
        name: of the one that is meant.
        hint: where the command line has the name.

    Raises:
        click.BadParameter: there is none.
    """
    for node in nodes:
        if node.id == name:
            return node
    text = f"there is no node {name!r}; `callboard nodes list` shows the names"
    raise click.BadParameter(text, param_hint=hint)
