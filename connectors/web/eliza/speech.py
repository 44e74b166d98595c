"""What is said in channels, by people and by agents; on the kernel's side.

A person's message is handed in first, then kept and told: whoever is told of it can
rely on its being answered. Handed in again under its own id it counts once, so that
nothing is lost or doubled by asking again. An answer is kept under an id that follows
from its delivery's, so that it stands there once, however often it is delivered.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.errors import SenderRefusedError
from actors.messages import Address, Attachment, Inbound
from actors.rules.recent import Recent
from connectors.web.eliza.hearing import heard
from connectors.web.eliza.ids import to_uuid
from connectors.web.eliza.shapes import AGENT_SOURCE, Message, broadcast_of
from connectors.web.eliza.telling import News
from runtime.errors import SequenceConflictError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from actors.deliveries import Delivery
    from actors.ingress import Earlier
    from actors.transport import Ingress
    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.hearing import Heard
    from connectors.web.eliza.history import History
    from connectors.web.eliza.keys import Caller
    from connectors.web.eliza.shapes import Channel, Json
    from connectors.web.eliza.telling import Tell

MOST_LOCKS = 4_096
"""Channels whose order is remembered; those nobody speaks in are forgotten."""


MOST_UNTOLD = 4_096
"""Messages that are told when they are said again."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A message that somebody wants to have said."""

    message: Message
    """Its `at` is 0: it is set when its turn comes."""

    inbound_id: str
    """By which its answers are known."""

    attachments: tuple[Attachment, ...] = ()
    wants_drafts: bool = True
    is_for_agents: bool = True
    """False: it is only kept and told."""

    sender: str = ""
    """The socket it came by."""

    client_id: str = ""
    """What that socket calls it."""


class Posted(msgspec.Struct, frozen=True):
    """What became of it."""

    message: Message
    heard: tuple[str, ...] = ()
    """The agents that it was handed to."""

    is_new: bool = True


