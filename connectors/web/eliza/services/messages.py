"""Accepts, stores and announces messages in channels; on the kernel's side.

A person's message is handed in first, then stored and announced: every announced
message will be answered. Under the same id it counts once, so a repeated request loses
and doubles nothing. An answer's id follows from its delivery, so that it is stored
once, however often it is delivered.

Who hears a message is decided as agents of ElizaOS do: the agent is in the channel and
on its server, it is not the author, and the message is new to it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal

import msgspec
import trio

from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address, Attachment, Inbound
from actors.messages.state import outcome_of
from actors.rules.text.limits import RecentMap
from actors.transport import Earlier, Ingress
from connectors.chat.server_transport import AwaitedMessages, MessageOver
from connectors.web.eliza.keys import ApiCaller
from connectors.web.eliza.messages import (
    AGENT_SOURCE,
    DIRECT,
    ZERO,
    AgentIds,
    ChannelEvent,
    ElizaChannel,
    ElizaHistory,
    ElizaMessage,
    ElizaServer,
    Json,
    TellChannel,
    broadcast_of,
    content_fields,
    to_uuid,
)
from connectors.web.eliza.services.channels import Channels
from runtime.errors import SequenceConflictError

Status = Literal["completed", "failed", "cancelled"]


def status_of(reason: str) -> Status:
    """Translate the reason of `Transport.settle`."""
    state, _, why = reason.partition(":")
    if state == "cancelled":
        return "cancelled"
    return "completed" if outcome_of(state, why or "ok") == "replied" else "failed"


def complete_event(
    channel: ElizaChannel,
    message_id: str | None,
    status: str | None,
    error: str | None = None,
) -> ChannelEvent:
    """Say in a channel that all answers to one of its messages were given."""
    payload: Json = {
        "channelId": channel.id,
        "roomId": channel.id,
        "serverId": channel.server,
        "messageServerId": channel.server,
        "messageId": message_id,
        "status": status,
        "error": error,
    }
    return ChannelEvent(event="messageComplete", channel=channel.id, payload=payload)


def enable_input_event(channel: ElizaChannel) -> ChannelEvent:
    """Let the clients of a channel write again."""
    payload: Json = {
        "action": "enable_input",
        "target": "input",
        "channelId": channel.id,
        "roomId": channel.id,
    }
    return ChannelEvent(event="controlMessage", channel=channel.id, payload=payload)


class Hearers(msgspec.Struct, frozen=True):
    """The agents that hear one message."""

    present: tuple[str, ...]
    """Names of the agents that hear it."""

    agent: str = ""
    """The agent that it is for, in a direct chat."""

    mentions: tuple[str, ...] = ()
    is_bot: bool = False

    @property
    def is_direct(self) -> bool:
        """Whether it is for one agent alone."""
        return bool(self.agent)


def hearers_of(
    message: ElizaMessage, channel: ElizaChannel, server: ElizaServer, agents: AgentIds
) -> Hearers:
    """Decide which agents hear a message."""
    inside = channel.participants
    if server.id != ZERO:
        inside = tuple(each for each in inside if each in server.agents)
    own = agents.name(message.author)
    present = tuple(each for each in agents.among(inside) if each != own)
    others = len([each for each in channel.participants if not agents.name(each)])
    is_bot = bool(own) or message.source_type == AGENT_SOURCE
    is_alone = len(present) == 1 and not own
    if is_alone and (channel.type in DIRECT or others <= 1):
        return Hearers(present, agent=present[0], is_bot=is_bot)
    target = agents.name(str(message.metadata.get("targetAgentId") or ""))
    mentions = (target,) if target in present else ()
    return Hearers(present, mentions=mentions, is_bot=is_bot)


MOST_LOCKS = 4_096
"""Most locks of channels; those of idle channels are dropped."""


MOST_UNTOLD = 4_096
"""Messages that are announced when they are sent again."""


class NewMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that somebody sends."""

    message: ElizaMessage
    """Its `at` is 0, and is set when it is stored."""

    inbound_id: str
    """The id under which it is handed in, and by which its answers are found."""

    attachments: tuple[Attachment, ...] = ()
    wants_drafts: bool = True
    is_for_agents: bool = True
    """False: it is only stored and announced."""

    sender: str = ""
    """The socket that sent it; empty: none."""

    client_id: str = ""
    """Its id for that socket."""


class PostOutcome(msgspec.Struct, frozen=True):
    """The outcome of posting a message."""

    message: ElizaMessage
    heard: tuple[str, ...] = ()
    """The agents that it was handed to."""

    is_new: bool = True


