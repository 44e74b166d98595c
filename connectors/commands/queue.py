"""`callboard queue`: look at the messages, and change what becomes of them by hand."""

from __future__ import annotations

import click

from connectors.commands.queue_change import drop, retry
from connectors.commands.queue_list import list_jobs
from connectors.commands.queue_show import show


@click.group()
def command() -> None:
    """Look at messages that wait, run or failed; try them again or drop them.

    May be used while `callboard serve` is running: it takes changes up within
    seconds.
    """


for each in (list_jobs, show, retry, drop):
    command.add_command(each)
