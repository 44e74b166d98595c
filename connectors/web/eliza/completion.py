"""When a message has got all of its answers, and the events that say so; pure.

Clients of ElizaOS disable their input after a message, until they are told that the
agents have finished: by `messageComplete`, and by `controlMessage` with the action
`enable_input`. Both are sent once for each message: after its last answer, after an
agent's silence, after a failure, and when no agent answers at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from actors.delegation.owed import Owed
from actors.messages.state import outcome_of
from actors.rules.text.limits import RecentMap
from connectors.web.eliza.messages import ChannelEvent, ElizaChannel, Json

if TYPE_CHECKING:
    from actors.messages.deliveries import Delivery

Status = Literal["completed", "failed", "cancelled"]

MOST_WATCHED = 4_096
"""Messages whose end is waited for. For the oldest of more, no event is sent unless an
answer comes."""


@dataclass
class AwaitedAnswers:
    """The answers that one message is still to get."""

    channel: str
    message_id: str
    owed: Owed = field(default_factory=Owed)
    seen: set[str] = field(default_factory=set[str])
    """Ids of the deliveries that were counted; a repeated one counts once."""

    is_over: bool = False


class MessageCompletion:
    """The messages of one connector that wait for answers, by correlation id."""

    def __init__(self) -> None:
        self._awaited: RecentMap[str, AwaitedAnswers] = RecentMap(MOST_WATCHED)

    def begin(self, correlation_id: str, channel: str, message_id: str) -> None:
        """Note that a message was handed to agents."""
        self._awaited[correlation_id] = AwaitedAnswers(channel, message_id)

    def delivered(self, delivery: Delivery) -> AwaitedAnswers | None:
        """Count an answer; give its message if that was the last one."""
        if delivery.is_aside or delivery.trouble == "waiting":
            return None
        known = self._awaited.get(delivery.correlation_id)
        if known is None:
            # Asked before a restart, or an agent spoke by itself.
            known = AwaitedAnswers(delivery.address.chat, delivery.reply_to)
            self._awaited[delivery.correlation_id] = known
        if known.is_over or delivery.id in known.seen:
            return None
        known.seen.add(delivery.id)
        is_last = known.owed.count(delivery)
        # As for requests that wait: a failure before any answer ends the message.
        is_failure = bool(delivery.trouble) and delivery.is_root
        known.is_over = is_last or (is_failure and len(known.seen) == 1)
        return known if known.is_over else None

    def settled(self, correlation_id: str) -> AwaitedAnswers | None:
        """Give a message that gets no more answers, unless its end was told before."""
        known = self._awaited.get(correlation_id)
        if known is None or known.is_over:
            return None
        known.is_over = True
        return known


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
