"""`callboard schedule`: what agents are to do later, and changes of that by hand."""

from __future__ import annotations

import click

from connectors.commands.schedule_add import add
from connectors.commands.schedule_change import pause, remove, resume, run
from connectors.commands.schedule_history import history
from connectors.commands.schedule_list import list_appointments, show


@click.group()
def command() -> None:
    """Look at reminders, tasks, cron and heartbeats; pause, run or remove them.

    May be used while `callboard serve` is running: it takes changes up within
    seconds.
    """


for each in (list_appointments, show, history, add, pause, resume, run, remove):
    command.add_command(each)
