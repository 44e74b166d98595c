"""What the tree of actors is made from: personas, transports, routes, services."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from actors.catalogue import Catalogue
from actors.roster import Hiring, Roster, Settled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.notifying import Receiver
    from actors.persona import Persona
    from actors.rules.routes import RoutingTable
    from actors.services import Services
    from actors.transport import Transport
    from runtime.child import ChildSpec


@dataclass(frozen=True)
class Company:
    """What the tree is made from."""

    personas: tuple[Persona, ...]
    """Agents that the settings have at first."""

    transports: Mapping[str, Transport]
    """By the name of the connector account, those that run now: whoever takes changed
    settings over puts one in another's place."""

    routes: RoutingTable
    services: Services
    catalogue: Callable[[], Catalogue] = Catalogue
    """Gives the models, and the accounts they are to be had on, as the settings have
    them now; asked whenever the accounts' actor starts."""

    edges: tuple[ChildSpec, ...] = ()
    """Actors of the edges that must run before connectors do."""

    hooks: tuple[ChildSpec, ...] = ()
    """One branch for each hook, under its name; each has an actor called `hook`."""

    hiring: Hiring = field(default_factory=Hiring)
    """What agents are made from that conductors make."""

    receivers: tuple[Receiver, ...] = ()
    """Other programs that are told what happens."""

    roster: Roster = field(init=False)
    """Who works here now; at first, and until rows are read, the settings' agents."""

    on_listener_end: Callable[[str], object] = str
    """Called with a connector's name when its platform has ended for good."""

    def __post_init__(self) -> None:
        """Begin with the agents of the settings."""
        settled = Settled(self.personas, self.routes, self.hiring)
        object.__setattr__(self, "roster", Roster(settled))
