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
from runtime.nodes.rows import ACCOUNT, COMPANY, PART, LeaseRow

if TYPE_CHECKING:
    from runtime.postgresql.nodes import KnownNode, NodesFromOutside

RUNS, GONE = "runs the company", "is gone"
"""States of a node that need to be known elsewhere."""

LOOK_EVERY = 0.5
"""Seconds between two looks whether the company has moved."""


class ListedNode(msgspec.Struct, frozen=True):
    """One node, as listed."""

    name: str
    state: str
    """`runs the company`, `works on its parts`, `stands by`, or why none of these."""

    parts: int
    """How many of the 256 parts of all shared chats it works on."""

    connectors: tuple[str, ...]
    """The connectors with a lease of their own that it runs."""

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


def connectors_of(leases: list[LeaseRow], node: str) -> tuple[str, ...]:
    """Name the connectors that a node runs of those with a lease of their own."""
    mine = [row.name for row in leases if row.owner == node]
    return tuple(sorted(x.removeprefix(ACCOUNT) for x in mine if x.startswith(ACCOUNT)))


def state_of(node: KnownNode, owner: str, *, has_work: bool) -> str:
    """Say what a node does.

    Args:
        owner: the one that runs the company.
        has_work: whether it has parts or connectors.
    """
    if not node.is_connected:
        return "has ended" if node.state == "left" else GONE
    if node.id == owner:
        return RUNS
    if node.state != "up":
        return "is to join again"
    return "works on its parts" if has_work else "stands by"


@click.group()
def command() -> None:
    """Show the processes of one company, and move it from one to another."""


@command.command("list")
@database_options
@json_option
def list_(choice: DatabaseChoice, *, as_json: bool) -> None:
    """List all nodes, and say which of them runs the company."""
    rows = listed(choice)
    if as_json:
        say_json(rows)
    else:
        say_rows(rows, HEADERS, cells, "There is no node.")


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
    nodes, leases = outside(choice).read()
    owner = owner_of(leases)
    return [described(each, owner, leases) for each in nodes]


def described(node: KnownNode, owner: str, leases: list[LeaseRow]) -> ListedNode:
    """Put together what is listed of a node."""
    parts, connectors = parts_of(leases, node.id), connectors_of(leases, node.id)
    return ListedNode(
        name=node.id,
        state=state_of(node, owner, has_work=bool(parts or connectors)),
        parts=parts,
        connectors=connectors,
        machine=node.card.host,
        process=node.card.process,
        address=node.card.address,
        release=node.card.release,
    )


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
