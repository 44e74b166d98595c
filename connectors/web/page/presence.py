"""What the page shows beside messages: answers that grow, and signs; see the port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.errors import DeliveryRefusedError
from connectors.web.page.troubles import told_as_busy

if TYPE_CHECKING:
    from actors.deliveries import Edit, Reaction
    from connectors.web.page.talk import Talk


class PagePresence:
    """The presence of one page.

    Args:
        talk: what is said there.
    """

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    async def edit(self, edit: Edit) -> None:
        """Let a message read otherwise; see the port."""
        with told_as_busy(self._talk):
            if not await self._talk.edit(edit):
                raise DeliveryRefusedError(f"there is no message {edit.receipt}")

    async def react(self, reaction: Reaction) -> None:
        """Put a sign at a message; see the port."""
        with told_as_busy(self._talk):
            if not await self._talk.react(reaction):
                raise DeliveryRefusedError(f"there is no message {reaction.message}")
