"""The persona that a scheduled turn uses: a cheaper model and a shorter prompt.

A heartbeat comes dozens of times a day and mostly finds nothing, so its prompt costs
more than its answers.
"""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from actors.agents.persona import Persona
from actors.config.agents import AgentConfig
from actors.config.routes import RoutingConfig
from actors.messages.inbound import BY_ITSELF, Inbound
from actors.rules.prompt.brief import PersonaFiles
from actors.schedule.occasions import PARTS

LEFT_OUT = (
    "logs",
    "skills",
    "project",
    "profile",
    "lessons",
    "outcomes",
    "tasks",
    "states",
    "summaries",
    "overheard",
    "facts",
)
"""Layers of a prompt that a light prompt leaves out."""

LEFT_OUT_FILES = ("motivations", "goals", "agents", "legacy")
"""Files of a persona that a light prompt leaves out; identity and style stay."""


def is_light(persona: Persona, inbound: Inbound) -> bool:
    """Whether the prompt has only the persona and the heartbeat's checklist."""
    is_beat = inbound.occasion == "heartbeat"
    return is_beat and persona.config.heartbeat.context == "light"


def set_model(config: AgentConfig, kind: str, *, is_part: bool = False) -> str:
    """Give the model of a kind of scheduled turn; empty: the agent's own.

    Args:
        is_part: whether it is one group of a long checklist: worth the strong model.
    """
    if kind == "autonomous":
        # The planner: most of these turns end with its decision.
        return config.autonomous.planner or config.routing.cheap
    own = config.heartbeat.model if kind == "heartbeat" else ""
    strong = config.routing.strong if is_part else ""
    return own or strong or config.scheduled.model


def scheduled_persona(persona: Persona, inbound: Inbound) -> Persona:
    """Give the persona for a scheduled turn; for people's messages it is unchanged."""
    if not inbound.occasion or inbound.occasion in BY_ITSELF:
        return persona  # autonomous turns have models of their own
    config = persona.config
    model = set_model(config, inbound.occasion, is_part=inbound.lane in PARTS)
    if model:  # no routing by the words of the prompt
        config = structs.replace(config, model=model, routing=RoutingConfig())
    if not is_light(persona, inbound):
        return replace(persona, config=config)
    budgets = structs.replace(config.context.budgets, **dict.fromkeys(LEFT_OUT, 0))
    context = structs.replace(config.context, budgets=budgets)
    # Why no routing: the classification would cost as much as the heartbeat.
    config = structs.replace(
        config, context=context, routing=RoutingConfig(), skills=()
    )
    return replace(persona, config=config, skills=(), files=light_files(persona.files))


def light_files(files: PersonaFiles) -> PersonaFiles:
    """Leave out the files that a light prompt does not have."""
    return structs.replace(files, **dict.fromkeys(LEFT_OUT_FILES, ""))
