"""What the settings want done again and again, as appointments, and what is amiss.

The scheduler stores them when it starts (`actors/standing.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.messages import Address
from actors.rules.moments import Unclear
from actors.rules.recurrence import Rule, parse_repeat, too_often
from actors.rules.schedule import Appointment
from actors.rules.standing import name_of
from connectors.config import HttpConfig
from connectors.model_checks import find_zone, unknown
from runtime.config import Complaint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.config import AgentConfig
    from connectors.config import AppConfig
    from connectors.model_checks import Way


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
        yield Complaint(place, text, "write connector/chat")
    elif isinstance(app.connectors.get(connector), HttpConfig):
        text = "nobody can be told over HTTP without having asked"
        yield Complaint(place, text, "name a chat that people look at")
    else:
        yield from unknown(place, "connector", connector, app.connectors)


def check_repeat(way: Way, agent: AgentConfig, app: AppConfig) -> Iterator[Complaint]:
    """Check when it is due."""
    repeat = parse_repeat(agent.autonomous.repeat)
    if isinstance(repeat, Unclear):
        yield Complaint(way, repeat.why, 'for example "every 6h" or "0 9 * * 1-5"')
        return
    if not repeat:
        text = f"{agent.autonomous.repeat!r} is once, and not again and again"
        yield Complaint(way, text, 'for example "every 6h"; leave it out for never')
        return
    zone = find_zone(agent.context.time_zone)
    shortest = app.scheduler.shortest_period
    if zone is not None and too_often(Rule(repeat, 0.0, zone), 0.0, shortest):
        text = f"comes more often than every {shortest:g} seconds"
        yield Complaint(way, text, "see scheduler.shortest_period")
