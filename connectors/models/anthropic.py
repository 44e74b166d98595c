"""Anthropic's Messages, or any server that speaks it.

Made for `kind = "anthropic"`: errors, what is sent, what comes back, and the model; the
talking is `connectors/models/http/client.py`. Pure but for that. The API refuses empty
texts, turns that do not alternate, ids of a shape that is not its own, and calls of
earlier rounds where no tools are on offer. A stream counts as whole only with
`message_stop`, a stop reason, and every block closed. Blocks of thinking are skipped:
they are not for people.

Source: the API's page on errors, and the wording of its billing errors.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Literal

import httpx
import msgspec

from actors.errors import ModelFault
from actors.messages.inbound import (
    Image,
    ModelAnswer,
    ModelRequest,
    TranscriptLine,
    Usage,
)
from connectors.config.models import AnthropicModelConfig
from connectors.models.format import (
    CallIds,
    Ending,
    PartialCall,
    Question,
    StreamedAnswer,
    ToolNames,
    Turn,
    believable,
    turns,
)
from connectors.models.http.client import HttpModel, SseFraming
from connectors.models.openai.request import object_arguments
from connectors.models.provider_errors import ErrorContext, Said

TYPES: dict[str, ModelFault] = {
    "authentication_error": "auth",
    "permission_error": "auth",
    "billing_error": "quota",
    "rate_limit_error": "rate",
    "request_too_large": "context",
    "overloaded_error": "overload",
    "api_error": "overload",
    "timeout_error": "timeout",
}
WRONG_REQUEST = frozenset({"invalid_request_error", "not_found_error"})

# Some of these come as `invalid_request_error` (400) or `rate_limit_error` (429).
USED_UP = re.compile(
    r"credit balance is too low|spend.?limit|usage limits?\b.*regain access"
    r"|workspace api usage limits",
    re.IGNORECASE,
)
FILTERED = re.compile(r"blocked by content filtering|usage policy", re.IGNORECASE)


class ErrorBody(msgspec.Struct, frozen=True):
    """The object under `error`."""

    type: str | None = None
    message: str | None = None


class ErrorEnvelope(msgspec.Struct, frozen=True):
    """An error response."""

    error: ErrorBody | None = None


def read_error(body: bytes) -> Said:
    """Find the error in a response's body."""
    try:
        envelope = msgspec.json.decode(body, type=ErrorEnvelope)
    except (ValueError, RecursionError):
        return Said()
    return said_by(envelope.error or ErrorBody())


def said_by(error: ErrorBody) -> Said:
    """Read the object under `error`."""
    kind = TYPES.get(error.type or "")
    message = error.message or ""
    if USED_UP.search(message):
        kind = "quota"
    elif FILTERED.search(message):
        kind = "content"
    return Said(error.message, kind, status=400 if error.type in WRONG_REQUEST else 0)


NOTHING = "[nothing]"
"""Stands for a turn without a word."""

EARLIER_TOOL = "A tool of earlier in the conversation; not on offer now."
ANY_OBJECT = b'{"type":"object"}'

# Source: the API's reference: "input_schema does not support oneOf, allOf, or anyOf
# at the top level".
NOT_AT_TOP = ("oneOf", "allOf", "anyOf")


