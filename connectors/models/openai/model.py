"""Any provider that speaks OpenAI's Chat Completions: errors, answers, the model.

What is sent is in `request.py`; `responses.py` has the Responses API, whose model is
made here, too. The talking is `connectors/models/http/client.py`. Errors are read in
OpenAI's own shape and in those of the many that speak its language.

A stream counts as whole only with a finish reason and the end marker `[DONE]`. What a
model thinks (`reasoning_content`) is not read: it is not for people, and those who want
it back do so only where thinking was asked for, which is not done here.
"""

from __future__ import annotations

from collections.abc import Callable

import httpx
import msgspec

from actors.messages.inbound import ModelAnswer, ModelRequest, Usage
from connectors.config.models import OpenAIModelConfig, OpenAIResponsesModelConfig
from connectors.models.format import (
    Ending,
    PartialCall,
    Question,
    StreamedAnswer,
    ToolNames,
    believable,
)
from connectors.models.http.client import HttpModel, SseFraming
from connectors.models.openai import responses
from connectors.models.openai.request import encode_request
from connectors.models.provider_errors import (
    ErrorBody,
    ErrorContext,
    Said,
    read_openai_error,
    said_by,
)

END_MARKER = b"[DONE]"


class FunctionDelta(msgspec.Struct, frozen=True):
    """A piece of a called function, or the whole."""

    name: str | None = None
    arguments: str | None = None


class CallDelta(msgspec.Struct, frozen=True):
    """A piece of a tool call, or the whole."""

    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None


class Part(msgspec.Struct, frozen=True):
    """A piece of content, where it comes in pieces of several kinds."""

    type: str = ""
    text: str | None = None


class Delta(msgspec.Struct, frozen=True):
    """What one event adds, or a whole message."""

    content: str | tuple[Part, ...] | None = None
    """Pieces with Mistral's models that think: thoughts are pieces then."""

    refusal: str | None = None
    tool_calls: tuple[CallDelta, ...] | None = None


class Choice(msgspec.Struct, frozen=True):
    """One of several answers; only the first was asked for."""

    index: int = 0
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None


class PromptDetails(msgspec.Struct, frozen=True):
    """Where the tokens read came from."""

    cached_tokens: int | float | None = None


class OpenAICounts(msgspec.Struct, frozen=True):
    """The provider's token counts."""

    prompt_tokens: int | float | None = None
    completion_tokens: int | float | None = None
    prompt_tokens_details: PromptDetails | None = None

    def usage(self) -> Usage:
        """Read them; what came from the cache is among what was read."""
        details = self.prompt_tokens_details or PromptDetails()
        return believable(
            self.prompt_tokens, self.completion_tokens, details.cached_tokens
        )


class Chunk(msgspec.Struct, frozen=True):
    """One event's data, or a whole answer."""

    id: str | None = None
    choices: tuple[Choice, ...] | None = None
    usage: OpenAICounts | None = None
    error: ErrorBody | str | None = None


CHUNK = msgspec.json.Decoder(Chunk)


