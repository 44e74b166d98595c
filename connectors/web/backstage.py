"""What the web is given of the company itself, beside its own channels.

Used on the kernel's side only. What it gives is as of now: whoever keeps it longer
than one question keeps what settings may have replaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.ports import Speaker, Transcriber
    from actors.roster import Roster
    from actors.services import Services
    from runtime.ref import ActorRef


class Voice(Protocol):
    """Who writes recordings down and speaks texts, as the settings have it."""

    @property
    def transcriber(self) -> Transcriber | None:
        """Writes recordings down; None: nobody does."""
        ...

    @property
    def speaker(self) -> Speaker | None:
        """Speaks texts; None: nobody does."""
        ...


@dataclass(frozen=True)
class Backstage:
    """All of it."""

    services: Services
    roster: Callable[[], Roster]
    """Who works here."""

    find: Callable[[str], ActorRef | None]
    """Gives a living actor by its name."""

    voice: Callable[[], Voice]
    settings: Callable[[], Mapping[str, str]]
    """Writes all settings out, secrets masked: `models.main.model` and its value."""

    end: Callable[[], None]
    """Has the program end in order, as if it were told to from outside."""
