"""A transcript as the body of a Chat Completions request.

Pure. Pictures travel as data addresses on user lines; those that a tool gave back
follow its result on a line of their own, because results are text alone here.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Literal

import msgspec

from actors.messages.inbound import (
    Image,
    ModelRequest,
    ToolCall,
    ToolSpec,
    TranscriptLine,
)
from connectors.models.format import CallIds, ToolNames, allowed_name

MaxTokensName = Literal["max_tokens", "max_completion_tokens"]

FROM_TOOL = "[Pictures from the tool]"


class TextPart(msgspec.Struct, frozen=True):
    """Words among pictures, as sent."""

    text: str
    type: str = "text"


class ImageUrl(msgspec.Struct, frozen=True):
    """Where a picture is: in the address itself."""

    url: str


class ImagePart(msgspec.Struct, frozen=True):
    """A picture, as sent."""

    image_url: ImageUrl
    type: str = "image_url"


Parts = tuple[TextPart | ImagePart, ...]


class SentFunction(msgspec.Struct, frozen=True):
    """A called function, as sent."""

    name: str
    arguments: str


class SentCall(msgspec.Struct, frozen=True):
    """A tool call of an earlier answer, as sent."""

    id: str
    function: SentFunction
    type: str = "function"


class SentMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line, as sent."""

    role: str
    content: str | Parts
    name: str = ""
    tool_calls: tuple[SentCall, ...] = ()
    tool_call_id: str = ""


class SentSpec(msgspec.Struct, frozen=True):
    """What a tool is for, as sent."""

    name: str
    description: str
    parameters: msgspec.Raw


class SentTool(msgspec.Struct, frozen=True):
    """A tool on offer, as sent."""

    function: SentSpec
    type: str = "function"


class StreamOptions(msgspec.Struct, frozen=True):
    """Asks for the token counts, which a stream leaves out otherwise."""

    include_usage: bool = True


class Body(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The whole request, as sent."""

    model: str
    messages: tuple[SentMessage, ...]
    stream: Literal[True] | None = None
    stream_options: StreamOptions | None = None
    tools: tuple[SentTool, ...] = ()
    temperature: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None


ENCODER = msgspec.json.Encoder()


def encode_request(
    request: ModelRequest,
    names: ToolNames,
    max_tokens_name: MaxTokensName,
    *,
    stream: bool,
) -> bytes:
    """Write a request as JSON."""
    ids = CallIds()
    lines = tuple(sent_lines(request.lines, names, ids))
    if request.system:
        lines = (SentMessage("system", request.system), *lines)
    is_new_name = max_tokens_name == "max_completion_tokens"
    return ENCODER.encode(
        Body(
            model=request.model,
            messages=lines,
            stream=True if stream else None,
            stream_options=StreamOptions() if stream else None,
            tools=tuple(sent_tool(tool, names) for tool in request.tools),
            temperature=request.temperature,
            max_tokens=None if is_new_name else request.max_tokens,
            max_completion_tokens=request.max_tokens if is_new_name else None,
        )
    )


def sent_lines(
    lines: tuple[TranscriptLine, ...], names: ToolNames, ids: CallIds
) -> Iterator[SentMessage]:
    """Translate a transcript."""
    shown: list[Image] = []
    for line in lines:
        if line.role == "tool":
            call_id = ids.of_result(line.tool_call_id)
            yield SentMessage("tool", line.text, tool_call_id=call_id)
            shown += line.images
            continue
        if shown:  # after all results: nothing may come between them
            yield SentMessage("user", parts(FROM_TOOL, shown))
            shown = []
        calls = line.tool_calls
        yield SentMessage(
            line.role,
            parts(line.text, line.images) if line.images else line.text,
            name=allowed_name(line.name) if line.name else "",
            tool_calls=tuple(sent_call(x, names, ids) for x in calls) if calls else (),
        )
    if shown:
        yield SentMessage("user", parts(FROM_TOOL, shown))


def parts(text: str, images: tuple[Image, ...] | list[Image]) -> Parts:
    """Put words and pictures together."""
    words = (TextPart(text),) if text else ()
    return (*words, *(ImagePart(ImageUrl(data_url(image))) for image in images))


def data_url(image: Image) -> str:
    """Write a picture as an address that holds it."""
    content = base64.b64encode(image.content).decode("ascii")
    return f"data:{image.media_type};base64,{content}"


def sent_call(call: ToolCall, names: ToolNames, ids: CallIds) -> SentCall:
    """Translate a call of an earlier round."""
    arguments = object_arguments(call.arguments).decode()
    name = names.sent(call.name)
    return SentCall(ids.of_call(call.id), SentFunction(name, arguments))


def object_arguments(arguments: bytes) -> bytes:
    """Give a call's arguments if they are a JSON object, else an empty one.

    Why: a provider that checks them would refuse this conversation for ever, and the
    tool's answer says what was wrong with them.
    """
    try:
        msgspec.json.decode(arguments, type=dict[str, msgspec.Raw])
        arguments.decode()
    except (ValueError, RecursionError):
        return b"{}"
    return arguments


def sent_tool(tool: ToolSpec, names: ToolNames) -> SentTool:
    """Translate a tool on offer."""
    parameters = msgspec.Raw(tool.parameters)
    return SentTool(SentSpec(names.sent(tool.name), tool.description, parameters))
