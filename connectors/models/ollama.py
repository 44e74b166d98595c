"""An Ollama server, by its own chat interface; the shortest of those over HTTP.

Made for `kind = "ollama"`. Begin here to add a model over HTTP. What is sent, and what
comes back; the talking is `connectors/models/http/client.py`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator

import httpx
import msgspec

from actors.messages.inbound import Image, ModelAnswer, ModelRequest, TranscriptLine
from connectors.config.models import OllamaModelConfig
from connectors.models.format import (
    Ending,
    Question,
    StreamedAnswer,
    ToolNames,
    believable,
)
from connectors.models.http.client import HttpModel, LineFraming
from connectors.models.openai.request import (
    FROM_TOOL,
    SentTool,
    object_arguments,
    sent_tool,
)
from connectors.models.provider_errors import ErrorContext, Said


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


class SentFunction(msgspec.Struct, frozen=True):
    """A called function, as sent."""

    name: str
    arguments: msgspec.Raw


class SentCall(msgspec.Struct, frozen=True):
    """A tool call of an earlier answer, as sent."""

    function: SentFunction


class SentMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line, as sent."""

    role: str
    content: str
    images: tuple[str, ...] = ()
    tool_calls: tuple[SentCall, ...] = ()
    tool_name: str = ""


class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the answer is made, as sent."""

    temperature: float | None = None
    num_predict: int | None = None
    num_ctx: int | None = None


class Body(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The whole request, as sent. Thinking is neither asked for nor forbidden."""

    model: str
    messages: tuple[SentMessage, ...]
    stream: bool | None = None
    tools: tuple[SentTool, ...] = ()
    options: Options = Options()


ENCODER = msgspec.json.Encoder()


def encode_request(
    request: ModelRequest,
    names: ToolNames,
    context_tokens: int | None,
    *,
    stream: bool,
) -> bytes:
    """Write a request as JSON."""
    lines = tuple(sent_lines(request.lines, names))
    if request.system:
        lines = (SentMessage("system", request.system), *lines)
    return ENCODER.encode(
        Body(
            model=request.model,
            messages=lines,
            stream=stream,
            tools=tuple(sent_tool(tool, names) for tool in request.tools),
            options=Options(
                temperature=request.temperature,
                num_predict=request.max_tokens,
                num_ctx=context_tokens,
            ),
        )
    )


def sent_lines(
    lines: Iterable[TranscriptLine], names: ToolNames
) -> Iterator[SentMessage]:
    """Translate a transcript; pictures from tools follow the results."""
    called: dict[str, str] = {}
    shown: list[Image] = []
    for line in lines:
        if line.role == "tool":
            name = called.get(line.tool_call_id, "")
            yield SentMessage("tool", line.text, tool_name=name)
            shown += line.images
            continue
        if shown:
            yield SentMessage("user", FROM_TOOL, encoded(shown))
            shown = []
        called |= {call.id: names.sent(call.name) for call in line.tool_calls}
        calls = tuple(
            SentCall(
                SentFunction(
                    names.sent(call.name),
                    msgspec.Raw(object_arguments(call.arguments)),
                )
            )
            for call in line.tool_calls
        )
        yield SentMessage(line.role, line.text, encoded(line.images), calls)
    if shown:
        yield SentMessage("user", FROM_TOOL, encoded(shown))


def encoded(images: Iterable[Image]) -> tuple[str, ...]:
    """Write pictures as the API wants them: bare, without a media type."""
    return tuple(base64.b64encode(each.content).decode("ascii") for each in images)


PATH = "/api/chat"


class ErrorBody(msgspec.Struct, frozen=True):
    """An error response."""

    error: str | None = None


class OllamaFormat:
    """Ollama's chat; see `format.Format`."""

    takes_names = False
    stream_type = "application/x-ndjson"
    request_id_header = ""

    def __init__(self, config: OllamaModelConfig) -> None:
        self._config = config

    def headers(self, key: str) -> dict[str, str]:
        """Send the key, which only servers behind a gate ask for, as a bearer token."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def framing(self) -> LineFraming:
        """Cut a stream into lines."""
        return LineFraming()

    def ask(self, request: ModelRequest, provider: ErrorContext) -> Question:
        """Write a request."""
        config = self._config
        names = ToolNames(request.tools)
        body = encode_request(
            request, names, config.context_tokens, stream=config.stream
        )
        return Question(PATH, body, Assembly(request, names, provider))

    def read_error(self, body: bytes) -> Said:
        """Find the error in a response's body: a sentence, without any code."""
        try:
            return Said(msgspec.json.decode(body, type=ErrorBody).error)
        except (ValueError, RecursionError):
            return Said()


def make_model(
    config: OllamaModelConfig,
    wall_clock: Callable[[], float],
    transport: httpx.AsyncBaseTransport | None = None,
) -> HttpModel:
    """Make the model that an account's settings describe; see `HttpModel`."""
    form = OllamaFormat(config)
    return HttpModel(config, form, wall_clock=wall_clock, transport=transport)
