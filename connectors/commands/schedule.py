"""`callboard schedule` and `tasks`: what agents do now, did, and are to do later.

Lists and changes appointments, makes new ones without asking an agent, and adds up the
tokens that agents have used for appointments today.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo

import click
import msgspec
from msgspec.structs import asdict as as_dict

from actors.config.schedule import SchedulerConfig
from actors.journal.notices import SHOWN_ID
from actors.journal.records import USAGE, UsageRecord
from actors.memory import scopes
from actors.messages.inbound import Address, Inbound
from actors.models.daily_tokens import is_allotted, midnight
from actors.rules.markers import actions
from actors.schedule.appointments import words_of
from actors.schedule.booking import AppointmentBook, AppointmentCounts, RequestOrigin
from actors.schedule.quiet_hours import hours_of
from actors.schedule.recurrence import repeat_shown
from actors.schedule.requests import Wish, carry_out
from actors.turn.scheduled import set_model
from connectors.admin import schedule
from connectors.admin.display import STATUSES, lasting, moment, read_record, when
from connectors.admin.schedule import (
    ShownAppointment,
    SlotRun,
    SlotRunReader,
    StoredAppointment,
    all_rows,
    find_row,
    is_open,
    read_runs,
    shown,
    write,
)
from connectors.commands.common.database import DatabaseChoice, database_options
from connectors.commands.common.output import (
    FAILED,
    complain,
    first_words,
    indented,
    is_wanted,
    rows_options,
    say,
    say_json,
    say_rows,
    since_option,
    split_chat,
    table,
    yes_option,
)
from connectors.config.app import AppConfig
from connectors.config.checks import find_zone
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.store.database import Database, Inspection, RepairResult
from runtime.store.rows import MAX_ROWS, InboxState, decoded

LONGEST = 300
"""Characters of what is said of a change."""


@dataclass(frozen=True)
class WantedAppointment:
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
    choice: DatabaseChoice,
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
    connector, chat = split_chat(place)
    if not (connector and chat):
        raise click.BadParameter(f"{place!r} is no chat; write CONNECTOR/CHAT")
    if not (due or repeat or beat):
        raise click.UsageError("say when: --at, --repeat or --beat")
    database, settings = choice.database, choice.settings
    app = None if settings is None else settings.value
    given = zone or (zone_of(app, agent) if app else "UTC")
    who = sender or chat
    wanted = WantedAppointment(agent, connector, chat, thread, who, given, group)
    if app is not None:
        refuse_unknown(app, wanted)
    wish: Wish = actions.Schedule(text, due or "in 0 seconds", repeat, task)
    if beat:
        wish = actions.CreateHeartbeat(text, beat)
    elif repeat and not due and task:
        wish = actions.CreateCron(repeat, text)
    return arrange(database, wish, wanted, app)


def zone_of(app: AppConfig, agent: str) -> str:
    """Give the time zone of an agent."""
    found = app.agents.get(agent)
    return found.context.time_zone if found else "UTC"


def refuse_unknown(app: AppConfig, wanted: WantedAppointment) -> None:
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


def arrange(
    database: Database, wish: Wish, wanted: WantedAppointment, app: AppConfig | None
) -> int:
    """Store what is wanted, if it may be; give the exit code."""
    clock = SystemClock()
    zone = find_zone(wanted.zone)
    if zone is None:
        raise click.BadParameter(f"time zone {wanted.zone!r} is not known here")
    ids = IdSource(clock)
    with database.inspect() as store:
        rows = all_rows(store)
    book = book_of(rows, wanted, zone, app)
    book.now, book.new_id = clock.wall(), lambda: ids.new()[::-1]
    told = carry_out(book, wish)
    if told.kind == "refused":
        complain(f"not done: {told.why}")
        return FAILED
    known = {row.id: row for row in rows}
    for name, it in book.changed.items():
        if it is None:
            continue
        row = known.get(name, StoredAppointment(name, book.origin.scope, 0, it))
        refused = write(database, row, it)
        if refused is not None:
            return tell(refused)
        what = first_words(told.what, 200)
        say(f"{name[:SHOWN_ID]} {it.kind}: {what} {told.when}".rstrip(), id=name)
    return 0


def book_of(
    rows: list[StoredAppointment],
    wanted: WantedAppointment,
    zone: tzinfo,
    app: AppConfig | None,
) -> AppointmentBook:
    """Say where it is set, what is there already, and what is allowed."""
    address = Address(wanted.connector, wanted.chat, wanted.thread)
    person = f"{wanted.connector}/{wanted.sender}"
    scope = scopes.writing(address, person, is_direct=not wanted.is_group)
    of_agent = sum(row.it.agent == wanted.agent for row in rows)
    of_person = sum(row.it.person == person for row in rows)
    return AppointmentBook(
        origin=RequestOrigin(
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
        counts=AppointmentCounts(of_person, {wanted.agent: of_agent}),
        config=SchedulerConfig() if app is None else app.scheduler,
        now=0.0,
        new_id=str,
    )


def tell(result: RepairResult) -> int:
    """Say what was done, or why not; give the exit code."""
    (say if result.has_changed else complain)(first_words(result.text, LONGEST))
    return 0 if result.has_changed else FAILED


COST_HEADERS = ("AGENT", "TOKENS TODAY", "OF", "HEARTBEAT BY", "OTHERS BY", "QUIET")


class AppointmentCost(msgspec.Struct, frozen=True):
    """What an appointment may take, and when it rests."""

    model: str
    """By which of `[models.<name>]` it is done; empty: the settings do not say."""

    quiet: tuple[str, ...]
    """Hours in which it is not begun."""

    tokens_today: int
    """What its agent has taken today for all that is due."""

    daily_tokens: int | None
    """What it may take in a day; null: no limit."""


class AgentCosts:
    """What the agents of a company have taken today."""

    def __init__(self, rows: Inspection, app: AppConfig | None) -> None:
        self._app = app
        self._scheduler = SchedulerConfig() if app is None else app.scheduler
        self._sums: dict[str, int] = {}
        zone = find_zone(self._scheduler.time_zone)
        if zone is None:
            return
        since = midnight(SystemClock().wall(), zone)
        for row in rows.records(USAGE, since):
            body = read_record(row, UsageRecord, complain)
            if body is not None and is_allotted(body):
                tokens = body.input_tokens + body.output_tokens
                self._sums[body.agent] = self._sums.get(body.agent, 0) + tokens

    def of(self, row: StoredAppointment) -> AppointmentCost:
        """Say what one appointment may take."""
        name, kind = row.it.agent, row.it.kind
        used = self._sums.get(name, 0)
        agent = None if self._app is None else self._app.agents.get(name)
        if agent is None:
            return AppointmentCost("", (), used, None)
        hours, _ = hours_of(kind, agent.heartbeat.quiet, self._scheduler.quiet)
        model = set_model(agent, kind) or agent.model
        return AppointmentCost(model, hours, used, agent.scheduled.daily_tokens or None)

    def told(self, rows: Sequence[StoredAppointment]) -> Iterator[str]:
        """Give a table of the agents of these appointments, after an empty line."""
        names = tuple(dict.fromkeys(row.it.agent for row in rows))
        if self._app is None and not any(self._sums.get(name) for name in names):
            return
        yield ""
        yield from table(COST_HEADERS, map(self._cells, names))

    def _cells(self, name: str) -> tuple[object, ...]:
        used = f"{self._sums.get(name, 0):,}"
        agent = None if self._app is None else self._app.agents.get(name)
        if agent is None:
            return (name, used, "", "", "", "")
        limit = agent.scheduled.daily_tokens
        quiet = self._scheduler.quiet
        hours, _ = hours_of("heartbeat", agent.heartbeat.quiet, quiet)
        others = [each for each in quiet.kinds if each != "heartbeat"]
        told = [f"heartbeat {', '.join(hours)}"] if hours else []
        if quiet.hours and others:
            told.append(f"{'/'.join(others)} {', '.join(quiet.hours)}")
        rests = f"{'; '.join(told)} ({quiet.then})" if told else ""
        beat = f"{set_model(agent, 'heartbeat') or agent.model}"
        return (
            name,
            used,
            f"{limit:,}" if limit else "no limit",
            f"{beat}, {agent.heartbeat.context}",
            set_model(agent, "") or agent.model,
            rests,
        )


HEADERS = ("ID", "KIND", "AGENT", "CHAT", "NEXT", "IN", "REPEAT", "STATE", "TEXT")
RUN_HEADERS = (
    "ID", "KIND", "AGENT", "DUE", "LATE S", "ENDED", "STATUS", "TOKENS IN",
    "TOKENS OUT", "COST $", "TEXT",
)  # fmt: skip

RUNS_SHOWN = 5
"""Of its times that are over; `schedule history` shows more."""

id_argument = click.argument("prefix", metavar="ID")


@click.group()
def command() -> None:
    """Look at reminders, tasks, cron and heartbeats; pause, run or remove them.

    May be used while `callboard serve` is running: it takes changes up within
    seconds.
    """


command.add_command(add)


@command.command("list")
@database_options
@click.option("--agent", help="Only this agent's.")
@rows_options
def list_(choice: DatabaseChoice, agent: str | None, *, as_json: bool) -> None:
    """List appointments, the next one first."""
    settings = choice.settings
    with choice.database.inspect() as store:
        rows = [row for row in all_rows(store) if agent in {None, row.it.agent}]
        costs = AgentCosts(store, None if settings is None else settings.value)
    if as_json:
        say_json([{**as_dict(shown(row)), **as_dict(costs.of(row))} for row in rows])
        return
    say_rows(rows, HEADERS, cells, "Nothing is scheduled.")
    for line in costs.told(rows) if rows else ():
        say(line)


@command.command()
@database_options
@id_argument
@rows_options
def show(choice: DatabaseChoice, prefix: str, *, as_json: bool) -> None:
    """Show one appointment and its last times; of its ID the beginning is enough."""
    with choice.database.inspect() as rows:
        found = shown(find_row(rows, prefix))
        runs = read_runs(rows, found.id, RUNS_SHOWN, complain)
    if as_json:
        say_json({**as_dict(found), "runs": runs})
        return
    shown_as = {**as_dict(found), "items": ", ".join(found.items)}
    for name, text in shown_as.items():
        if text not in {None, ""}:
            say(f"{name + ':':<12}{indented(str(text), 12)}")
    if runs:
        say()
        for line in table(RUN_HEADERS, map(run_cells, runs)):
            say(line)


def cells(row: StoredAppointment) -> tuple[object, ...]:
    """Give the columns of one appointment."""
    it = row.it
    state = f"paused ({it.paused})" if it.paused else "waits"
    if it.failures and not it.paused:
        state = f"failed {it.failures} times"
    waits = max(0.0, it.wakes - SystemClock().wall())
    return (
        row.id[:SHOWN_ID],
        it.kind,
        it.agent,
        f"{it.address.connector}/{it.address.chat}",
        when(it.wakes),
        lasting(waits) if it.wakes else "",
        repeat_shown(it.repeat) or "once",
        state,
        words_of(it),
    )


@command.command()
@database_options
@click.argument("prefix", metavar="[ID]", default="")
@click.option("--agent", help="Only this agent's.")
@since_option
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=50, show_default=True
)
@rows_options
def history(
    choice: DatabaseChoice,
    prefix: str,
    agent: str | None,
    since: float,
    limit: int,
    *,
    as_json: bool,
) -> None:
    """Show what was carried out or left out, and why, the last one first.

    Of ID the beginning is enough; appointments that are over are shown, too. How long
    this is kept, `scheduler.history_days` says.
    """
    with choice.database.inspect() as rows:
        found = read_runs(rows, prefix, limit, complain, agent=agent, since=since)
    if as_json:
        for each in found:
            say_json(each, is_line=True)
    else:
        say_rows(found, RUN_HEADERS, run_cells, "Nothing was due that fits.")


def run_cells(run: SlotRun) -> tuple[object, ...]:
    """Give the columns of one slot."""
    took = bool(run.input_tokens or run.output_tokens or run.cost)
    return (
        run.appointment[:SHOWN_ID],
        run.kind,
        run.agent,
        seconds(run.due_at),
        f"{run.late:.1f}",
        seconds(run.ended_at),
        said(run),
        run.input_tokens if took else "",
        run.output_tokens if took else "",
        f"{run.cost:.4f}" if took else "",
        run.text,
    )


def said(run: SlotRun) -> str:
    """Say in a few words how it ended."""
    words = f"{run.status}:{run.reason}" if run.reason else run.status
    return f"{words} x{run.count}" if run.count > 1 else words


def seconds(moment: str | None) -> str:
    """Leave the milliseconds out of a time in ISO 8601."""
    return "" if moment is None else moment[:19] + moment[23:]


@command.command()
@database_options
@id_argument
def pause(choice: DatabaseChoice, prefix: str) -> int:
    """Let an appointment rest until it is resumed; its times pass by."""
    return tell(schedule.pause(choice.database, prefix))


@command.command()
@database_options
@id_argument
def resume(choice: DatabaseChoice, prefix: str) -> int:
    """Take up an appointment again, from its next time on."""
    return tell(schedule.resume(choice.database, prefix))


@command.command()
@database_options
@id_argument
def run(choice: DatabaseChoice, prefix: str) -> int:
    """Have an appointment carried out now, beside its times; also a paused one."""
    return tell(schedule.run_now(choice.database, prefix))


@command.command()
@database_options
@id_argument
@yes_option
def remove(choice: DatabaseChoice, prefix: str, *, yes: bool) -> int:
    """Forget an appointment."""
    row = schedule.find_in(choice.database, prefix)
    if not is_wanted(f"Remove {schedule.described(row)}?", yes=yes):
        return FAILED
    return tell(schedule.changed_to(choice.database, row, None, "is removed"))


TASK_HEADERS = ("STATUS", "WHEN", "ID", "KIND", "AGENT", "CHAT", "TEXT")


class RunningTask(msgspec.Struct, frozen=True, kw_only=True):
    """One slot that is begun, or waits for its agent; times in ISO 8601, local."""

    appointment: str
    kind: str
    agent: str
    connector: str
    chat: str
    text: str
    status: str
    """`running`, or `pending`: as in `queue list`."""

    since: str | None
    message: str
    """Its id; `queue show` tells the rest."""

    attempts: int


class TaskReport(msgspec.Struct, frozen=True):
    """All there is; the next one first, of what is over the last one."""

    running: list[RunningTask]
    """What is due and begun, or waits for its agent."""

    to_do: list[ShownAppointment]
    done: list[SlotRun]
    """What was carried out, and what was left out with a reason."""


@click.command()
@database_options
@click.option("--agent", help="Only this agent's.")
@since_option
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000_000),
    default=20,
    show_default=True,
    help="Most of what is over.",
)
@rows_options
def tasks_command(
    choice: DatabaseChoice,
    agent: str | None,
    since: float,
    limit: int,
    *,
    as_json: bool,
) -> None:
    """Show what agents do of themselves: running, to be done, done.

    That is reminders, tasks, cron and heartbeats; messages of people are shown by
    `callboard queue list`. With --since only what was begun from then on is shown of
    what is over.
    """
    with choice.database.inspect() as rows:
        runs = SlotRunReader(rows, complain).runs("", agent, since)
        over = (each for each in runs if not is_open(each.status))
        found = TaskReport(
            running=list(running(rows, agent)),
            to_do=[
                shown(row) for row in all_rows(rows) if agent in {None, row.it.agent}
            ],
            done=list(itertools.islice(over, limit)),
        )
    if as_json:
        say_json(found)
    else:
        none = "There is nothing to do, and nothing was done."
        say_rows(list(task_cells(found)), TASK_HEADERS, tuple, none)


def running(rows: Inspection, agent: str | None) -> Iterator[RunningTask]:
    """Give slots whose messages are not settled, the longest waiting first."""
    states: list[InboxState] = ["running", "accepted"]
    for row in rows.messages(states, newest_first=False, limit=MAX_ROWS):
        inbound = decoded(row, Inbound)
        if inbound is not None and inbound.occasion and agent in {None, inbound.agent}:
            yield RunningTask(
                appointment=inbound.platform_id.partition("@")[0],
                kind="reminder" if inbound.occasion == "said" else inbound.occasion,
                agent=inbound.agent,
                connector=row.connector,
                chat=inbound.address.chat,
                text=inbound.text,
                status=STATUSES[row.state],
                since=moment(row.started_at or row.at),
                message=row.id,
                attempts=row.attempts,
            )


def task_cells(found: TaskReport) -> Iterator[tuple[object, ...]]:
    """Give what the table says."""
    for now in found.running:
        chat = f"{now.connector}/{now.chat}"
        name = now.appointment[:SHOWN_ID]
        since, text = seconds(now.since), now.text
        yield (now.status, since, name, now.kind, now.agent, chat, text)
    for it in found.to_do:
        status = f"paused:{it.paused}" if it.paused else "to do"
        chat = f"{it.connector}/{it.chat}"
        what = it.text or "; ".join(it.items)
        due = seconds(it.next_at)
        yield (status, due, it.id[:SHOWN_ID], it.kind, it.agent, chat, what)
    for run in found.done:
        chat = f"{run.connector}/{run.chat}"
        ended = seconds(run.ended_at)
        name = run.appointment[:SHOWN_ID]
        yield (said(run), ended, name, run.kind, run.agent, chat, run.text)
