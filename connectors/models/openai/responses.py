"""OpenAI's Responses API: the body of a request, and the events of its answer.

Pure, but for what is remembered of calls. The provider is asked to store nothing, so
each request holds the whole conversation: messages, calls and their results as items of
one list. What a model thinks is for nobody to read and comes encrypted; it is
remembered with the call that it led to, and goes back before that call as it came. A
stream counts as whole only with the event that ends it, `response.completed` or
`response.incomplete`.

Source: the API's reference, and its guides on function calling and reasoning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from actors.messages.inbound import (
    ModelAnswer,
    ModelRequest,
    ToolSpec,
    TranscriptLine,
    Usage,
)
from connectors.models.format import (
    CallIds,
    CallMemory,
    Ending,
    PartialCall,
    StreamedAnswer,
    ToolNames,
    believable,
)
from connectors.models.openai.request import data_url, object_arguments
from connectors.models.provider_errors import ErrorBody, ErrorContext, said_by

# Source: the API refuses less: "Expected a value >= 16".
LEAST_TOKENS = 16


class InputWords(msgspec.Struct, frozen=True, tag_field="type", tag="input_text"):
    """Words among pictures, as sent."""

    text: str


class InputPicture(msgspec.Struct, frozen=True, tag_field="type", tag="input_image"):
    """A picture, as sent: in the address itself."""

    image_url: str
    detail: str = "auto"


Parts = tuple[InputWords | InputPicture, ...]


class SentMessage(msgspec.Struct, frozen=True):
    """What a person or the model said, as sent."""

    role: Literal["user", "assistant"]
    content: str | Parts


class SentThought(msgspec.Struct, frozen=True, tag_field="type", tag="reasoning"):
    """What the model thought before a call, as sent.

    Without its id: the API would look for it among what it has stored.
    """

    summary: tuple[msgspec.Raw, ...]
    encrypted_content: str


class SentCall(msgspec.Struct, frozen=True, tag_field="type", tag="function_call"):
    """A tool call of an earlier answer, as sent."""

    call_id: str
    name: str
    arguments: str


class CallOutput(
    msgspec.Struct, frozen=True, tag_field="type", tag="function_call_output"
):
    """What a tool gave back, as sent."""

    call_id: str
    output: str | Parts


InputItem = SentMessage | SentThought | SentCall | CallOutput

Thoughts = CallMemory[tuple[SentThought, ...]]
"""What the model thought before each call."""


class SentTool(msgspec.Struct, frozen=True, tag_field="type", tag="function"):
    """A tool on offer, as sent."""

    name: str
    description: str
    parameters: msgspec.Raw
    strict: bool = False
    """The API's default refuses schemas with arguments that may be left out."""


