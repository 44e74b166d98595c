"""`callboard webhooks sign`: a line for curl that a webhook of the settings takes.

The signature is shown, the secret never is: one delivery can be made of it, for as
long as `replay_window` says.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from actors.rules.webhook_signature import (
    GITHUB_EVENT,
    GITHUB_SIGNATURE,
    ID_HEADER,
    SIGNATURE_HEADER,
    TIME_HEADER,
    key_of,
    sign,
    sign_github,
)
from connectors.commands import config_option, find_settings
from connectors.commands.printing import say
from connectors.config import HttpConfig
from connectors.settings import load_app
from runtime.clock import SystemClock
from runtime.ids import IdSource

if TYPE_CHECKING:
    from connectors.config import AppConfig
    from connectors.webhook_config import WebhookInConfig

TEST = b'{"type":"test","data":{}}'


@click.command("sign")
@config_option
@click.argument("name", metavar="NAME")
@click.option(
    "--body",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help='What is sent. Without it: {"type":"test","data":{}}.',
)
@click.option("--event", default="push", help="Of GitHub's: the event it tells of.")
@click.option("--url", help="Where to. Without it: the HTTP server of the settings.")
def sign_one(
    config: Path | None, name: str, body: Path | None, event: str, url: str | None
) -> None:
    """Sign a request to the webhook NAME, and print a line for curl that sends it."""
    app = load_app(find_settings(config, Path.cwd()).path, os.environ).value
    webhook = app.webhooks.incoming.get(name)
    if webhook is None:
        known = ", ".join(app.webhooks.incoming) or "none"
        raise click.ClickException(f"there is no webhook {name!r}; known: {known}")
    headers = signed(webhook, TEST if body is None else body.read_bytes(), event)
    content = TEST.decode() if body is None else f"@{body}"
    words = ["curl", "-i", url or address(app, name)]
    for header, value in headers.items():
        words += ["-H", f"{header}: {value}"]
    say(shlex.join([*words, "--data-binary", content]))


def signed(webhook: WebhookInConfig, body: bytes, event: str) -> dict[str, str]:
    """Give the headers of a request that is made now."""
    key, clock = key_of(webhook.secret.reveal()), SystemClock()
    headers = {"content-type": "application/json"}
    if webhook.scheme == "github":
        return headers | {GITHUB_EVENT: event, GITHUB_SIGNATURE: sign_github(key, body)}
    name, at = IdSource(clock).new(), int(clock.wall())
    return headers | {
        ID_HEADER: name,
        TIME_HEADER: str(at),
        SIGNATURE_HEADER: sign(key, name, at, body),
    }


def address(app: AppConfig, name: str) -> str:
    """Say where the settings' own server takes a webhook."""
    servers = [each for each in app.connectors.values() if isinstance(each, HttpConfig)]
    host, port = servers[0].host, servers[0].port
    place = f"[{host}]" if ":" in host else host
    return f"http://{place}:{port}/webhooks/{name}"
