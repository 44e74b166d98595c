"""Writes drafts into one chat: the calls that they come to, and their pace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

from actors.draft_record import Begun
from actors.errors import DeliveryBusyError, DeliveryError
from actors.rules.drafts import Message
from actors.rules.pacing import Pacing

if TYPE_CHECKING:
    from actors.drafted import Reply
    from actors.services import Services
    from actors.transport import Transport

UNWRITTEN = "..."
"""What is asked for to find a message again, if the settings have no placeholder."""


class Pen:
    """The hand that writes drafts into one chat.

    Args:
        connector: name of the account.
        transport: the way out.
        services: ids, counts, settings.
    """

    __slots__ = ("_connector", "_services", "_transport", "pacing")

    def __init__(
        self, connector: str, transport: Transport, services: Services
    ) -> None:
        abilities = transport.abilities
        self._connector = connector
        self._transport = transport
        self._services = services
        self.pacing = Pacing(abilities.pace, abilities.draft_pace, abilities.per_minute)
        """Of the whole chat: of what is said in it, too."""

    async def place(self, reply: Reply, text: str) -> None:
        """Say a further message of an answer; gives it up where it may stand twice.

        Raises:
            DeliveryError: as the transport says.
        """
        drafts, is_safe = reply.drafts, self._transport.abilities.is_idempotent
        number, agent = drafts.next_number, reply.agent
        is_doubtful = reply.is_placing and not is_safe
        # Why before: after a crash it is asked for again, and then is the same message.
        if is_safe and reply.intended != number:
            is_doubtful = not await reply.record.put(Begun(number, agent))
            reply.intended = number
        if is_doubtful:
            drafts.is_given_up = True
            return
        was_placing, reply.is_placing = reply.is_placing, True
        try:
            receipt = await self._transport.deliver(reply.first(number, agent, text))
        except DeliveryBusyError:
            reply.is_placing = was_placing
            raise
        reply.is_placing = False
        drafts.next_number = number + 1
        drafts.messages.append(Message(number, agent, receipt, text))
        reply.record.note(Begun(number, agent, receipt))

    def look_for(self, reply: Reply) -> None:
        """Count on a message that may stand there; asked for again, it is found."""
        if not reply.is_placing:
            return
        reply.is_placing = False
        if self._transport.abilities.is_idempotent:
            drafts = reply.drafts
            drafts.messages.append(Message(drafts.next_number, reply.agent))
            drafts.next_number += 1

    async def change(
        self,
        reply: Reply,
        message: Message,
        text: str,
        edit_id: str = "",
        *,
        is_last: bool = False,
    ) -> None:
        """Let a message read otherwise.

        Args:
            reply: whose message it is.
            message: which one.
            text: what it is to read; empty: it is taken away.
            edit_id: the same for the same text; empty: it is not tried again.
            is_last: whether it is the answer itself.

        Raises:
            DeliveryError: as the transport and its `Presence` say.
        """
        presence = self._transport.presence
        if presence is None:
            return
        if not message.receipt:
            placeholder = self._services.presence.placeholder or UNWRITTEN
            first = reply.first(message.number, message.agent, placeholder)
            message.receipt = await self._transport.deliver(first)
        edit = reply.edit(message, edit_id or self._services.ids.new(), text)
        await presence.edit(msgspec.structs.replace(edit, is_last=is_last))
        message.shown = text

    async def try_to_change(self, reply: Reply, message: Message, text: str) -> None:
        """Let a message read otherwise, when it is time; that is tried once."""
        await self.wait_to_edit()
        try:
            await self.change(reply, message, text)
        except DeliveryError:
            self.count("left")
        else:
            self.count("withdrawn")

    async def wait_to_say(self) -> None:
        """Wait until the platform takes another message in this chat."""
        await trio.sleep_until(self.pacing.message_at)
        self.pacing.said(trio.current_time())

    async def wait_to_edit(self) -> None:
        """Wait until the platform takes another edit in this chat."""
        await trio.sleep_until(self.pacing.edit_at)
        self.pacing.edited(trio.current_time())

    def count(self, outcome: str) -> None:
        """Count what became of a draft."""
        self._services.metrics.presence(self._connector, "draft", outcome)
