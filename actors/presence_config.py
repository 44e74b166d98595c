"""What the domain lets people set about what is seen while an answer is made."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

Statuses = Literal["all", "slow", "none"]
"""Which status messages are told: all; only that it takes longer; none."""

Sign = Annotated[str, Meta(max_length=16)]


class ConnectorPresence(Struct, frozen=True, forbid_unknown_fields=True):
    """What of it is otherwise for one connector; unset: as for all."""

    reactions: bool | None = None
    drafts: bool | None = None
    status: Statuses | None = None


class PresenceConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What people see while an answer is being made (F223 to F231)."""

    typing_every: Annotated[float, Meta(ge=0.5, le=60)] = 4.0
    """Seconds between two signs that somebody is writing; sooner where the platform
    would stop showing it."""

    reactions: bool = True
    """Whether a message that an agent answers gets a small sign on platforms that
    have such."""

    received_sign: Sign = "👀"
    """While its answer is being made."""

    answered_sign: Sign = "✅"
    """When it is answered; empty: the first is only taken away."""

    failed_sign: Sign = "⚠️"
    """When there is no answer; empty: the first is only taken away."""

    drafts: bool = True
    """Whether answers are shown while they are written, on platforms with edits."""

    placeholder: Annotated[str, Meta(max_length=64)] = "..."
    """What such a message reads at first; empty: the first words."""

    status: Statuses = "all"
    """Which messages about the making of an answer are told."""

    status_every: Annotated[float, Meta(ge=0, le=86_400)] = 120.0
    """Seconds after the first of them (`limits.notice_after`), or after the last words,
    until people are told again that it takes longer; 0: they are told once."""

    connectors: dict[str, ConnectorPresence] = field(
        default_factory=dict[str, ConnectorPresence]
    )
    """What is otherwise for single connectors, by their names."""

    def shows_reactions(self, connector: str) -> bool:
        """Tell whether messages get signs there."""
        own = self._own(connector).reactions
        return self.reactions if own is None else own

    def shows_drafts(self, connector: str) -> bool:
        """Tell whether answers are shown there while they are written."""
        own = self._own(connector).drafts
        return self.drafts if own is None else own

    def tells(self, connector: str, status: str) -> bool:
        """Tell whether a status message goes out there.

        Args:
            connector: by its name.
            status: what it is about, as in `actors.deliveries.Status`.
        """
        own = self._own(connector).status
        told = self.status if own is None else own
        return told == "all" or (told == "slow" and status == "slow")

    def _own(self, connector: str) -> ConnectorPresence:
        return self.connectors.get(connector, NOTHING_ELSE)


NOTHING_ELSE = ConnectorPresence()