class Assembly(StreamedAnswer):
    """One answer in the making."""

    def __init__(
        self, request: ModelRequest, names: ToolNames, provider: ErrorContext
    ) -> None:
        super().__init__(request, names, provider)
        self._at: dict[int, PartialCall] = {}
        self._finish_reason = ""
        self._declined = False
        self._saw_end = False

    @property
    def is_whole(self) -> bool:
        """True once the stream has said all that its protocol asks for."""
        return self._saw_end and bool(self._finish_reason)

    def take(self, event: bytes) -> str:
        """Add an event; see the port."""
        if self._saw_end:
            return ""  # some say `[DONE]` twice; nothing counts after the first
        if event == END_MARKER:
            self._saw_end = True
            return ""
        chunk = self._read(event)
        words = ""
        for choice in chunk.choices or ():
            if choice.index == 0:
                words += self._take_delta(choice.delta or Delta())
                self._finish_reason = choice.finish_reason or self._finish_reason
        return words

    def take_whole(self, body: bytes) -> str:
        """Read an answer in one piece; see the port."""
        chunk = self._read(body)
        first = [choice for choice in chunk.choices or () if choice.index == 0]
        if len(first) != 1 or first[0].message is None:
            raise self._provider.broken("the answer has no message")
        words = self._take_delta(first[0].message)
        self._finish_reason = first[0].finish_reason or ""
        self._saw_end = True
        return words

    def _read(self, event: bytes) -> Chunk:
        chunk = self._decode(CHUNK, event)
        if chunk.error is not None:
            raise self._provider.stream_error(said_by(chunk.error))
        if chunk.usage is not None:
            self._collected.usage = chunk.usage.usage()
        if chunk.id:
            self._collected.request_id = chunk.id
        return chunk

    def _take_delta(self, delta: Delta) -> str:
        content = delta.content or ""
        words = content if isinstance(content, str) else words_of(content)
        if delta.refusal:
            words += delta.refusal
            self._declined = True
        if self._finish_reason and (words or delta.tool_calls):
            raise self._provider.broken("it went on after its end")
        if words:
            self._collected.say(words)
        for piece in delta.tool_calls or ():
            self._take_call(piece)
        return words

    def _take_call(self, piece: CallDelta) -> None:
        calls = self._collected.calls
        index = len(calls) if piece.index is None else piece.index
        if piece.index is None and not piece.id and calls:
            index = len(calls) - 1  # goes on with the call before
        call = self._at.get(index)
        # Some number all parallel calls 0 and tell them apart by id only.
        if call is None or (piece.id and call.id and piece.id != call.id):
            call = self._at[index] = self._collected.call(piece.id or "")
        call.id = call.id or self._collected.grown(piece.id or "")
        function = piece.function
        if function is None:
            return
        # Some send the name again with every piece, so only a new one is added.
        if function.name and function.name != call.name:
            call.name += self._collected.grown(function.name)
        if function.arguments:
            self._collected.argue(call, function.arguments)

    def finish(self, request_id: str) -> ModelAnswer:
        """Give the whole answer, after the last event; see `format.Assembly`."""
        if not self.is_whole:
            missing = "its end marker" if self._finish_reason else "a finish reason"
            text = f"the stream ended without {missing}"
            raise self._provider.busy(text, "protocol")
        if self._finish_reason == "error":
            raise self._provider.busy("gave up in mid-answer", "overload")
        if self._finish_reason == "content_filter":
            text = "its content filter stopped the answer"
            raise self._provider.refused(text, "content")
        return self._collected.finish(self._ending(), request_id)

    def _ending(self) -> Ending:
        if self._finish_reason == "length":
            return "length"
        return "refused" if self._declined else "end"


def words_of(parts: tuple[Part, ...]) -> str:
    """Give the words among the pieces, without thoughts and whatever else there is."""
    return "".join(part.text or "" for part in parts if part.type == "text")


class OpenAIManners:
    """What both formats have in common; see `format.Format`."""

    stream_type = "text/event-stream"
    request_id_header = "x-request-id"

    def headers(self, key: str) -> dict[str, str]:
        """Send the key as a bearer token."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def framing(self) -> SseFraming:
        """Cut a stream into server-sent events."""
        return SseFraming()

    def read_error(self, body: bytes) -> Said:
        """Find the error in a response's body."""
        return read_openai_error(body)


class OpenAIFormat(OpenAIManners):
    """OpenAI's Chat Completions."""

    takes_names = True

    def __init__(self, config: OpenAIModelConfig) -> None:
        self._config = config

    def ask(self, request: ModelRequest, provider: ErrorContext) -> Question:
        """Write a request."""
        config = self._config
        names = ToolNames(request.tools)
        body = encode_request(
            request, names, config.max_tokens_name, stream=config.stream
        )
        return Question("/chat/completions", body, Assembly(request, names, provider))


class OpenAIResponsesFormat(OpenAIManners):
    """OpenAI's Responses API."""

    takes_names = False

    def __init__(self, config: OpenAIResponsesModelConfig) -> None:
        self._config = config
        self._thoughts = responses.Thoughts()

    def ask(self, request: ModelRequest, provider: ErrorContext) -> Question:
        """Write a request."""
        names, thoughts = ToolNames(request.tools), self._thoughts
        body = responses.encode_request(
            request, names, thoughts, stream=self._config.stream
        )
        assembly = responses.Assembly(request, names, provider, thoughts)
        return Question("/responses", body, assembly)


def make_model(
    config: OpenAIModelConfig | OpenAIResponsesModelConfig,
    wall_clock: Callable[[], float],
    transport: httpx.AsyncBaseTransport | None = None,
) -> HttpModel:
    """Make the model that an account's settings describe; see `HttpModel`."""
    form = (
        OpenAIResponsesFormat(config)
        if isinstance(config, OpenAIResponsesModelConfig)
        else OpenAIFormat(config)
    )
    return HttpModel(config, form, wall_clock=wall_clock, transport=transport)
