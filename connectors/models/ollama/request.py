"""A transcript as the body of a request to Ollama's chat.

Pure. Calls carry no ids: results are matched by the tool's name and their order.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import msgspec

from connectors.models.openai.request import (
    FROM_TOOL,
    SentTool,
    object_arguments,
    sent_tool,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from actors.messages.inbound import Image, ModelRequest, TranscriptLine
    from connectors.models.names import ToolNames


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
