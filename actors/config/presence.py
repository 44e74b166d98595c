"""Settings of presence: typing, reactions, drafts and status messages."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

Statuses = Literal["all", "slow", "none"]
"""Which status messages are sent: all; only that it takes longer; none."""

Sign = Annotated[str, Meta(max_length=16)]


class ConnectorPresence(Struct, frozen=True, forbid_unknown_fields=True):
    """Differences for one connector; unset: as for all."""

    reactions: bool | None = None
    drafts: bool | None = None
    status: Statuses | None = None


# Chosen: shorter than the five seconds after which Telegram stops showing it.
TYPING_EVERY = 4.0
"""Seconds between two signs that somebody is writing."""


class PresenceConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """What people see while an answer is being made."""

    reactions: bool = True
    """Whether agents react to the messages that they answer, on platforms with
    reactions.
    """

    received_sign: Sign = "👀"
    """Reaction while the answer is being made."""

    answered_sign: Sign = "✅"
    """Reaction when it is answered; empty only removes the first one."""

    failed_sign: Sign = "⚠️"
    """Reaction when the turn failed; empty only removes the first one."""

    drafts: bool = True
    """Whether answers are shown while they are written, on platforms with edits."""

    draft_after: Annotated[float, Meta(ge=0, le=60)] = 1.0
    """Seconds that an answer has been growing before it is shown unfinished. An answer
    that is complete sooner is sent at once, as one message.
    """

    draft_chars: Annotated[int, Meta(ge=1, le=4_000)] = 50
    """Characters of an unfinished answer before it is shown."""

    placeholder: Annotated[str, Meta(max_length=64)] = ""
    """First text of such a message; empty: the first words of the answer."""

    status: Statuses = "all"
    """Which status messages are sent."""

    status_every: Annotated[float, Meta(ge=0, le=86_400)] = 120.0
    """Seconds after the first one (`limits.notice_after`), or after the last text,
    until people are told again that it takes longer; 0: only once.
    """

    connectors: dict[str, ConnectorPresence] = field(
        default_factory=dict[str, ConnectorPresence]
    )
    """Differences for single connectors, by name."""

    def shows_reactions(self, connector: str, *, is_sparing: bool) -> bool:
        """Return whether messages get reactions on a connector.

        Args:
            is_sparing: whether its platform has them only if its own table says so; see
                `Abilities.is_sparing`. So also for drafts.
        """
        own = self._own(connector).reactions
        return self.reactions and not is_sparing if own is None else own

    def shows_drafts(self, connector: str, *, is_sparing: bool) -> bool:
        """Return whether a connector shows drafts."""
        own = self._own(connector).drafts
        return self.drafts and not is_sparing if own is None else own

    def tells(self, connector: str, status: str) -> bool:
        """Return whether a connector sends a status message.

        Args:
            status: its kind, as in `actors.messages.deliveries.Status`.
        """
        own = self._own(connector).status
        told = self.status if own is None else own
        return told == "all" or (told == "slow" and status == "slow")

    def _own(self, connector: str) -> ConnectorPresence:
        return self.connectors.get(connector, NOTHING_ELSE)


NOTHING_ELSE = ConnectorPresence()
