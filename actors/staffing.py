"""What is said to `staff`, who knows all agents, and what it says to others."""

from __future__ import annotations

import msgspec

from actors.persona import Persona
from actors.protocol import Route
from actors.roster import Settled
from actors.rules.actions import Staffing
from actors.rules.hiring import Maker
from actors.rules.routes import RoutingTable


class Conduct(msgspec.Struct, frozen=True):
    """To `staff`, asked: what becomes of these wishes? See `staff_rows.Conducted`."""

    wishes: tuple[Staffing, ...]
    maker: Maker


class Hired(msgspec.Struct, frozen=True):
    """To `staff`: what it said is stored. Once it is in force, send these."""

    routes: tuple[Route, ...] = ()
    """What the answer hands on, maybe to agents that are new."""


class ReadStaff(msgspec.Struct, frozen=True):
    """To `staff`: another program has changed the store; read all rows again."""


class Resettle(msgspec.Struct, frozen=True):
    """To `staff`, asked: the settings say this now. True: it is in force."""

    settled: Settled


class ListStaff(msgspec.Struct, frozen=True):
    """To `staff`, asked: who is here? See `StaffList`."""


class StaffList(msgspec.Struct, frozen=True):
    """All agents that people may speak to, with what to come to each for."""

    agents: dict[str, str]


class Renewed(msgspec.Struct, frozen=True):
    """To the sessions of an agent: it is like this from the next turn on."""

    persona: Persona


class ReplaceTable(msgspec.Struct, frozen=True):
    """To the router: route by this from now on."""

    table: RoutingTable
    finishing: tuple[str, ...] = ()
    """Agents that are not in it, and end what they have begun."""
