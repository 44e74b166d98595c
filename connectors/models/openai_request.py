"""A transcript as the body of a Chat Completions request.

Pure. Names that the API would refuse are changed on the way out; `ToolNames`
knows the way back, so that nobody else sees the changed ones.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from actors.messages import Line, ModelRequest, ToolCall, ToolSpec

# Source: the API's reference, `messages[].name` and `tools[].function.name`.
FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
MAX_NAME = 64

MaxTokensName = Literal["max_tokens", "max_completion_tokens"]


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
    content: str
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


class ToolNames:
    """The tools' names as the API allows them, and back.

    Args:
        tools: the tools on offer; two never share a name as sent.
    """

    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        self._ours: dict[str, str] = {}
        for tool in tools:
            name = allowed_name(tool.name) or "tool"
            unique, number = name, 1
            while unique in self._ours:
                number += 1
                unique = f"{name[: MAX_NAME - 8]}_{number}"
            self._ours[unique] = tool.name
        self._sent = {ours: sent for sent, ours in self._ours.items()}

    def sent(self, name: str) -> str:
        """Translate a tool's name for the API."""
        return self._sent.get(name) or allowed_name(name) or "tool"

    def ours(self, name: str) -> str:
        """Translate back; a name that was not on offer stays as it is."""
        return self._ours.get(name, name)


def encode_request(
    request: ModelRequest, names: ToolNames, max_tokens_name: MaxTokensName
) -> bytes:
    """Write a request as JSON."""
    system = SentMessage("system", request.system)
    lines = tuple(sent_line(line, names) for line in request.lines)
    is_new_name = max_tokens_name == "max_completion_tokens"
    return msgspec.json.encode(
        Body(
            model=request.model,
            messages=(system, *lines) if request.system else lines,
            stream=True,
            stream_options=StreamOptions(),
            tools=tuple(sent_tool(tool, names) for tool in request.tools),
            temperature=request.temperature,
            max_tokens=None if is_new_name else request.max_tokens,
            max_completion_tokens=request.max_tokens if is_new_name else None,
        )
    )


def sent_line(line: Line, names: ToolNames) -> SentMessage:
    """Translate one line of the transcript."""
    if line.role == "tool":
        return SentMessage("tool", line.text, tool_call_id=line.tool_call_id)
    return SentMessage(
        line.role,
        line.text,
        name=allowed_name(line.name),
        tool_calls=tuple(sent_call(call, names) for call in line.tool_calls),
    )


def sent_call(call: ToolCall, names: ToolNames) -> SentCall:
    """Translate a call of an earlier round.

    Arguments that are no JSON object are left out: a provider that checks them
    would refuse this conversation for ever, and the tool's answer says what was
    wrong with them.
    """
    try:
        msgspec.json.decode(call.arguments, type=dict[str, msgspec.Raw])
        arguments = call.arguments.decode()
    except (ValueError, RecursionError):
        arguments = "{}"
    return SentCall(call.id, SentFunction(names.sent(call.name), arguments))


def sent_tool(tool: ToolSpec, names: ToolNames) -> SentTool:
    """Translate a tool on offer."""
    parameters = msgspec.Raw(tool.parameters)
    return SentTool(SentSpec(names.sent(tool.name), tool.description, parameters))


def allowed_name(name: str) -> str:
    """Change what the API forbids in a name; empty if nothing of it can stay."""
    return FORBIDDEN.sub("_", name).strip("_")[:MAX_NAME]
