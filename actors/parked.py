"""What a courier leaves to its next incarnation, should it fail."""

from __future__ import annotations

import msgspec

from actors.drafted import Reply
from actors.rules import sending as rules


class Parked(msgspec.Struct, frozen=True):
    """A delivery that was handed back, and is to be gone on with."""

    delivery_id: str
    sending: rules.Sending
    """Where it stands; an incarnation leaves it to the next one."""

    effect: rules.Effect
    """What was not carried out."""

    until: float
    """Seconds on trio's clock: not before."""


class Before(msgspec.Struct, frozen=True):
    """A note to the next incarnation: what this one knew."""

    said: tuple[str, ...]
    """Deliveries of late, oldest first."""

    in_doubt: str
    """The one that was being said; empty if none was."""

    attempts: int
    """How often the platform was asked for that one."""

    parked: Parked | None
    line: tuple[str, ...]
    """Deliveries that were handed back, the next one first."""

    drafts: dict[str, Reply]
    """What is being written; an incarnation leaves it to the next one."""