class Speech:
    """The messages of one connector.

    Args:
        connector: its name.
        channels: where they are said.
        history: where they are kept.
        tell: tells whoever has joined a channel.
    """

    def __init__(
        self, connector: str, channels: Channels, history: History, tell: Tell
    ) -> None:
        self._connector = connector
        self._channels = channels
        self.history = history
        self._tell = tell
        self._orders: dict[str, trio.Lock] = {}
        self._untold: Recent[str, bool] = Recent(MOST_UNTOLD)
        """Messages that are kept, or soon are, and nobody was told of: whoever said
        them was cut off while the disk wrote."""

        self._last = 0
        self.ingress: Ingress | None = None
        """Where messages are handed in, while anybody listens."""

        self.on_answer: Callable[[Message], Awaitable[None]] | None = None
        """Told of all that agents say, perhaps more than once."""

        self.touched: set[str] = set()
        """Channels in which something was said since they were last tidied."""

    async def post(self, caller: Caller, said: Said) -> Posted:
        """Hand a message in, keep it and tell it.

        Raises:
            ApiError: 404, 403.
            ChatError: it was not taken; see `Ingress.accept`.
            StoreError: the disk fails; asked again under the same id, it counts once.
        """
        channel = self._channels.channel(caller, said.message.channel)
        async with self._order(channel.id):
            known = await self.history.get(said.message.id)
            if known is not None:
                self._tell_again(known, said)
                return Posted(known, is_new=False)
            message = msgspec.structs.replace(
                said.message, server=channel.server, at=self._stamp()
            )
            server = self._channels.server(channel.server)
            hears = heard(message, channel, server, self._channels.agents)
            is_handed_in = said.is_for_agents and bool(hears.present)
            is_new = not is_handed_in or await self._hand_in(said, message, hears)
            await self._keep(message, said)
            if hears.is_bot:
                await self._tell_answer(message)
            return Posted(message, hears.present if is_handed_in else (), is_new)

    async def answer(
        self, delivery: Delivery, shown: Json | None = None
    ) -> Message | None:
        """Keep and tell what an agent says; give it as it is kept.

        Args:
            delivery: what is said.
            shown: what clients are told of the file that comes with it.

        Returns:
            None if its channel is gone.

        Raises:
            StoreError: the disk fails; try again later.
        """
        channel = self._channels.find(delivery.address.chat)
        if channel is None:
            return None
        async with self._order(channel.id):
            name, known = await self._name(delivery)
            if known is not None:
                self._tell_again(known, None)
                await self._tell_answer(known)
                return known
            message = self._worded(name, delivery, channel)
            if shown:
                raw = message.raw | {"attachments": [shown]}
                content = message.content or str(shown["title"])
                message = msgspec.structs.replace(message, raw=raw, content=content)
            await self._keep(message, None)
            await self._tell_answer(message)
            return message

    async def find(self, message_id: str) -> Message | None:
        """Give a message, whoever asks.

        Raises:
            StoreError: the disk fails.
        """
        return await self.history.get(message_id)

    async def earlier(self, message_id: str) -> Earlier | None:
        """Tell what became of a message that was handed in; None: not known.

        Raises:
            StoreError: the disk fails.
        """
        if self.ingress is None:
            return None
        return await self.ingress.earlier(self._connector, message_id)

    async def change(self, message: Message) -> Message:
        """Keep what a message reads from now on, and tell it.

        Raises:
            StoreError: the disk fails.
        """
        changed = msgspec.structs.replace(message, updated_at=self._channels.now())
        await self.history.change(changed)
        self._announce(changed, None)
        return changed

    async def forget(self, message: Message) -> None:
        """Delete a message.

        Raises:
            StoreError: the disk fails.
        """
        await self.history.forget((message,))
        told = {"messageId": message.id, "channelId": message.channel}
        self._tell(
            News(event="messageDeleted", channel=message.channel, payload={**told})
        )

    async def clear(self, caller: Caller, channel_id: str) -> None:
        """Delete all that was said in a channel.

        Raises:
            ApiError: 404, 403.
            StoreError: the disk fails; some of it may be left.
        """
        self._channels.channel(caller, channel_id)
        async with self._order(channel_id):
            await self.history.clear(channel_id)
        payload = {"channelId": channel_id, "roomId": channel_id}
        news = News(event="channelCleared", channel=channel_id, payload={**payload})
        self._tell(news)

    async def _hand_in(self, said: Said, message: Message, hears: Heard) -> bool:
        """Hand a message in; False: it was handed in before, and then cut off.

        Raises:
            SenderRefusedError: whoever wrote it is not let in.
        """
        if self.ingress is None:
            raise RuntimeError("messages are handed in only while somebody listens")
        inbound = Inbound(
            id=said.inbound_id,
            platform="web",
            platform_id=message.id,
            address=Address(self._connector, message.channel),
            sender_id=message.author,
            sender_name=message.author_name or "user",
            text=message.content,
            attachments=said.attachments,
            received_at=message.at / 1000,
            is_direct=hears.is_direct,
            agent=hears.agent,
            wants_drafts=said.wants_drafts,
            reply_to=message.reply_to,
            mentions=hears.mentions,
            present=hears.present,
            is_bot=hears.is_bot,
            platform_fields={"server": message.server, "source": message.source_type},
        )
        if await self.ingress.accept(inbound):
            return True
        if await self.ingress.earlier(self._connector, message.id) is None:
            raise SenderRefusedError("you may not write here")
        return False

    async def _tell_answer(self, message: Message) -> None:
        if self.on_answer is not None:
            await self.on_answer(message)

    async def _keep(self, message: Message, said: Said | None) -> None:
        """Keep a message, and tell it."""
        self._untold[message.id] = True
        # In conflict, it is kept: whoever asked was cut off before it was told.
        with suppress(SequenceConflictError):
            await self.history.add(message)
        self.touched.add(message.channel)
        self._tell_again(message, said)

    def _tell_again(self, message: Message, said: Said | None) -> None:
        """Tell a message that is kept, if nobody was told."""
        if self._untold.pop(message.id, False):
            self._announce(message, said)

    def _announce(self, message: Message, said: Said | None) -> None:
        payload = broadcast_of(message)
        news = News(event="messageBroadcast", channel=message.channel, payload=payload)
        if said is not None and said.sender:
            own = payload | {"clientMessageId": said.client_id}
            news = msgspec.structs.replace(news, sender=said.sender, sender_payload=own)
        self._tell(news)

    async def _name(self, delivery: Delivery) -> tuple[str, Message | None]:
        """Choose the id of an answer, and give it if it is kept already."""
        for name in names_of(delivery):
            known = await self.history.get(name)
            if known is None:
                return name, None
            if known.delivery == delivery.id:
                return name, known
        return to_uuid(f"again/{delivery.id}"), None

    def _worded(self, name: str, delivery: Delivery, channel: Channel) -> Message:
        agent_id = to_uuid(delivery.agent) if delivery.agent else channel.server
        metadata: Json = {
            "agentId": agent_id,
            "agentName": delivery.agent,
            "channelType": channel.type,
            "isDm": channel.type == "DM",
        }
        if delivery.is_aside:
            metadata["aside"] = True
        if delivery.trouble:
            metadata["trouble"] = delivery.trouble
        return Message(
            id=name,
            channel=channel.id,
            server=channel.server,
            author=agent_id,
            author_name=delivery.agent or "Callboard",
            content=delivery.text,
            raw={"text": delivery.text},
            source_type=AGENT_SOURCE,
            metadata=metadata,
            reply_to=delivery.reply_to,
            at=self._stamp(),
            delivery=delivery.id,
        )

    def _stamp(self) -> int:
        """Give a time (ms) that no earlier message has."""
        self._last = max(self._channels.now(), self._last + 1)
        return self._last

    def _order(self, channel: str) -> trio.Lock:
        """Give the lock that keeps a channel's messages in their order."""
        lock = self._orders.get(channel)
        if lock is None:
            if len(self._orders) >= MOST_LOCKS:
                held = {k: v for k, v in self._orders.items() if v.locked()}
                self._orders = held
            lock = self._orders[channel] = trio.Lock()
        return lock


def names_of(delivery: Delivery) -> tuple[str, ...]:
    """Give the ids that an answer may have, the best first.

    The first is that of the pieces that are shown while it is being written, so that
    clients put what they were shown and the answer together.
    """
    own = to_uuid(f"delivery/{delivery.id}")
    if delivery.reply_id and delivery.part == 0 and not delivery.is_aside:
        return (reply_name(delivery.reply_id), own)
    return (own,)


def reply_name(reply_id: str) -> str:
    """Give the id of an answer that is still being written."""
    return to_uuid(f"reply/{reply_id}")
