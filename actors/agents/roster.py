"""All agents: those of the settings, and those made since.

A `Team` never changes; another takes its place. The roster itself is written by `staff`
alone, and read by whatever starts anew: a branch of the tree, a turn, a conversation
that wakes, the router. Who is up already is told by messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from msgspec import structs

from actors.agents import hired
from actors.agents.hired import HiredAgent, HiringTerms
from actors.agents.persona import Persona
from actors.rules.groups.routes import (
    GroupBehaviour,
    RoutingTable,
    group_of,
    with_groups,
)
from actors.rules.text.similarity import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.agents.rows import StaffRows
    from actors.config.agents import AgentConfig

CONDUCTING = """\
You lead these agents, and may make others, and change those that were made:
[CREATE_AGENT]
name: short-name
description: one line for the others
prompt: what it is told about itself
[/CREATE_AGENT]
[UPDATE_AGENT:short-name] with the lines that change [/UPDATE_AGENT]
Further lines may be: model (one of: {models}), tools (of: {tools}; none unless you say
so) and delegates, with commas between the names. Somebody whom you all work for is kept
with [CREATE_CLIENT]: name, email, phone, notes. Do none of this unless a person asks
for it. Made until now: {made}."""
"""What a conductor is told of its tags."""


@dataclass(frozen=True)
class HiringParts:
    """What agents are made from."""

    terms: HiringTerms = field(default_factory=HiringTerms)
    make: Callable[[str, AgentConfig], Persona] = Persona
    """Looks up what settings name: tools, the time zone."""


@dataclass(frozen=True)
class ConfiguredStaff:
    """The agents of the settings."""

    personas: tuple[Persona, ...]
    routes: RoutingTable
    hiring: HiringParts = field(default_factory=HiringParts)
    """What agents are made from that conductors make."""


@dataclass(frozen=True)
class Team:
    """All agents at one moment."""

    personas: Mapping[str, Persona]
    """Also of those that only finish what they have begun."""

    table: RoutingTable
    """Names those that people can speak to."""

    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """Agents that were made and cannot run, with the reason."""

    @property
    def names(self) -> tuple[str, ...]:
        """Name those that people can speak to."""
        return tuple(self.table.agents.values())

    @property
    def leaving(self) -> frozenset[str]:
        """Name those that only finish what they have begun."""
        return frozenset(self.personas).difference(self.names)


def make_team(
    settled: ConfiguredStaff, rows: StaffRows, before: Mapping[str, Persona]
) -> Team:
    """Put together who works here.

    Args:
        before: personas until now: who has left still has to finish.
    """
    routes, hiring = settled.routes, settled.hiring
    own = {persona.name: persona for persona in settled.personas}
    here = {name: each for name, each in own.items() if name not in rows.at_rest}
    active = {
        name: stored.agent
        for name, stored in rows.agents.items()
        if stored.agent.is_active and name not in own
    }
    known = {*here, *active}
    left_out = dict.fromkeys(own.keys() & rows.agents.keys(), "the settings have one")
    made: dict[str, Persona] = {}
    for name, agent in active.items():
        config = hired.settings_of(agent, hiring.terms, known)
        if config is None:
            left_out[name] = f"there is no model {agent.model!r} that it may have"
        else:
            made[name] = hiring.make(name, config)
    present = apart(here | made)
    table = RoutingTable(
        agents={name.casefold(): name for name in present},
        bindings=tuple(x for x in routes.bindings if x.binding.agent in present),
        default_agent=routes.default_agent if routes.default_agent in present else "",
    )
    table = with_groups(table, groups_of(present))
    about = {name: each.config.description for name, each in present.items()}
    agents = {name: rows.agents[name].agent for name in made}
    personas = {
        name: introduced(each, about, agents, hiring.terms)
        for name, each in present.items()
    }
    return Team({**before, **acquainted(personas, table)}, table, left_out)


def groups_of(personas: Mapping[str, Persona]) -> dict[str, GroupBehaviour]:
    """Say how each agent behaves in groups."""
    return {
        name: group_of(each.config.groups, each.config.description, name, each.shown)
        for name, each in personas.items()
    }


def apart(personas: Mapping[str, Persona]) -> dict[str, Persona]:
    """Leave out each display name by which somebody else is called already.

    Why: conductors give display names, too, and none may pass for another agent.
    """
    taken = {*hired.RESERVED, *map(str.casefold, personas)}
    found: dict[str, Persona] = {}
    for name, persona in personas.items():
        shown = fold(persona.shown)
        if shown in taken and shown != name.casefold():
            config = structs.replace(persona.config, display_name="")
            persona = replace(persona, config=config)  # noqa: PLW2901
        taken.add(shown)
        found[name] = persona
    return found


def acquainted(
    personas: Mapping[str, Persona], table: RoutingTable
) -> dict[str, Persona]:
    """Tell all who is here, what they are called, and who is silent in groups.

    They share all three: of thousands, each with a copy, there would be millions of
    names.
    """
    everybody = tuple(personas)
    silent = frozenset(
        name
        for name, each in personas.items()
        if each.config.groups.activation == "never"
    )
    return {
        name: replace(each, everybody=everybody, silent=silent, called=table.called)
        for name, each in personas.items()
    }


def introduced(
    persona: Persona,
    about: Mapping[str, str],
    made: Mapping[str, HiredAgent],
    terms: HiringTerms,
) -> Persona:
    """Tell an agent who the others are.

    Args:
        about: all agents, with what to come to each for.
        made: those of them that conductors made: any conductor may hand them work.
        terms: what they may have.
    """
    leads = persona.config.is_conductor and persona.name not in made
    others = (*persona.config.delegates, *(made if leads else ()))
    colleagues = {x: about[x] for x in others if x in about and x != persona.name}
    conducting = ""
    if leads and terms.hiring.who != "nobody":
        conducting = CONDUCTING.format(
            models=", ".join(terms.models_for(persona.name)) or "none",
            tools=", ".join(terms.granted) or "none",
            made=", ".join(made) or "nobody yet",
        )
    return replace(
        persona,
        colleagues=colleagues,
        conducting=conducting,
    )


class Roster:
    """The present team."""

    def __init__(self, settled: ConfiguredStaff) -> None:
        self.settled = settled
        """Replaced by `staff` alone, when the settings have changed."""

        personas = {each.name: each for each in settled.personas}
        table = with_groups(settled.routes, groups_of(personas))
        self.team = Team(acquainted(personas, table), table)
        """Replaced by `staff` alone."""

    def persona(self, name: str) -> Persona:
        """Give an agent as it is now; one that has left as it was."""
        return self.team.personas[name]


def is_alike(one: Persona, other: Persona) -> bool:
    """Whether two personas are the same but for objects that were looked up anew."""
    return (
        one.config == other.config
        and one.everybody == other.everybody
        and one.silent == other.silent
        and one.called == other.called
        and dict(one.colleagues) == dict(other.colleagues)
        and one.conducting == other.conducting
        and one.program_seconds == other.program_seconds
    )
