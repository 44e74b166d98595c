"""Messages to `staff`, which knows all agents, and its messages to others."""

from __future__ import annotations

import msgspec

from actors.agents.hiring import Requester
from actors.agents.persona import Persona
from actors.agents.roster import ConfiguredStaff
from actors.protocol import Route
from actors.rules.groups.routes import RoutingTable
from actors.rules.markers.actions import Staffing


class Conduct(msgspec.Struct, frozen=True):
    """To `staff`, asked: decide these requests; answered by `staff_rows.Conducted`."""

    wishes: tuple[Staffing, ...]
    maker: Requester


class Hired(msgspec.Struct, frozen=True):
    """To `staff`: a decision is stored. Send these messages once it is in force."""

    routes: tuple[Route, ...] = ()
    """What the answer hands on, maybe to agents that are new."""


class ReadStaff(msgspec.Struct, frozen=True):
    """To `staff`: another program has changed the store; read all rows again."""


class ReplaceConfiguredStaff(msgspec.Struct, frozen=True):
    """To `staff`, asked: use these settings; answered True once in force."""

    settled: ConfiguredStaff


class ListStaff(msgspec.Struct, frozen=True):
    """To `staff`, asked: list the agents; answered by a `StaffList`."""


class StaffList(msgspec.Struct, frozen=True):
    """All agents that people may speak to, with their descriptions."""

    agents: dict[str, str]
    shown: dict[str, str] = {}
    """What people call each of them."""


class PersonaReplaced(msgspec.Struct, frozen=True):
    """To the sessions of an agent: use this persona from the next turn on."""

    persona: Persona


class ReplaceTable(msgspec.Struct, frozen=True):
    """To the router: use this routing table from now on."""

    table: RoutingTable
    finishing: tuple[str, ...] = ()
    """Agents that are not in it, and end what they have begun."""
