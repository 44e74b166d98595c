"""`callboard tree`: the actors of a running company, asked over its admin address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import httpx
import msgspec

from connectors.admin.display import make_safe
from connectors.admin.settings import Applied, NotNotedError, read_applied
from connectors.admin.tree import Forest, Node
from connectors.commands import config_option
from connectors.commands.common.database import load_settings
from connectors.commands.common.output import json_option, say
from connectors.config.app import ADMIN_PORT, AppConfig, HttpConfig
from runtime.secret import Secret

NOT_READY = 503

PATIENCE = 10.0
"""Seconds in which it must answer."""

ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  where to ask, not to listen
"""By an address to listen on, one to ask."""


@click.command()
@config_option
@click.option("--connector", help="Ask this HTTP server instead of the admin address.")
@click.option("--past", default="", help="Of its children, those behind this NAME.")
@click.argument("name", default="")
@json_option
def command(
    config: Path | None, connector: str | None, past: str, name: str, *, as_json: bool
) -> None:
    """Show each actor that lives: state, mailbox, restarts, what it is about.

    With NAME only this one and those below. A name is the way to an actor, as
    callboard/agents/anna; its end will do (agents/anna, or anna) if no other actor's
    ends so. The company must be running; it is asked at the address of [admin].
    """
    app = load_settings(config).value
    door = find_door(app, connector, find_running(app))
    body = ask(door, "/actors", {"top": name, "past": past}).content
    forest = msgspec.json.decode(body, type=Forest)
    if as_json:
        say(msgspec.json.format(body).decode())
        return
    for node in forest.roots:
        for line in lines(node, 0):
            say(line)


class Door(msgspec.Struct, frozen=True):
    """Where a running company can be asked."""

    host: str
    port: int
    key: Secret | None

    @property
    def address(self) -> str:
        """The beginning of its URLs."""
        host = ANYWHERE.get(self.host, self.host)
        place = f"[{host}]" if ":" in host else host
        return f"http://{place}:{self.port}"


def find_running(app: AppConfig) -> Applied | None:
    """Read what the process goes by that serves these settings; None: not known."""
    try:
        return read_applied(Path(app.store.path))
    except (NotNotedError, OSError):
        return None


def find_door(
    app: AppConfig, connector: str | None = None, running: Applied | None = None
) -> Door:
    """Find out where a running company can be asked: its admin address, if it has one.

    Args:
        app: its settings.
        connector: an HTTP server to ask instead.
        running: what the process that serves has noted; None: not known.

    Raises:
        click.UsageError: it cannot be asked anywhere, or its port is not known.
    """
    admin = app.admin
    port = ADMIN_PORT if admin.port is None else admin.port
    if connector is None and running is not None and running.admin is not None:
        return Door(*running.admin, admin.api_key)
    if connector is None and running is None and admin.is_on and port:
        return Door(admin.host, port, admin.api_key)
    servers = {
        name: each
        for name, each in app.connectors.items()
        if isinstance(each, HttpConfig) and connector in {None, name}
    }
    if not servers and connector is None and running is not None and admin.is_on:
        raise click.UsageError(
            f"process {running.process} has no address for operators: another program"
            f" had {admin.host}:{port} when it started. Set [admin] port, and restart"
            " it; a second company on one machine needs its own"
        )
    if not servers:
        raise click.UsageError(
            "the settings have no such HTTP server: set is_on = true and a port in"
            ' [admin], or add [connectors.http] kind = "http"'
        )
    if len(servers) > 1:
        names = ", ".join(servers)
        raise click.UsageError(f"there are several; give --connector: {names}")
    (name, http), *_ = servers.items()
    if not http.port:
        raise click.UsageError(
            f"connectors.{name}: give it a port, else none is known, or give [admin]"
            " one"
        )
    return Door(http.host, http.port, http.api_key)


def ask(door: Door, path: str, query: dict[str, str]) -> httpx.Response:
    """Ask a running company something.

    Returns:
        What it answers; its status is below 400, or 503.

    Raises:
        click.ClickException: nobody answers there, or it refuses.
    """
    address = f"{door.address}{path}"
    key = "" if door.key is None else door.key.reveal()
    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        response = httpx.get(
            address, params=query, headers=headers, timeout=PATIENCE, trust_env=False
        )
    except httpx.HTTPError as error:
        why = str(error) or type(error).__name__
        text = f"nobody answers at {address}: {why}; is `callboard serve` running?"
        raise click.ClickException(text) from error
    if response.status_code == 404 and (why := told(response)):
        raise click.ClickException(make_safe(why))
    if not response.is_success and response.status_code != NOT_READY:
        text = f"{address} answers {response.status_code}: {response.text[:200]}"
        raise click.ClickException(make_safe(text))
    return response


class ErrorText(msgspec.Struct):
    """What is read of an error."""

    message: str = ""


class ErrorReply(msgspec.Struct):
    """What is read of a refusal, as `connectors/web/errors.py` writes it."""

    error: ErrorText


def told(response: httpx.Response) -> str:
    """Give what it says of a name that nobody has; empty: it was another server."""
    try:
        return msgspec.json.decode(response.content, type=ErrorReply).error.message
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""


def lines(node: Node, depth: int) -> Iterator[str]:
    """Write an actor and those below it, one on each line."""
    indent = "  " * depth
    yield indent + make_safe("  ".join(words(node)))
    for each in node.children:
        yield from lines(each, depth + 1)
    if node.hidden:
        more = f"{indent}  … {node.hidden:,} more: callboard tree {node.name}"
        yield make_safe(f"{more} --past {node.next}" if node.next else more)


def words(node: Node) -> Iterator[str]:
    """Say how an actor gets on."""
    yield node.label
    yield node.kind
    if node.state != "running":
        yield node.state
    yield f"{node.depth}/{node.limit}"
    if node.restarts:
        yield f"{node.restarts} restart{'' if node.restarts == 1 else 's'}"
    if node.handling:
        yield f"{node.handling} for {node.busy_for:.0f} s"
    if node.last_end:
        yield f"({node.last_end})"
