"""A transcript as the body of a request to Anthropic's Messages.

Pure. The API refuses empty texts, turns that do not alternate, ids of a shape that is
not its own, and calls of earlier rounds where no tools are on offer.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

import msgspec

from actors.messages.inbound import Image, ModelRequest, TranscriptLine
from connectors.models.names import CallIds, ToolNames, Turn, turns
from connectors.models.openai.request import object_arguments

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
        request: what is to be asked.
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