class TextBlock(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """Words, as sent."""

    text: str


class ImageSource(msgspec.Struct, frozen=True):
    """A picture's bytes, as sent."""

    media_type: str
    data: str
    type: str = "base64"


class ImageBlock(msgspec.Struct, frozen=True, tag_field="type", tag="image"):
    """A picture, as sent."""

    source: ImageSource


class CallBlock(msgspec.Struct, frozen=True, tag_field="type", tag="tool_use"):
    """A tool call of an earlier answer, as sent."""

    id: str
    name: str
    input: msgspec.Raw


class ResultBlock(msgspec.Struct, frozen=True, tag_field="type", tag="tool_result"):
    """What a tool gave back, as sent."""

    tool_use_id: str
    content: str | tuple[TextBlock | ImageBlock, ...]


Block = TextBlock | ImageBlock | CallBlock | ResultBlock


class SentMessage(msgspec.Struct, frozen=True):
    """One turn, as sent."""

    role: Literal["user", "assistant"]
    content: tuple[Block, ...]


class SentTool(msgspec.Struct, frozen=True):
    """A tool on offer, as sent."""

    name: str
    description: str
    input_schema: msgspec.Raw


class Choice(msgspec.Struct, frozen=True):
    """Whether tools may be called, as sent."""

    type: str


class Body(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The whole request, as sent.

    Thinking is never asked for: with it the API wants the signed thoughts of a tool
    round back, which a transcript does not keep.
    """

    model: str
    max_tokens: int
    messages: tuple[SentMessage, ...]
    system: str = ""
    stream: bool = False
    tools: tuple[SentTool, ...] = ()
    tool_choice: Choice | None = None
    temperature: float | None = None


ENCODER = msgspec.json.Encoder()


def encode_request(
    request: ModelRequest, names: ToolNames, max_tokens: int, *, stream: bool
) -> bytes:
    """Write a request as JSON.

    Args:
        names: how its tools are called towards the provider.
        max_tokens: bounds the answer where the request does not.
        stream: whether the answer is to come word by word.
    """
    ids = CallIds()
    tools = tuple(
        SentTool(names.sent(tool.name), tool.description, schema(tool.parameters))
        for tool in request.tools
    )
    earlier = () if tools else earlier_tools(request.lines, names)
    temperature = request.temperature
    return ENCODER.encode(
        Body(
            model=request.model,
            max_tokens=request.max_tokens or max_tokens,
            messages=tuple(
                sent_turn(turn, names, ids) for turn in turns(request.lines)
            ),
            system=request.system,
            stream=stream,
            tools=tools or earlier,
            tool_choice=Choice("none") if earlier else None,
            # The API allows up to 1 where others allow up to 2.
            temperature=None if temperature is None else min(temperature, 1.0),
        )
    )


def earlier_tools(
    lines: tuple[TranscriptLine, ...], names: ToolNames
) -> tuple[SentTool, ...]:
    """Describe the tools of earlier rounds, for a round without tools.

    Why: "Requests which include `tool_use` or `tool_result` blocks must define tools".
    """
    called = dict.fromkeys(
        names.sent(call.name) for line in lines for call in line.tool_calls
    )
    any_object = msgspec.Raw(ANY_OBJECT)
    return tuple(SentTool(name, EARLIER_TOOL, any_object) for name in called)


def sent_turn(turn: Turn, names: ToolNames, ids: CallIds) -> SentMessage:
    """Translate one turn."""
    blocks = tuple(
        block for line in turn.lines for block in sent_line(line, names, ids)
    )
    # Results come first in their turn, or the API does not find them.
    results = tuple(block for block in blocks if isinstance(block, ResultBlock))
    others = tuple(block for block in blocks if not isinstance(block, ResultBlock))
    content = (*results, *others) or (TextBlock(NOTHING),)
    return SentMessage("user" if turn.is_user else "assistant", content)


def sent_line(line: TranscriptLine, names: ToolNames, ids: CallIds) -> Iterator[Block]:
    """Translate one line; nothing of it may be empty."""
    if line.role == "tool":
        yield ResultBlock(ids.of_result(line.tool_call_id), result(line))
        return
    if line.text.strip():
        yield TextBlock(line.text)
    yield from map(sent_image, line.images)
    for call in line.tool_calls:
        arguments = msgspec.Raw(object_arguments(call.arguments))
        yield CallBlock(ids.of_call(call.id), names.sent(call.name), arguments)


def result(line: TranscriptLine) -> str | tuple[TextBlock | ImageBlock, ...]:
    """Translate what a tool gave back."""
    if not line.images:
        return line.text
    words = (TextBlock(line.text),) if line.text.strip() else ()
    return (*words, *map(sent_image, line.images))


def sent_image(image: Image) -> ImageBlock:
    """Translate a picture."""
    content = base64.b64encode(image.content).decode("ascii")
    return ImageBlock(ImageSource(image.media_type, content))


@lru_cache(maxsize=1024)
def schema(parameters: bytes) -> msgspec.Raw:
    """Bring a tool's JSON schema into the shape that the API takes."""
    decoded = msgspec.json.decode(parameters, type=dict[str, msgspec.Raw])
    for word in NOT_AT_TOP:
        decoded.pop(word, None)
    decoded["type"] = msgspec.Raw(b'"object"')
    return msgspec.Raw(msgspec.json.encode(decoded))


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


class ReceivedBlock(msgspec.Struct, frozen=True):
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
    content: tuple[ReceivedBlock, ...] = ()
    stop_reason: str | None = None
    usage: AnthropicCounts | None = None
    error: ErrorBody | None = None


class Event(msgspec.Struct, frozen=True):
    """One event's data."""

    type: str
    index: int = 0
    message: Message | None = None
    content_block: ReceivedBlock | None = None
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

    def _open_block(self, index: int, block: ReceivedBlock) -> str:
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
        """Give the whole answer, after the last event; see `format.Assembly`."""
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


PATH = "/messages"
VERSION = "2023-06-01"
"""The API's only version to date; it never changes what a version means."""


class AnthropicFormat:
    """Anthropic's Messages; see `format.Format`."""

    takes_names = False
    stream_type = "text/event-stream"
    request_id_header = "request-id"

    def __init__(self, config: AnthropicModelConfig) -> None:
        self._config = config

    def headers(self, key: str) -> dict[str, str]:
        """Send the API's version, and the key in a header of its own."""
        headers = {"anthropic-version": VERSION}
        return headers | {"x-api-key": key} if key else headers

    def framing(self) -> SseFraming:
        """Cut a stream into server-sent events."""
        return SseFraming()

    def ask(self, request: ModelRequest, provider: ErrorContext) -> Question:
        """Write a request."""
        config = self._config
        names = ToolNames(request.tools)
        body = encode_request(request, names, config.max_tokens, stream=config.stream)
        return Question(PATH, body, Assembly(request, names, provider))

    def read_error(self, body: bytes) -> Said:
        """Find the error in a response's body."""
        return read_error(body)


def make_model(
    config: AnthropicModelConfig,
    wall_clock: Callable[[], float],
    transport: httpx.AsyncBaseTransport | None = None,
) -> HttpModel:
    """Make the model that an account's settings describe; see `HttpModel`."""
    form = AnthropicFormat(config)
    return HttpModel(config, form, wall_clock=wall_clock, transport=transport)
