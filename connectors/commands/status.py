"""`callboard status`: how the company is doing, on one screen, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import click
import msgspec

from connectors.admin.display import lasting, make_safe
from connectors.admin.probes import Ready
from connectors.admin.queue import read_waiting
from connectors.admin.schedule import all_rows
from connectors.admin.settings import NotNotedError, read_applied
from connectors.admin.usage import BudgetStatus, budget_statuses, sum_up, zone_of
from connectors.commands.common.database import DatabaseChoice, database_options
from connectors.commands.common.output import (
    complain,
    counted,
    json_option,
    say,
    say_json,
)
from connectors.commands.tree import ask, find_door
from connectors.config.app import AppConfig
from runtime import __version__
from runtime.clock import SystemClock
from runtime.store.database import Inspection

NEEDS_YOU = 1
"""Exit code if there is something to do."""

LITTLE_LEFT = 0.1
"""Part of a budget's dollars that is told as little."""

LONG_WAIT = 600.0
"""Seconds for which nothing should wait; a turn that failed is begun anew before."""


class CompanyStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a company is doing."""

    release: str
    database: str
    process: int | None = None
    """Id of the process that serves; null: none does, or it is not known."""

    since: float = 0.0
    """Unix seconds at which it took over its settings; 0: none serves."""

    ready: bool | None = None
    """Whether messages can be answered; null: nobody could be asked."""

    messages_waiting: int = 0
    messages_failed: int = 0
    oldest_message_seconds: float = 0.0
    deliveries_waiting: int = 0
    deliveries_failed: int = 0
    oldest_delivery_seconds: float = 0.0
    appointments: int = 0
    appointments_resting: int = 0
    """Of them, those that are paused."""

    turns_today: int = 0
    tokens_today: int = 0
    dollars_today: float = 0.0
    budgets: tuple[BudgetStatus, ...] = ()
    to_do: tuple[str, ...] = ()
    """What needs somebody, most urgent first."""


@click.command()
@database_options
@json_option
def command(choice: DatabaseChoice, *, as_json: bool) -> int:
    """Say on one screen how the company is doing, and what to do.

    Reads the database, also a copy (--db), and asks the running company whether it is
    ready. Needs no secrets but the key of [admin], if it has one. Exit code 1 if
    something needs you.
    """
    found = look(choice)
    if as_json:
        say_json(found)
    else:
        for line in lines(found):
            say(line)
    return NEEDS_YOU if found.to_do else 0


def look(choice: DatabaseChoice) -> CompanyStatus:
    """Look at everything."""
    settings = None if choice.settings is None else choice.settings.value
    path = choice.path
    found = CompanyStatus(release=__version__, database=choice.database.name)
    to_do: list[str] = []
    if settings is not None:
        found = with_process(found, settings, path, to_do)
    with choice.database.inspect() as rows:
        found = with_rows(found, rows, to_do)
        if settings is not None:
            found = with_spending(found, rows, settings, to_do)
    return msgspec.structs.replace(found, to_do=tuple(to_do))


def with_process(
    found: CompanyStatus, app: AppConfig, database: Path, to_do: list[str]
) -> CompanyStatus:
    """Add how the process is doing that serves."""
    try:
        running = read_applied(database)
    except (NotNotedError, OSError) as error:
        to_do.append(f"it runs, but does not say by what: {error}")
        return found
    if running is None:
        to_do.append("nobody serves: callboard serve")
        return found
    if running.mistake:
        to_do.append(f"mend the settings, which are not in use: {running.mistake}")
    if running.waiting:
        names = ", ".join(running.waiting)
        to_do.append(f"restart it, to take over {names}: callboard config diff")
    found = msgspec.structs.replace(found, process=running.process, since=running.at)
    try:
        answer = ask(find_door(app, running=running), "/readyz", {})
        ready = msgspec.json.decode(answer.content, type=Ready)
    except click.ClickException as error:
        to_do.append(f"nobody knows whether it is ready: {error.message}")
        return found
    except msgspec.MsgspecError:
        to_do.append("another program answers at the address of [admin]")
        return found
    to_do.extend(f"not ready: {make_safe(reason)}" for reason in ready.reasons)
    return msgspec.structs.replace(found, ready=ready.ready)


def with_rows(
    found: CompanyStatus, rows: Inspection, to_do: list[str]
) -> CompanyStatus:
    """Add what waits and what failed."""
    waiting, oldest = read_waiting(rows), rows.oldest_open()
    appointments = all_rows(rows)
    now = SystemClock().wall()
    age = [
        max(0.0, now - at) if at else 0.0 for at in (oldest.message, oldest.delivery)
    ]
    failed = waiting.inbox.get("dead", 0), waiting.outbox.get("dead", 0)
    resting = sum(bool(each.it.paused) for each in appointments)
    if failed[0]:
        to_do.append(f"{counted(failed[0], 'message')} failed: callboard queue list")
    if failed[1]:
        what = counted(failed[1], "delivery")
        to_do.append(f"{what} given up: callboard queue list --unsent")
    if max(age) > LONG_WAIT:
        to_do.append(f"something waits for {lasting(max(age))}: callboard queue list")
    if resting:
        what = counted(resting, "appointment")
        to_do.append(f"{what} paused: callboard schedule list")
    return msgspec.structs.replace(
        found,
        messages_waiting=waiting.open,
        messages_failed=failed[0],
        oldest_message_seconds=round(age[0], 1),
        deliveries_waiting=waiting.unsaid,
        deliveries_failed=failed[1],
        oldest_delivery_seconds=round(age[1], 1),
        appointments=len(appointments),
        appointments_resting=resting,
    )


def with_spending(
    found: CompanyStatus, rows: Inspection, app: AppConfig, to_do: list[str]
) -> CompanyStatus:
    """Add what was spent today, and what is left of budgets."""
    now = SystemClock().wall()
    today = datetime.fromtimestamp(now, zone_of(app))
    began = today.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    spent = sum_up(rows, "day", began, complain)[-1]
    budgets = budget_statuses(rows, app, now, complain)
    for each in budgets:
        whole = each.spent_usd + (each.left_usd or 0.0)
        if each.left_usd is not None and each.left_usd <= LITTLE_LEFT * whole:
            left = f"{each.left_usd:.2f} of {whole:.2f} $"
            what = f"budget of {make_safe(each.who)} for a {each.period}"
            to_do.append(f"{left} left in the {what}: callboard usage --budgets")
    return msgspec.structs.replace(
        found,
        turns_today=spent.runs,
        tokens_today=spent.input_tokens + spent.output_tokens,
        dollars_today=round(spent.cost, 6),
        budgets=tuple(budgets),
    )


def lines(it: CompanyStatus) -> Iterator[str]:
    """Write it for people."""
    readiness = {True: "yes", False: "NO", None: "not known"}[it.ready]
    runs = "nobody serves"
    if it.process is not None:
        since = lasting(SystemClock().wall() - it.since)
        runs = f"process {it.process}, settings in use for {since}"
    yield f"callboard {it.release}: {runs}"
    yield f"database   {it.database}"
    if it.process is not None:
        yield f"ready      {readiness}"
    waits = told(it.messages_waiting, "message", it.oldest_message_seconds)
    unsent = told(it.deliveries_waiting, "delivery", it.oldest_delivery_seconds)
    yield f"waiting    {waits}, {unsent}"
    failed = counted(it.messages_failed, "message")
    yield f"failed     {failed}, {counted(it.deliveries_failed, 'delivery')}"
    resting = f", {it.appointments_resting} paused" if it.appointments_resting else ""
    yield f"schedule   {counted(it.appointments, 'appointment')}{resting}"
    spent = f"{it.tokens_today:,} tokens, {it.dollars_today:.2f} $"
    yield f"today      {counted(it.turns_today, 'turn')}, {spent}"
    if it.budgets:
        shown = [each for each in it.budgets if each.left_usd is not None]
        least = min(shown, key=lambda each: each.left_usd or 0.0, default=None)
        if least is not None:
            left = f"{least.left_usd:.2f} $ left for {make_safe(least.who)}"
            yield f"budgets    {len(it.budgets)}; the least: {left}"
    yield "" if it.to_do else "all is well"
    for each in it.to_do:
        yield f"to do      {make_safe(each)}"


def told(count: int, noun: str, age: float) -> str:
    """Count what waits, and say for how long."""
    return counted(count, noun) + (f" (oldest {lasting(age)})" if count else "")
