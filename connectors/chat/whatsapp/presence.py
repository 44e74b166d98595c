"""Signs at people's messages; nothing that was said is ever changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors.errors import DeliveryRefusedError, DeliveryUnknownError
from connectors.chat.faults import translated
from connectors.chat.whatsapp import content
from connectors.chat.whatsapp.speaking import MEND_WAIT, Speaking

if TYPE_CHECKING:
    from actors.deliveries import Edit, Reaction


class WhatsAppPresence:
    """What the numbers show beside messages.

    Args:
        speaking: the numbers.
    """

    def __init__(self, speaking: Speaking) -> None:
        self._speaking = speaking

    async def edit(self, edit: Edit) -> None:
        """Refuse: see the port.

        Raises:
            DeliveryRefusedError: always; WhatsApp's Cloud API knows no edits.
        """
        await trio.lowlevel.checkpoint()
        text = f"WhatsApp cannot change {edit.receipt}: say it anew"
        raise DeliveryRefusedError(text)

    async def react(self, reaction: Reaction) -> None:
        """Put a sign at a message; a number has one there, the newest. See the port."""
        number, person = self._speaking.choose(reaction.address.chat)
        body = content.reaction(person, reaction.message, reaction.sign)
        try:
            with translated(MEND_WAIT):
                await number.send(body)
        except DeliveryUnknownError:
            # Put twice, it is there once.
            with translated(MEND_WAIT):
                await number.send(body)
