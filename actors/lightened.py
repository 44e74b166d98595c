"""An agent as it is while it does what is due by the clock: with less, and for less.

A heartbeat comes dozens of times a day and mostly finds nothing, so what it is told
matters more than what it says (F294).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from actors.config import RoutingConfig
from actors.messages import BY_ITSELF

if TYPE_CHECKING:
    from actors.config import AgentConfig
    from actors.messages import Inbound
    from actors.persona import Persona
    from actors.rules.briefing import PersonaFiles

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
"""Layers of a prompt that a light one has not."""

LEFT_OUT_FILES = ("motivations", "goals", "agents", "legacy")
"""Files of a persona likewise: who it is and how it speaks are left."""


def is_light(persona: Persona, inbound: Inbound) -> bool:
    """Whether an agent is told nothing but who it is and what to look after."""
    is_beat = inbound.occasion == "heartbeat"
    return is_beat and persona.config.heartbeat.context == "light"


def set_model(config: AgentConfig, kind: str) -> str:
    """Say by which model an agent does what is due; empty: by the one it has."""
    if kind == "autonomous":
        # With whose decision it mostly ends.
        return config.autonomous.planner or config.routing.cheap
    own = config.heartbeat.model if kind == "heartbeat" else ""
    return own or config.scheduled.model


def lightened(persona: Persona, inbound: Inbound) -> Persona:
    """Give an agent as the settings want it for what is due; for people, as it is."""
    if not inbound.occasion or inbound.occasion in BY_ITSELF:
        return persona  # what it does by itself has models of its own
    config = persona.config
    model = set_model(config, inbound.occasion)
    if model:  # it is this one, whatever the words
        config = structs.replace(config, model=model, routing=RoutingConfig())
    if not is_light(persona, inbound):
        return replace(persona, config=config)
    budgets = structs.replace(config.context.budgets, **dict.fromkeys(LEFT_OUT, 0))
    context = structs.replace(config.context, budgets=budgets)
    # Why no routing: to ask first whether it needs steps costs as much as the beat.
    config = structs.replace(
        config, context=context, routing=RoutingConfig(), skills=()
    )
    return replace(persona, config=config, skills=(), files=without(persona.files))


def without(files: PersonaFiles) -> PersonaFiles:
    """Leave out what a light prompt has not."""
    return structs.replace(files, **dict.fromkeys(LEFT_OUT_FILES, ""))
