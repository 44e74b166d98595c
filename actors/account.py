"""What the domain must know of a connector account: abilities, and its own policies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from actors.deliveries import Abilities
from actors.rules.message_state import RetryPolicy

if TYPE_CHECKING:
    from actors.rules.admission import Policy
    from actors.rules.sending import OnUnknown


@dataclass(frozen=True)
class Account:
    """One account on a platform."""

    abilities: Abilities = field(default_factory=Abilities)
    """What its transport can do."""

    retries: RetryPolicy = field(default_factory=RetryPolicy)
    """How often a turn for a message from here is begun."""

    on_unknown: OnUnknown = "resend"
    """What is done about a delivery that may have been said before a crash."""

    policy: Policy | None = None
    """Who may write; None: whoever its edge lets in."""

    has_presence: bool = False
    """Whether it can edit messages, and put signs at them."""
