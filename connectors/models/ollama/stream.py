"""An answer of Ollama's chat, from its lines or in one piece.

Pure: fed with lines, gives back the words as they come, and at the end either a whole
answer or an error. A stream counts as whole only with a line that says `done`. What a
model thinks (`thinking`) is not read: it is not for people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from connectors.models.answer import Ending, StreamedAnswer, believable
from connectors.models.provider_errors import ErrorContext, Said

if TYPE_CHECKING:
    from actors.messages.inbound import ModelAnswer, ModelRequest
    from connectors.models.names import ToolNames


class Function(msgspec.Struct, frozen=True):
    """A called function, always whole."""

    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class StreamedCall(msgspec.Struct, frozen=True):
    """A tool call, always whole."""

    function: Function
    id: str = ""
    """Newer servers give one."""


class Message(msgspec.Struct, frozen=True):
    """What a line adds."""

    content: str | None = None
    tool_calls: tuple[StreamedCall, ...] | None = None


class Chunk(msgspec.Struct, frozen=True):
    """One line, or a whole answer."""

    message: Message | None = None
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: int | float | None = None
    eval_count: int | float | None = None
    error: str | None = None


CHUNK = msgspec.json.Decoder(Chunk)


class Assembly(StreamedAnswer):
    """One answer in the making."""

    def __init__(
        self, request: ModelRequest, names: ToolNames, provider: ErrorContext
    ) -> None:
        super().__init__(request, names, provider)
        self._done_reason: str | None = None
        self._is_done = False

    @property
    def is_whole(self) -> bool:
        """True once the server has said that it is done."""
        return self._is_done

    def take(self, event: bytes) -> str:
        """Add a line; see the port."""
        if self._is_done:
            return ""
        chunk = self._decode(CHUNK, event, "a line")
        if chunk.error is not None:
            raise self._provider.stream_error(Said(chunk.error))
        words = self._take_message(chunk.message or Message())
        if chunk.done:
            self._is_done = True
            self._done_reason = chunk.done_reason
            self._collected.usage = believable(
                chunk.prompt_eval_count, chunk.eval_count
            )
        return words

    def take_whole(self, body: bytes) -> str:
        """Read an answer in one piece: the same shape as a line."""
        return self.take(body)

    def _take_message(self, message: Message) -> str:
        words = message.content or ""
        if words:
            self._collected.say(words)
        for said in message.tool_calls or ():
            call = self._collected.call(said.id, said.function.name)
            self._collected.argue(call, bytes(said.function.arguments).decode())
        return words

    def finish(self, request_id: str) -> ModelAnswer:
        """Give the whole answer, after the last line.

        Raises:
            ModelBusyError: the stream was cut off before its end, or the model was
                only loaded.
            ModelRefusedError: a tool call was cut off by the token limit.
        """
        if not self._is_done:
            text = "the stream ended without done"
            raise self._provider.busy(text, "protocol")
        if self._done_reason in {"load", "unload"}:
            text = f"answered nothing: done_reason {self._done_reason}"
            raise self._provider.busy(text, "protocol")
        ending: Ending = "length" if self._done_reason == "length" else "end"
        return self._collected.finish(ending, request_id)
