"""`callboard tree`: the actors of a running company, asked over its HTTP server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import httpx
import msgspec

from connectors.admin.display import make_safe
from connectors.admin.tree import Forest
from connectors.commands import config_option
from connectors.commands.common.database import load_settings
from connectors.commands.common.output import json_option, say
from connectors.config.app import HttpConfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from connectors.admin.tree import Node

PATIENCE = 10.0
"""Seconds in which it must answer."""

ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  where to ask, not to listen
"""By an address to listen on, one to ask."""


@click.command()
@config_option
@click.option("--connector", help="Which HTTP server, if there are several.")
@click.option("--past", default="", help="Of its children, those behind this NAME.")
@click.argument("name", default="")
@json_option
def command(
    config: Path | None, connector: str | None, past: str, name: str, *, as_json: bool
) -> None:
    """Show each actor that lives: state, mailbox, restarts, what it is about.

    With NAME only this one and those below. A name is the way to an actor, as
    callboard/agents/anna; its end will do (agents/anna, or anna) if no other actor's
    ends so. The company must be running, and have an HTTP server:
    [connectors.<name>] kind = "http".
    """
    http = find_server(config, connector)
    body = ask(http, {"top": name, "past": past})
    forest = msgspec.json.decode(body, type=Forest)
    if as_json:
        say(msgspec.json.format(body).decode())
        return
    for node in forest.roots:
        for line in lines(node, 0):
            say(line)


def find_server(config: Path | None, connector: str | None) -> HttpConfig:
    """Find the HTTP server of the settings.

    Raises:
        click.UsageError: there is none of that name, or its port is not known.
    """
    app = load_settings(config).value
    found = {
        name: each
        for name, each in app.connectors.items()
        if isinstance(each, HttpConfig) and connector in {None, name}
    }
    if not found:
        raise click.UsageError(
            'the settings have no such HTTP server: add [connectors.http] kind = "http"'
        )
    if len(found) > 1:
        names = ", ".join(found)
        raise click.UsageError(f"there are several; give --connector: {names}")
    (name, http), *_ = found.items()
    if not http.port:
        raise click.UsageError(f"connectors.{name}: give it a port, else none is known")
    return http


def ask(http: HttpConfig, query: dict[str, str]) -> bytes:
    """Ask the running company for its tree.

    Raises:
        click.ClickException: nobody answers there, or it refuses.
    """
    host = ANYWHERE.get(http.host, http.host)
    place = f"[{host}]" if ":" in host else host
    address = f"http://{place}:{http.port}/actors"
    key = "" if http.api_key is None else http.api_key.reveal()
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
    if not response.is_success:
        text = f"{address} answers {response.status_code}: {response.text[:200]}"
        raise click.ClickException(make_safe(text))
    return response.content


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
