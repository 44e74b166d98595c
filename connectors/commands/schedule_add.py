"""`callboard schedule add`: set something for later without asking an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from actors.messages import Address
from actors.rules import actions, scopes
from actors.rules.appointing import Book, Counts, Origin
from actors.rules.arranging import Wish, carry_out
from actors.schedule_config import SchedulerConfig
from actors.schedule_rows import SHOWN_ID
from connectors.commands.database import (
    database_options,
    find_database,
    settings_beside,
)
from connectors.commands.printing import complain, first_words, say
from connectors.commands.schedule_change import FAILED, tell
from connectors.model_checks import find_zone
from connectors.office.appointments import Row, all_rows, write
from runtime.clock import SystemClock
from runtime.ids import IdSource

if TYPE_CHECKING:
    from datetime import tzinfo
    from pathlib import Path

    from connectors.config import AppConfig


@dataclass(frozen=True)
class Wanted:
    """What the command line says."""

    agent: str
    connector: str
    chat: str
    thread: str
    sender: str
    zone: str
    is_group: bool


@click.command()
@database_options
@click.option("--agent", required=True, help="Who says or does it.")
@click.option(
    "--chat", "place", required=True, metavar="CONNECTOR/CHAT", help="Where it is said."
)
@click.option("--thread", default="", help="The platform's id of a thread there.")
@click.option("--group", is_flag=True, help="The chat is a group.")
@click.option("--sender", help="On whose behalf; without it the chat's own id.")
@click.option("--at", "due", default="", help="2026-11-23 09:00, or: in 20 minutes.")
@click.option("--repeat", default="", help="daily, weekdays, every 2h, cron, …")
@click.option("--task", is_flag=True, help="The agent is to do it, not to say it.")
@click.option("--beat", type=click.IntRange(1, actions.MAX_MINUTES), metavar="MINUTES")
@click.option(
    "--zone", default="", help="By whose clocks; as the agent's settings say."
)
@click.argument("text")
def add(  # noqa: PLR0913, PLR0917  one for each option
    config: Path | None,
    db: Path | None,
    agent: str,
    place: str,
    thread: str,
    sender: str | None,
    due: str,
    repeat: str,
    beat: int | None,
    zone: str,
    text: str,
    *,
    group: bool,
    task: bool,
) -> int:
    """Set a reminder, a task (--task) or a heartbeat (--beat) for later.

    With --repeat and without --at it begins at once.
    """
    connector, _, chat = place.partition("/")
    if not (connector and chat):
        raise click.BadParameter(f"{place!r} is no chat; write CONNECTOR/CHAT")
    if not (due or repeat or beat):
        raise click.UsageError("say when: --at, --repeat or --beat")
    path = find_database(config, db)
    settings = settings_beside(config, db)
    app = None if settings is None else settings.value
    given = zone or (zone_of(app, agent) if app else "UTC")
    who = sender or chat
    wanted = Wanted(agent, connector, chat, thread, who, given, group)
    if app is not None:
        refuse_unknown(app, wanted)
    wish: Wish = actions.Schedule(text, due or "in 0 seconds", repeat, task)
    if beat:
        wish = actions.CreateHeartbeat(text, beat)
    elif repeat and not due and task:
        wish = actions.CreateCron(repeat, text)
    return arrange(path, wish, wanted, app)


def zone_of(app: AppConfig, agent: str) -> str:
    """Give the time zone of an agent."""
    found = app.agents.get(agent)
    return found.context.time_zone if found else "UTC"


def refuse_unknown(app: AppConfig, wanted: Wanted) -> None:
    """Check names against the settings.

    Raises:
        click.BadParameter: there is no such agent or connector.
    """
    if wanted.agent not in app.agents:
        known = ", ".join(app.agents)
        raise click.BadParameter(f"there is no agent {wanted.agent!r}; known: {known}")
    if wanted.connector not in app.connectors:
        known = ", ".join(app.connectors)
        raise click.BadParameter(
            f"there is no connector {wanted.connector!r}; known: {known}"
        )


def arrange(path: Path, wish: Wish, wanted: Wanted, app: AppConfig | None) -> int:
    """Store what is wanted, if it may be; give the exit code."""
    clock = SystemClock()
    zone = find_zone(wanted.zone)
    if zone is None:
        raise click.BadParameter(f"time zone {wanted.zone!r} is not known here")
    ids = IdSource(clock)
    book = book_of(path, wanted, zone, app)
    book.now, book.new_id = clock.wall(), lambda: ids.new()[::-1]
    told = carry_out(book, wish)
    if told.kind == "refused":
        complain(f"not done: {told.why}")
        return FAILED
    rows = {row.id: row for row in all_rows(path)}
    for name, it in book.changed.items():
        if it is None:
            continue
        row = rows.get(name, Row(name, book.origin.scope, 0, it))
        refused = write(path, row, it)
        if refused is not None:
            return tell(refused)
        what = first_words(told.what, 200)
        say(f"{name[:SHOWN_ID]} {it.kind}: {what} {told.when}".rstrip())
    return 0


def book_of(path: Path, wanted: Wanted, zone: tzinfo, app: AppConfig | None) -> Book:
    """Say where it is set, what is there already, and what is allowed."""
    address = Address(wanted.connector, wanted.chat, wanted.thread)
    person = f"{wanted.connector}/{wanted.sender}"
    scope = scopes.writing(address, person, is_direct=not wanted.is_group)
    rows = all_rows(path)
    of_agent = sum(row.it.agent == wanted.agent for row in rows)
    of_person = sum(row.it.person == person for row in rows)
    return Book(
        origin=Origin(
            scope=scope,
            person=person,
            agent=wanted.agent,
            address=address,
            is_direct=not wanted.is_group,
            sender_id=wanted.sender,
            sender_name=wanted.sender,
            zone=wanted.zone,
        ),
        zone=zone,
        kept={row.id: row.it for row in rows if row.owner == scope},
        counts=Counts(of_person, {wanted.agent: of_agent}),
        config=SchedulerConfig() if app is None else app.scheduler,
        now=0.0,
        new_id=str,
    )