class ChannelMessages:
    """The messages of one connector.

    Methods that read or write rows raise `StoreError` if the disk fails.
    """

    def __init__(
        self,
        connector: str,
        channels: Channels,
        history: ElizaHistory,
        tell: TellChannel,
    ) -> None:
        self._connector = connector
        self._channels = channels
        self.history = history
        self._tell = tell
        self._orders: dict[str, trio.Lock] = {}
        self._untold: RecentMap[str, bool] = RecentMap(MOST_UNTOLD)
        """Messages that are stored, or soon will be, and were not announced: their
        requests were cancelled while the disk wrote."""

        self._last = 0
        self.ingress: Ingress | None = None
        """Where messages are handed in; None: the channel is not listening."""

        self._awaited = AwaitedMessages(connector, self._complete)
        self.on_answer: Callable[[ElizaMessage], Awaitable[None]] | None = None
        """Called with each message of an agent, perhaps more than once."""

    async def post(self, caller: ApiCaller, said: NewMessage) -> PostOutcome:
        """Hand a message in, store and announce it.

        Raises:
            ApiError: 404, 403.
            ChatError: it was not accepted; see `Ingress.accept`.
            StoreError: the disk fails; repeated under the same id, it counts once.
        """
        channel = self._channels.channel(caller, said.message.channel)
        async with self._order(channel.id):
            known = await self.history.get(said.message.id)
            if known is not None:
                self._tell_again(known, said)
                if said.is_for_agents and self.ingress is not None:
                    again = await self._awaited.recall(self.ingress, known.id)
                    self._awaited.tell_again(again)
                return PostOutcome(known, is_new=False)
            message = msgspec.structs.replace(
                said.message, server=channel.server, at=self._stamp()
            )
            server = self._channels.server(channel.server)
            hears = hearers_of(message, channel, server, self._channels.agents)
            is_handed_in = said.is_for_agents and bool(hears.present)
            again = ""
            if is_handed_in:
                again = await self._hand_in(caller, said, message, hears)
            await self._keep(message, said)
            self._awaited.tell_again(again)
            if hears.is_bot:
                await self._tell_answer(message)
            heard = hears.present if is_handed_in else ()
            return PostOutcome(message, heard, is_new=not again)

    async def answer(
        self, delivery: Delivery, shown: Json | None = None
    ) -> ElizaMessage | None:
        """Store and announce an agent's message, and give it.

        Returns:
            None if its channel was deleted.

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

    async def delivered(self, delivery: Delivery) -> None:
        """Tell a channel when this was the last answer to one of its messages."""
        # Why in order: a message is announced before it is complete.
        async with self._order(delivery.address.chat):
            await self._awaited.answered(self.ingress, delivery)

    async def settled(self, inbound: Inbound, reason: str) -> None:
        """Tell a channel that one of its messages gets no more answers."""
        async with self._order(inbound.address.chat):
            self._awaited.settled(inbound, reason)

    def _complete(self, over: MessageOver) -> None:
        channel = self._channels.find(over.chat)
        if channel is not None:
            status = "failed" if over.error else status_of(over.reason)
            error = over.error or (over.reason if status == "failed" else None)
            told = complete_event(channel, over.message or None, status, error)
            self._tell(told)
            self._tell(enable_input_event(channel))

    async def find(self, message_id: str) -> ElizaMessage | None:
        """Give a message without checking access."""
        return await self.history.get(message_id)

    async def earlier(self, message_id: str) -> Earlier | None:
        """Give what became of a message that was handed in; None: not known."""
        if self.ingress is None:
            return None
        return await self.ingress.earlier(self._connector, message_id)

    async def change(self, message: ElizaMessage) -> ElizaMessage:
        """Change a message, and announce it."""
        changed = msgspec.structs.replace(message, updated_at=self._channels.now())
        await self.history.change(changed)
        self._announce(changed, None)
        return changed

    async def forget(self, message: ElizaMessage) -> None:
        """Delete a message; nobody works on it any longer."""
        await self.history.delete((message,))
        if self.ingress is not None:
            await self.ingress.withdraw(self._connector, message.id)
        told = {"messageId": message.id, "channelId": message.channel}
        self._tell(
            ChannelEvent(
                event="messageDeleted", channel=message.channel, payload={**told}
            )
        )

    async def clear(self, caller: ApiCaller, channel_id: str) -> None:
        """Delete all messages of a channel.

        Raises:
            ApiError: 404, 403.
            StoreError: the disk fails; some may be left.
        """
        self._channels.channel(caller, channel_id)
        async with self._order(channel_id):
            await self.history.clear(channel_id)
        payload = {"channelId": channel_id, "roomId": channel_id}
        news = ChannelEvent(
            event="channelCleared", channel=channel_id, payload={**payload}
        )
        self._tell(news)

    async def _hand_in(
        self, caller: ApiCaller, said: NewMessage, message: ElizaMessage, hears: Hearers
    ) -> str:
        """Hand a message in; see `AwaitedMessages.hand_in`."""
        if self.ingress is None:
            raise RuntimeError("messages are handed in only while somebody listens")
        inbound = Inbound(
            id=said.inbound_id,
            platform="web",
            platform_id=message.id,
            address=Address(self._connector, message.channel),
            sender_id=message.author,
            sender_name=message.author_name or "user",
            caller=caller.sharer,
            traceparent=caller.traceparent,
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
        return await self._awaited.hand_in(self.ingress, inbound)

    async def _tell_answer(self, message: ElizaMessage) -> None:
        if self.on_answer is not None:
            await self.on_answer(message)

    async def _keep(self, message: ElizaMessage, said: NewMessage | None) -> None:
        """Store a message, and announce it."""
        self._untold[message.id] = True
        # A conflict means that it is stored: an earlier request was cancelled.
        with suppress(SequenceConflictError):
            await self.history.add(message)
        self._tell_again(message, said)

    def _tell_again(self, message: ElizaMessage, said: NewMessage | None) -> None:
        """Announce a stored message, if that was not done."""
        if self._untold.pop(message.id, False):
            self._announce(message, said)

    def _announce(self, message: ElizaMessage, said: NewMessage | None) -> None:
        payload = broadcast_of(message)
        news = ChannelEvent(
            event="messageBroadcast", channel=message.channel, payload=payload
        )
        if said is not None and said.sender:
            own = payload | {"clientMessageId": said.client_id}
            news = msgspec.structs.replace(news, sender=said.sender, sender_payload=own)
        self._tell(news)

    async def _name(self, delivery: Delivery) -> tuple[str, ElizaMessage | None]:
        """Choose the id of an answer; give the answer, too, if it is stored already."""
        for name in names_of(delivery):
            known = await self.history.get(name)
            if known is None:
                return name, None
            if known.delivery == delivery.id:
                return name, known
        return to_uuid(f"again/{delivery.id}"), None

    def _worded(
        self, name: str, delivery: Delivery, channel: ElizaChannel
    ) -> ElizaMessage:
        agents = self._channels.agents
        agent_id = agents.id(delivery.agent) if delivery.agent else channel.server
        agent = agents.shown(delivery.agent)
        metadata: Json = {
            "agentId": agent_id,
            "agentName": agent,
            "agent_id": agent_id,
            "agent_name": agent,
            "channelType": channel.type,
            "isDm": channel.type == "DM",
        }
        if delivery.is_aside:
            metadata["aside"] = True
        if delivery.trouble:
            metadata["trouble"] = delivery.trouble
        return ElizaMessage(
            id=name,
            channel=channel.id,
            server=channel.server,
            author=agent_id,
            author_name=agent or "Callboard",
            content=delivery.text,
            raw=content_fields(delivery.text, delivery.thought, delivery.actions),
            source_type=AGENT_SOURCE,
            metadata=metadata,
            reply_to=delivery.reply_to,
            at=self._stamp(),
            delivery=delivery.id,
        )

    def _stamp(self) -> int:
        """Give a time (ms) later than all earlier messages."""
        self._last = max(self._channels.now(), self._last + 1)
        return self._last

    def _order(self, channel: str) -> trio.Lock:
        """Give the lock that keeps a channel's messages in order."""
        lock = self._orders.get(channel)
        if lock is None:
            if len(self._orders) >= MOST_LOCKS:
                held = {k: v for k, v in self._orders.items() if v.locked()}
                self._orders = held
            lock = self._orders[channel] = trio.Lock()
        return lock


def names_of(delivery: Delivery) -> tuple[str, ...]:
    """Give the ids that an answer may have, the best first.

    The first is the id of the drafts, so that clients replace the drafts by the answer.
    """
    own = to_uuid(f"delivery/{delivery.id}")
    if delivery.reply_id and delivery.part == 0 and not delivery.is_aside:
        return (reply_name(delivery.reply_id), own)
    return (own,)


def reply_name(reply_id: str) -> str:
    """Give the id of an answer that is still being written."""
    return to_uuid(f"reply/{reply_id}")
