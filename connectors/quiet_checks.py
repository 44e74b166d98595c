"""What must fit together in what agents do by the clock; asked by `settings.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.rules import quiet_hours
from actors.rules.quiet_hours import NEVER
from connectors.config import HttpConfig
from connectors.model_checks import check_zone, unknown
from runtime.config import Complaint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.config import AgentConfig
    from connectors.config import AppConfig
    from connectors.model_checks import Way


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
        yield Complaint(way, "names no chat", "write connector/chat")
    elif isinstance(app.connectors.get(connector), HttpConfig):
        text = "nobody can be told anything over HTTP without having asked"
        yield Complaint(way, text, "name a chat that people look at")
    else:
        yield from unknown(way, "connector", connector, app.connectors)
