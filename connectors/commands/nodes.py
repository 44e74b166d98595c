"""`callboard nodes`: the processes of one company, and which of them runs it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import click
import msgspec

from connectors.commands.common.database import DatabaseChoice, database_options
from connectors.commands.common.output import json_option, say, say_json, say_rows
from connectors.config.app import address_of
from runtime.nodes.membership import homes
from runtime.nodes.rows import COMPANY, PART, LeaseRow

if TYPE_CHECKING:
    from runtime.postgresql.nodes import KnownNode, NodesFromOutside

LOOK_EVERY = 0.5
"""Seconds between two looks whether the company has moved."""


class ListedNode(msgspec.Struct, frozen=True):
    """One node, as listed."""

    name: str
    state: str
    """`runs the company`, `works on its parts`, `stands by`, or why none of these."""

    parts: int
    """How many of the 256 parts of all shared chats it works on."""

    machine: str
    process: int
    address: str
    release: str


def outside(choice: DatabaseChoice) -> NodesFromOutside:
    """Give the way to the nodes of the database that is meant.

    Raises:
        click.UsageError: it is a file, which has none.
    """
    store = choice.store
    if store.kind != "postgresql":
        raise click.UsageError(
            'only a company with [store] kind = "postgresql" can have nodes'
        )
    address = address_of(store)
    # Why here: what they need is an extra, and `address_of` says so if it is missing.
    from runtime.postgresql.nodes import NodesFromOutside  # noqa: PLC0415
    from runtime.postgresql.server import PostgresqlServer  # noqa: PLC0415

    return NodesFromOutside(PostgresqlServer(address))


def owner_of(leases: list[LeaseRow]) -> str:
    """Name the node that runs the company; empty: none does."""
    return next((row.owner for row in leases if row.name == COMPANY), "")


def parts_of(leases: list[LeaseRow], node: str) -> int:
    """Count the parts that a node works on."""
    return sum(row.owner == node and row.name.startswith(PART) for row in leases)


def state_of(node: KnownNode, owner: str, parts: int) -> str:
    """Say what a node does."""
    if not node.is_connected:
        return "has ended" if node.state == "left" else "is gone"
    if node.id == owner:
        return "runs the company"
    if node.state != "up":
        return "is to join again"
    return "works on its parts" if parts else "stands by"


@click.group()
def command() -> None:
    """Show the processes of one company, and move it from one to another."""


@command.command("list")
@database_options
@json_option
def list_(choice: DatabaseChoice, *, as_json: bool) -> None:
    """List all nodes, and say which of them runs the company."""
    nodes, leases = outside(choice).read()
    owner = owner_of(leases)
    rows = [
        ListedNode(
            name=each.id,
            state=state_of(each, owner, parts_of(leases, each.id)),
            parts=parts_of(leases, each.id),
            machine=each.card.host,
            process=each.card.process,
            address=each.card.address,
            release=each.card.release,
        )
        for each in nodes
    ]
    if as_json:
        say_json(rows)
    else:
        headers = ("NODE", "STATE", "PARTS", "MACHINE", "PROCESS", "ADDRESS", "RELEASE")
        say_rows(rows, headers, cells, "There is no node.")


def cells(node: ListedNode) -> tuple[str, ...]:
    """Give the columns of a node."""
    return (
        node.name,
        node.state,
        str(node.parts or "-"),
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
    works on its parts of the shared chats, as before. To
    stop the process too, send it SIGTERM instead: that gives the company away as well.
    """
    desk = outside(choice)
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
    desk = outside(choice)
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


def find(nodes: list[KnownNode], name: str) -> KnownNode:
    """Find a node by its name.

    Raises:
        click.BadParameter: there is none.
    """
    for node in nodes:
        if node.id == name:
            return node
    text = f"there is no node {name!r}; `callboard nodes list` shows the names"
    raise click.BadParameter(text, param_hint="NAME")
