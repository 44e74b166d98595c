"""Checks quiet hours, heartbeats and autonomous agents, and makes their appointments.

The scheduler stores the appointments when it starts (`actors/schedule/scheduler.py`).
A heartbeat's checklist is read from the file in its agent's folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import trio

from actors.config.agents import AgentConfig
from actors.errors import ToolError
from actors.messages.inbound import Address
from actors.schedule import quiet_hours
from actors.schedule.appointments import Appointment, name_of
from actors.schedule.quiet_hours import NEVER
from actors.schedule.recurrence import (
    RecurrenceRule,
    UnclearTime,
    parse_repeat,
    too_often,
)
from connectors.config.app import AppConfig, HttpConfig
from connectors.config.checks import Way, check_zone, find_zone, slash_hint, unknown
from runtime.config.loader import Complaint


def check_quiet(app: AppConfig) -> Iterator[Complaint]:
    """Check quiet hours, heartbeats, and which models do what is due."""
    scheduler = app.scheduler
    way: Way = ("scheduler",)
    yield from check_zone((*way, "time_zone"), scheduler.time_zone)
    yield from check_hours((*way, "quiet", "hours"), scheduler.quiet.hours)
    if scheduler.quiet.time_zone:
        yield from check_zone((*way, "quiet", "time_zone"), scheduler.quiet.time_zone)
    yield from check_chat((*way, "report_to"), scheduler.report_to, app)
    for name, agent in app.agents.items():
        yield from check_beat(("agents", name), agent, app)


def check_beat(way: Way, agent: AgentConfig, app: AppConfig) -> Iterator[Complaint]:
    """Check what one agent does by the clock."""
    beat = agent.heartbeat
    models = {"scheduled": agent.scheduled.model, "heartbeat": beat.model}
    for table, model in models.items():
        if model:
            yield from unknown((*way, table, "model"), "model", model, app.models)
    if NEVER in beat.quiet and len(beat.quiet) > 1:
        text = f"{NEVER!r} stands beside hours"
        yield Complaint((*way, "heartbeat", "quiet"), text, "take one of the two out")
    yield from check_hours((*way, "heartbeat", "quiet"), beat.quiet)
    yield from check_chat((*way, "heartbeat", "chat"), beat.chat, app)
    if not beat.chat:
        return
    place = (*way, "heartbeat", "file")
    if agent.persona is None:
        text = "there is no folder for this file: the list is what people ask for"
        hint = "give the agent a persona, with the file in its folder"
        yield Complaint(place, text, hint, is_warning=True)
    elif not (agent.persona / beat.file).is_file():
        text = f"there is no file {agent.persona / beat.file}"
        hint = "until there is one, the list is what people ask for"
        yield Complaint(place, text, hint, is_warning=True)


def check_hours(way: Way, hours: tuple[str, ...]) -> Iterator[Complaint]:
    """Check that hours make sense, and leave some."""
    for index, text in enumerate(hours):
        if text != NEVER and quiet_hours.parse(text) is None:
            hint = 'for example "22:00-07:00" or "sat-sun 00:00-24:00"'
            yield Complaint((*way, index), f"{text!r} are no hours of a day", hint)
    if quiet_hours.is_always(quiet_hours.read(hours)):
        text = "no minute of the week is left"
        yield Complaint(way, text, "leave some hours out, or set is_on = false")


def check_chat(way: Way, place: str, app: AppConfig) -> Iterator[Complaint]:
    """Check that somebody can be told something in a chat."""
    if not place:
        return
    connector, _, chat = place.partition("/")
    if not chat:
        hint = slash_hint(place, app.connectors, "write connector/chat")
        yield Complaint(way, "names no chat", hint)
    elif isinstance(app.connectors.get(connector), HttpConfig):
        text = "nobody can be told anything over HTTP without having asked"
        yield Complaint(way, text, "name a chat that people look at")
    else:
        yield from unknown(way, "connector", connector, app.connectors)


# Chosen: as a persona's files; a list that is read at each beat costs at each beat.
MOST_BYTES = 65_536


async def read_checklist(file: Path) -> str:
    """Give the text of a file as it is now, in a thread; empty if there is none.

    Raises:
        ToolError: it cannot be read, is too long or no UTF-8 text; says which file.
    """
    return await trio.to_thread.run_sync(_read, file)


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ToolError(f"{file} cannot be read: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise ToolError(f"{file} is longer than {MOST_BYTES:,} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ToolError(f"{file} is not UTF-8 text; save it as UTF-8") from error


def standing_of(app: AppConfig) -> dict[str, Appointment]:
    """Give what agents do by themselves, by id; settings that were checked."""
    return {
        name_of("autonomous", name): autonomous_of(name, agent, app)
        for name, agent in app.agents.items()
        if agent.autonomous.repeat
    }


def autonomous_of(name: str, agent: AgentConfig, app: AppConfig) -> Appointment:
    """Give an agent's own runs, without times."""
    own = agent.autonomous
    connector, _, chat = own.report_to.partition("/")
    sender = own.on_behalf_of or ("" if own.in_group else chat)
    repeat = parse_repeat(own.repeat)
    tag = type(app.connectors[connector]).__struct_config__.tag
    return Appointment(
        kind="autonomous",
        agent=name,
        address=Address(connector, chat, own.thread),
        is_direct=not own.in_group,
        platform=str(tag),
        sender_id=sender,
        text=own.goal,
        repeat=repeat if isinstance(repeat, str) else "",
        zone=agent.context.time_zone,
        anchor=0.0,
        tokens=own.run_tokens,
    )


def check_autonomous(
    way: Way, agent: AgentConfig, app: AppConfig
) -> Iterator[Complaint]:
    """Check what an agent does by itself."""
    own = agent.autonomous
    for field in ("planner", "executor"):
        if model := getattr(own, field):
            yield from unknown((*way, field), "model", model, app.models)
    if not own.repeat:
        if own.report_to:
            text = "is never used: the agent does nothing by itself"
            yield Complaint(
                (*way, "report_to"), text, 'set repeat = "every 6h"', is_warning=True
            )
        return
    yield from check_repeat((*way, "repeat"), agent, app)
    connector, _, chat = own.report_to.partition("/")
    place: Way = (*way, "report_to")
    if not chat:
        text = "names no chat that is told what was done"
        hint = slash_hint(own.report_to, app.connectors, "write connector/chat")
        yield Complaint(place, text, hint)
    elif isinstance(app.connectors.get(connector), HttpConfig):
        text = "nobody can be told over HTTP without having asked"
        yield Complaint(place, text, "name a chat that people look at")
    else:
        yield from unknown(place, "connector", connector, app.connectors)


def check_repeat(way: Way, agent: AgentConfig, app: AppConfig) -> Iterator[Complaint]:
    """Check when it is due."""
    repeat = parse_repeat(agent.autonomous.repeat)
    if isinstance(repeat, UnclearTime):
        yield Complaint(way, repeat.why, 'for example "every 6h" or "0 9 * * 1-5"')
        return
    if not repeat:
        text = f"{agent.autonomous.repeat!r} is once, and not again and again"
        yield Complaint(way, text, 'for example "every 6h"; leave it out for never')
        return
    zone = find_zone(agent.context.time_zone)
    shortest = app.scheduler.shortest_period
    if zone is not None and too_often(RecurrenceRule(repeat, 0.0, zone), 0.0, shortest):
        text = f"comes more often than every {shortest:g} seconds"
        yield Complaint(way, text, "see scheduler.shortest_period")
