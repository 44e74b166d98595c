"""`callboard nodes`: the processes of one company, and which of them runs it."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from connectors.admin.nodes import (
    COMMAND_WITHIN,
    ListedNode,
    NodeCircle,
    NodeQuestion,
    NodeReply,
    connectors_of,
    described,
    owner_of,
    parts_of,
)
from connectors.commands.common.database import DatabaseChoice, database_options
from connectors.commands.common.output import json_option, say, say_rows
from connectors.commands.common.running import run_interruptible
from connectors.config.app import AppConfig, StoreConfig, address_of
from connectors.files import receipt_key

if TYPE_CHECKING:
    from runtime.nodes.rows import LeaseRow
    from runtime.postgresql.nodes import KnownNode, NodesFromOutside

LOOK_EVERY = 0.5
"""Seconds between two looks whether a node has given all away."""


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
    """Show the processes of one company, and move its work from one to another."""


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
    help="How long to wait until it has given all away.",
)
def drain(choice: DatabaseChoice, name: str, wait: float) -> None:
    """Have the node NAME give all its work to others, and take nothing more.

    It gives away each part of the chats, each connector and what is not shared, as soon
    as nothing of it is under way; connectors at the latest after limits.drain_timeout.
    Then its process passes connections on, until it is started again or `callboard
    nodes resume` tells it to take work. To stop the process too, send it SIGTERM
    instead: that gives everything away likewise.
    """
    desk = outside(choice.store)
    nodes, leases = desk.read()
    drained = find(nodes, name)
    if not any(is_able(each) for each in nodes if each.id != name):
        raise click.ClickException(
            "no other node can go on with its work: start one, have one take work again"
            " with `callboard nodes resume`, or stop this one with SIGTERM"
        )
    if not drained.is_connected:
        say(f"node {name} does not run: others take over what it had")
        return
    desk.set_drained(name, is_drained=True)
    end = time.monotonic() + wait
    while left := left_of(leases, drained):
        if time.monotonic() > end:
            raise click.ClickException(
                f"node {name} still has {left}; it gives that away when what is under"
                " way there is done. `callboard nodes list` shows it"
            )
        threading.Event().wait(LOOK_EVERY)
        leases = desk.read()[1]
    say(f"node {name} is drained: others do all of its work")
    if owner := owner_of(leases):
        say(f"node {owner} runs the company now")


@command.command()
@database_options
@click.argument("name")
def resume(choice: DatabaseChoice, name: str) -> None:
    """Have the node NAME, which was drained, take work again."""
    desk = outside(choice.store)
    if not find(desk.read()[0], name).is_drained:
        say(f"node {name} is not drained: it takes work as it is")
        return
    desk.set_drained(name, is_drained=False)
    say(f"node {name} takes work again: it is given its share in a while")


def is_able(node: KnownNode) -> bool:
    """Whether a node may be given work."""
    return node.is_connected and node.state == "up" and not node.is_drained


def left_of(leases: Sequence[LeaseRow], node: KnownNode) -> str:
    """Say what a node has still; empty: nothing."""
    left = ["the company"] if owner_of(leases) == node.id else []
    if node.card.shares_work is False:  # the rest was left from when work was shared
        leases = ()
    parts = parts_of(leases, node.id)
    left += [f"{parts} parts of the chats"] if parts else []
    left += [f"connector {name}" for name in connectors_of(leases, node.id)]
    return ", ".join(left)


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
