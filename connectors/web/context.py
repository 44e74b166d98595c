"""The company, as the ElizaOS channel reads and changes it; on the kernel's side.

Settings may change at any time: ask again for each request, keep nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.agents.roster import Roster
    from actors.ports import Speaker, Transcriber
    from actors.services import Services
    from runtime.actor.ref import ActorRef


class Voice(Protocol):
    """The models that transcribe recordings and speak texts, as the settings say."""

    @property
    def transcriber(self) -> Transcriber | None:
        """Transcribes recordings; None: not set."""
        ...

    @property
    def speaker(self) -> Speaker | None:
        """Speaks texts; None: not set."""
        ...


@dataclass(frozen=True)
class Backstage:
    """Access to the agents, the settings and the end of the program."""

    services: Services
    roster: Callable[[], Roster]
    """Gives all agents."""

    find: Callable[[str], ActorRef | None]
    """Gives a living actor by its name."""

    voice: Callable[[], Voice]
    settings: Callable[[], Mapping[str, str]]
    """Writes all settings out, secrets masked: `models.main.model` and its value."""

    end: Callable[[], None]
    """Ends the program in order, as a signal from outside would."""
