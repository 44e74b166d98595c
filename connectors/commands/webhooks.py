"""`callboard webhooks`: what other programs are told, and how they are believed."""

from __future__ import annotations

import click

from connectors.commands.webhooks_change import drop, retry
from connectors.commands.webhooks_list import list_events
from connectors.commands.webhooks_sign import sign_one


@click.group()
def command() -> None:
    """Look at events that are not sent; send them again or drop them; sign a test.

    May be used while `callboard serve` is running: it takes changes up within
    seconds.
    """


for each in (list_events, retry, drop, sign_one):
    command.add_command(each)