class Body(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The whole request, as sent."""

    model: str
    input: tuple[InputItem, ...]
    store: bool
    instructions: str = ""
    stream: bool = False
    tools: tuple[SentTool, ...] = ()
    temperature: float | None = None
    max_output_tokens: int | None = None


ENCODER = msgspec.json.Encoder()


def encode_request(
    request: ModelRequest, names: ToolNames, thoughts: Thoughts, *, stream: bool
) -> bytes:
    """Write a request as JSON."""
    writer = InputWriter(request, names, thoughts)
    most = request.max_tokens
    return ENCODER.encode(
        Body(
            model=request.model,
            input=tuple(item for line in request.lines for item in writer.line(line)),
            store=False,  # or it keeps what people say for a month
            instructions=request.system,
            stream=stream,
            tools=tuple(sent_tool(tool, names) for tool in request.tools),
            temperature=request.temperature,
            max_output_tokens=None if most is None else max(most, LEAST_TOKENS),
        )
    )


class InputWriter:
    """Translates the lines of one transcript, in order."""

    def __init__(
        self, request: ModelRequest, names: ToolNames, thoughts: Thoughts
    ) -> None:
        self._request = request
        self._names = names
        self._thoughts = thoughts
        self._ids = CallIds()

    def line(self, line: TranscriptLine) -> Iterator[InputItem]:
        """Translate one line."""
        if line.role == "tool":
            yield CallOutput(self._ids.of_result(line.tool_call_id), content(line))
            return
        if line.role == "user" or line.text:
            yield SentMessage(line.role, content(line))
        for call in line.tool_calls:
            yield from self._thoughts.find(self._request, call.id) or ()
            arguments = object_arguments(call.arguments).decode()
            name = self._names.sent(call.name)
            yield SentCall(self._ids.of_call(call.id), name, arguments)


def content(line: TranscriptLine) -> str | Parts:
    """Give what a line says: its words alone, or together with its pictures."""
    if not line.images:
        return line.text
    words = (InputWords(line.text),) if line.text else ()
    return (*words, *(InputPicture(data_url(image)) for image in line.images))


def sent_tool(tool: ToolSpec, names: ToolNames) -> SentTool:
    """Translate a tool on offer."""
    parameters = msgspec.Raw(tool.parameters)
    return SentTool(names.sent(tool.name), tool.description, parameters)


LIMIT, FILTERED = "max_output_tokens", "content_filter"


class Part(msgspec.Struct, frozen=True):
    """A piece of a message."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None


class OutputItem(msgspec.Struct, frozen=True):
    """What the model made: a message, a call, or a thought."""

    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    content: tuple[Part, ...] | None = None
    summary: tuple[msgspec.Raw, ...] | None = None
    encrypted_content: str | None = None


class Kind(msgspec.Struct, frozen=True):
    """Of what kind an item is; those of other kinds may have any fields."""

    type: str = ""


class InputDetails(msgspec.Struct, frozen=True):
    """Where the tokens read came from."""

    cached_tokens: int | float | None = None


class ResponseCounts(msgspec.Struct, frozen=True):
    """The provider's token counts; thoughts are among what was written."""

    input_tokens: int | float | None = None
    output_tokens: int | float | None = None
    input_tokens_details: InputDetails | None = None

    def usage(self) -> Usage:
        """Read them; what came from the cache is among what was read."""
        details = self.input_tokens_details or InputDetails()
        return believable(self.input_tokens, self.output_tokens, details.cached_tokens)


class IncompleteDetails(msgspec.Struct, frozen=True):
    """Why the model stopped before its end."""

    reason: str | None = None


class Response(msgspec.Struct, frozen=True):
    """A whole answer, or what is known of it so far."""

    id: str | None = None
    status: str | None = None
    output: tuple[msgspec.Raw, ...] | None = None
    usage: ResponseCounts | None = None
    incomplete_details: IncompleteDetails | None = None
    error: ErrorBody | str | None = None


class ResponseEvent(msgspec.Struct, frozen=True):
    """One event's data."""

    type: str = ""
    output_index: int = 0
    item: msgspec.Raw = msgspec.Raw(b"{}")
    delta: str | None = None
    arguments: str | None = None
    response: Response | None = None
    error: ErrorBody | str | None = None
    """Where some servers have it; the API's own is flat."""

    code: str | int | None = None
    message: str | None = None


EVENT = msgspec.json.Decoder(ResponseEvent)
ITEM = msgspec.json.Decoder(OutputItem)
KIND = msgspec.json.Decoder(Kind)
RESPONSE = msgspec.json.Decoder(Response)


class Assembly(StreamedAnswer):
    """One answer in the making.

    Args:
        names: how its tools were called towards the provider.
    """

    def __init__(
        self,
        request: ModelRequest,
        names: ToolNames,
        provider: ErrorContext,
        thoughts: Thoughts,
    ) -> None:
        super().__init__(request, names, provider)
        self._memory = thoughts
        self._at: dict[int, PartialCall] = {}
        self._thoughts: list[SentThought] = []
        self._led_to: list[tuple[PartialCall, tuple[SentThought, ...]]] = []
        self._declined = False
        self._stopped = ""

    @property
    def is_whole(self) -> bool:
        """True once the answer has said how it ended."""
        return bool(self._stopped)

    def take(self, event: bytes) -> str:
        """Add an event; see the port."""
        if self.is_whole:
            return ""  # some say `[DONE]`, as in Chat Completions
        decoded = self._decode(EVENT, event)
        match decoded.type:
            case "response.output_text.delta" | "response.refusal.delta":
                is_refusal = decoded.type == "response.refusal.delta"
                return self._say(decoded.delta or "", is_refusal=is_refusal)
            case "response.function_call_arguments.delta":
                self._argue(decoded.output_index, decoded.delta or "")
            case "response.function_call_arguments.done":
                self._complete(decoded.output_index, decoded.arguments)
            case "response.output_item.added" | "response.output_item.done":
                is_done = decoded.type == "response.output_item.done"
                self._take_item(decoded.output_index, decoded.item, is_done=is_done)
            case "error":
                error = decoded.error or ErrorBody(decoded.message, code=decoded.code)
                raise self._provider.stream_error(said_by(error))
            case _ if decoded.error is not None:
                raise self._provider.stream_error(said_by(decoded.error))
            case _:
                self._end_with(decoded.response or Response())
        return ""

    def take_whole(self, body: bytes) -> str:
        """Read an answer in one piece; see the port."""
        response = self._decode(RESPONSE, body)
        words = ""
        for index, raw in enumerate(response.output or ()):
            words += self._take_item(index, raw, is_done=True, is_whole=True)
        self._end_with(response)
        if not self.is_whole:
            raise self._provider.broken("the answer does not say how it ended")
        return words

    def _say(self, words: str, *, is_refusal: bool) -> str:
        self._declined |= is_refusal
        self._collected.say(words)
        return words

    def _take_item(
        self, index: int, raw: msgspec.Raw, *, is_done: bool, is_whole: bool = False
    ) -> str:
        kind = self._decode(KIND, bytes(raw)).type
        if kind not in {"message", "function_call", "reasoning"}:
            return ""  # of tools that the provider runs itself, and what will be added
        item = self._decode(ITEM, bytes(raw))
        if kind == "function_call":
            self._take_call(index, item)
            if is_done:
                self._complete(index, item.arguments)
        elif kind == "reasoning" and is_done and item.encrypted_content:
            thought = SentThought(item.summary or (), item.encrypted_content)
            self._thoughts.append(thought)
        elif kind == "message" and is_whole:
            return "".join(map(self._say_part, item.content or ()))
        return ""

    def _say_part(self, part: Part) -> str:
        is_refusal = part.type == "refusal"
        words = part.refusal if is_refusal else part.text
        return self._say(words or "", is_refusal=is_refusal)

    def _take_call(self, index: int, item: OutputItem) -> None:
        # Some number all parallel calls 0 and tell them apart by id only.
        known = {call.id: call for call in self._collected.calls}
        call = known.get(item.call_id) if item.call_id else self._at.get(index)
        if call is None:
            call = self._collected.call(item.call_id or "", item.name or "")
            self._led_to.append((call, tuple(self._thoughts)))
            self._thoughts.clear()
        self._at[index] = call

    def _argue(self, index: int, arguments: str) -> None:
        call = self._at.get(index)
        if call is None:
            raise self._provider.broken("it gave arguments to no call")
        self._collected.argue(call, arguments)

    def _complete(self, index: int, arguments: str | None) -> None:
        """Take a call's whole arguments, if they did not come in pieces."""
        call = self._at.get(index)
        if call is None or not "".join(call.arguments):
            self._argue(index, arguments or "")

    def _end_with(self, response: Response) -> None:
        """Learn how it ended, if it has."""
        self._collected.request_id = response.id or self._collected.request_id
        if response.usage is not None:
            self._collected.usage = response.usage.usage()
        if response.error is not None or response.status == "failed":
            raise self._provider.stream_error(said_by(response.error or ErrorBody()))
        if response.status == "completed":
            self._stopped = response.status
        elif response.status == "incomplete":
            details = response.incomplete_details or IncompleteDetails()
            self._stopped = details.reason or response.status

    def finish(self, request_id: str) -> ModelAnswer:
        """Give the whole answer, after the last event; see `format.Assembly`."""
        if not self.is_whole:
            text = "the stream ended without response.completed"
            raise self._provider.busy(text, "protocol")
        if self._stopped == FILTERED:
            text = "its content filter stopped the answer"
            raise self._provider.refused(text, "content")
        if self._stopped not in {"completed", LIMIT}:
            why = self._provider.quote(self._stopped)
            raise self._provider.busy(f"gave up in mid-answer{why}", "protocol")
        answer = self._collected.finish(self._ending(), request_id)
        if answer.tool_calls:
            self._remember()
        return answer

    def _ending(self) -> Ending:
        if self._stopped == LIMIT:
            return "length"
        return "refused" if self._declined else "end"

    def _remember(self) -> None:
        for call, thoughts in self._led_to:
            if thoughts:
                size = len(msgspec.json.encode(thoughts))
                self._memory.keep(self._request, call.id, thoughts, size)
