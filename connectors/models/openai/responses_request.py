"""A transcript as the body of a request to OpenAI's Responses API.

Pure, but for what is remembered of calls. The provider is asked to store nothing, so
each request holds the whole conversation: messages, calls and their results as items of
one list. What a model thought before a call goes back before it, encrypted as it came.
Source: the API's reference, and its guides on function calling and reasoning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from connectors.models.call_memory import CallMemory
from connectors.models.names import CallIds, ToolNames
from connectors.models.openai.request import data_url, object_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.messages.inbound import ModelRequest, ToolSpec, TranscriptLine

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
