"""Answers that are shown while they are being written, piece by piece; pure.

Bounded: of too many at once the one begun first is forgotten, which loses no answer:
it is told whole.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from connectors.web.eliza.ids import to_uuid
from connectors.web.eliza.speech import reply_name

if TYPE_CHECKING:
    from actors.deliveries import Draft
    from connectors.web.eliza.shapes import Json

MOST = 1_000


@dataclass
class Stream:
    """One answer that is being written."""

    message_id: str
    channel: str
    agent_id: str
    correlation_id: str
    index: int = 0
    text: str = ""


class Streams:
    """All of them, by the reply that they will be."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Stream] = OrderedDict()

    def piece(self, draft: Draft) -> Json | None:
        """Give what is told of one piece; None: it belongs to no reply."""
        if not draft.reply_id:
            return None
        stream = self._open.get(draft.reply_id)
        if stream is None:
            stream = Stream(
                message_id=reply_name(draft.reply_id),
                channel=draft.address.chat,
                agent_id=to_uuid(draft.agent),
                correlation_id=draft.correlation_id,
            )
            self._open[draft.reply_id] = stream
            if len(self._open) > MOST:
                self._open.popitem(last=False)
        told: Json = {
            "messageId": stream.message_id,
            "chunk": draft.text,
            "index": stream.index,
            "agentId": stream.agent_id,
            "channelId": stream.channel,
        }
        stream.index += 1
        stream.text += draft.text
        return told

    def end(self, reply_id: str) -> None:
        """Learn that an answer is told whole."""
        self._open.pop(reply_id, None)

    def broken(self, correlation_id: str, reason: str) -> list[Json]:
        """Give what is told of answers that were begun and never will be whole."""
        found = {
            reply_id: each
            for reply_id, each in self._open.items()
            if each.correlation_id == correlation_id
        }
        for reply_id in found:
            del self._open[reply_id]
        return [
            {
                "messageId": each.message_id,
                "channelId": each.channel,
                "agentId": each.agent_id,
                "error": f"the answer was not finished ({reason})",
                "partialText": each.text,
            }
            for each in found.values()
        ]
