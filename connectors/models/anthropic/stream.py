"""An answer of Anthropic's Messages, from its events or in one piece.

Pure: fed with events, gives back the words as they come, and at the end either a whole
answer or an error. A stream counts as whole only with `message_stop`, a stop reason,
and every block closed. Blocks of thinking are skipped: they are not for people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.messages.inbound import ModelAnswer, ModelRequest, Usage
from connectors.models.answer import Ending, PartialCall, StreamedAnswer, believable
from connectors.models.anthropic.errors import ErrorBody, said_by

if TYPE_CHECKING:
    from connectors.models.names import ToolNames
    from connectors.models.provider_errors import ErrorContext

# Source: the API's page on stop reasons. `pause_turn` is for tools that the provider
# runs itself, of which we offer none.
ENDINGS: dict[str, Ending] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "end",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


class AnthropicCounts(msgspec.Struct, frozen=True):
    """The provider's token counts; later ones replace earlier ones."""

    input_tokens: int | float | None = None
    output_tokens: int | float | None = None
    cache_creation_input_tokens: int | float | None = None
    cache_read_input_tokens: int | float | None = None


class Block(msgspec.Struct, frozen=True):
    """A block of content, whole or at its beginning."""

    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw(b"{}")


class Delta(msgspec.Struct, frozen=True):
    """What an event adds to a block, or to the message."""

    type: str = ""
    text: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class Message(msgspec.Struct, frozen=True):
    """A message, whole or at its beginning."""

    type: str = ""
    id: str | None = None
    content: tuple[Block, ...] = ()
    stop_reason: str | None = None
    usage: AnthropicCounts | None = None
    error: ErrorBody | None = None


class Event(msgspec.Struct, frozen=True):
    """One event's data."""

    type: str
    index: int = 0
    message: Message | None = None
    content_block: Block | None = None
    delta: Delta | None = None
    usage: AnthropicCounts | None = None
    error: ErrorBody | None = None


EVENT = msgspec.json.Decoder(Event)
MESSAGE = msgspec.json.Decoder(Message)


class Assembly(StreamedAnswer):
    """One answer in the making."""

    def __init__(
        self, request: ModelRequest, names: ToolNames, provider: ErrorContext
    ) -> None:
        super().__init__(request, names, provider)
        self._counts: dict[str, float] = {}
        self._open: dict[int, tuple[str, PartialCall | None]] = {}
        self._seen: set[int] = set()
        self._has_begun = False
        self._stop_reason = ""
        self._is_whole = False

    @property
    def is_whole(self) -> bool:
        """True once the stream has said all that its protocol asks for."""
        return self._is_whole

    def take(self, event: bytes) -> str:
        """Add an event; see the port."""
        if self._is_whole:
            return ""
        decoded = self._decode(EVENT, event)
        if decoded.type == "content_block_delta" and decoded.delta is not None:
            return self._add(decoded.index, decoded.delta)
        return self._take_other(decoded)

    def _take_other(self, event: Event) -> str:
        match event.type:
            case "message_start" if event.message is not None:
                self._begin(event.message)
            case "content_block_start" if event.content_block is not None:
                return self._open_block(event.index, event.content_block)
            case "content_block_stop":
                if self._open.pop(event.index, None) is None:
                    raise self._provider.broken("it closed a block that was not open")
            case "message_delta":
                self._count(event.usage)
                delta = event.delta or Delta()
                self._stop_reason = delta.stop_reason or self._stop_reason
            case "message_stop":
                self._stop()
            case "error":
                said = said_by(event.error or ErrorBody())
                raise self._provider.stream_error(said)
            case _:
                pass  # `ping`, and what will be added: the API asks to ignore it
        return ""

    def _begin(self, message: Message) -> None:
        if self._has_begun:
            raise self._provider.broken("it began twice")
        self._has_begun = True
        self._collected.request_id = message.id or ""
        self._count(message.usage)

    def _open_block(self, index: int, block: Block) -> str:
        if index in self._seen or not self._has_begun or self._stop_reason:
            raise self._provider.broken("a block began twice, or out of place")
        self._seen.add(index)
        call = None
        words = ""
        if block.type == "tool_use":
            call = self._collected.call(block.id or "", block.name or "")
        elif block.type == "text" and block.text:
            words = block.text
            self._collected.say(words)
        self._open[index] = (block.type, call)
        return words

    def _add(self, index: int, delta: Delta) -> str:
        opened = self._open.get(index)
        if opened is None:
            raise self._provider.broken("it went on with a block that was not open")
        kind, call = opened
        match delta.type:
            case "text_delta" if kind == "text":
                words = delta.text or ""
                self._collected.say(words)
                return words
            case "input_json_delta" if call is not None:
                self._collected.argue(call, delta.partial_json or "")
            case "text_delta" | "input_json_delta" if kind in {"text", "tool_use"}:
                raise self._provider.broken(f"a {delta.type} in a block of {kind}")
            case _:
                pass  # thinking, signatures, and what will be added
        return ""

    def _count(self, counts: AnthropicCounts | None) -> None:
        if counts is not None:
            said = msgspec.structs.asdict(counts).items()
            self._counts |= {name: count for name, count in said if count is not None}

    def _stop(self) -> None:
        if self._open:
            raise self._provider.broken("it stopped with a block still open")
        if not self._stop_reason:
            raise self._provider.broken("it stopped without a stop reason")
        self._is_whole = True

    def take_whole(self, body: bytes) -> str:
        """Read an answer in one piece; see the port."""
        message = self._decode(MESSAGE, body, "the answer")
        if message.type != "message":
            raise self._provider.stream_error(said_by(message.error or ErrorBody()))
        self._begin(message)
        words = ""
        for index, block in enumerate(message.content):
            words += self._open_block(index, block)
            _, call = self._open.pop(index)
            if call is not None:
                self._collected.argue(call, bytes(block.input).decode())
        self._stop_reason = message.stop_reason or ""
        self._stop()
        return words

    def finish(self, request_id: str) -> ModelAnswer:
        """Give the whole answer, after the last event.

        Raises:
            ModelBusyError: the stream was cut off before its end, or broke the
                protocol.
            ModelRefusedError: the answer was stopped by the provider's filter, or
                a tool call by the token limit.
        """
        if not self._is_whole:
            text = "the stream ended without message_stop"
            raise self._provider.busy(text, "protocol")
        if self._stop_reason == "refusal":
            # What was said before is to be thrown away, says the API.
            text = "its content filter stopped the answer"
            raise self._provider.refused(text, "content")
        ending = ENDINGS.get(self._stop_reason)
        if ending is None:
            why = self._provider.quote(self._stop_reason)
            raise self._provider.broken(f"it stopped for an unknown reason{why}")
        self._collected.usage = self.usage
        return self._collected.finish(ending, request_id)

    @property
    def usage(self) -> Usage:
        """The tokens told so far: the provider counts the cache's part by itself."""
        counts = self._counts
        cached = counts.get("cache_read_input_tokens", 0)
        written = counts.get("cache_creation_input_tokens", 0)
        fresh = counts.get("input_tokens", 0)
        if min(fresh, written, cached) < 0:
            return Usage()
        return believable(
            fresh + written + cached, counts.get("output_tokens", 0), cached
        )
