"""Adapts a request to its model, and estimates its tokens. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from actors.messages.inbound import ModelRequest, TranscriptLine, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.models.pool import ModelOffer

_MARK = re.compile(r"(?i)\[IMAGE:[^\]\n]{0,2000}\]")

UNSEEN = "[Image not shown: the model cannot see]"

# Source: the usual divisor of token estimates.
CHARACTERS_PER_TOKEN = 4

# Chosen: usual largest answer without a limit. Only the amount reserved from a budget
# during a call depends on it.
USUAL_ANSWER = 1000

# Chosen: tokens that providers count for one picture of usual size.
PICTURE_TOKENS = 1000


def fit(request: ModelRequest, offer: ModelOffer) -> ModelRequest:
    """Remove what a model does not support, and set the model's name."""
    lines = request.lines
    if not offer.takes_images:
        lines = tuple(map(without_images, lines))
    if not offer.takes_tools:
        lines = tuple(without_calls(lines))
    tools = request.tools if offer.takes_tools else ()
    return msgspec.structs.replace(
        request,
        model=offer.model,
        lines=lines,
        tools=tools,
        extra_body=offer.extra_body,
    )


def without_images(line: TranscriptLine) -> TranscriptLine:
    """Replace each picture and its marker by a text that says so."""
    words, marked = _MARK.subn(UNSEEN, line.text)
    if not line.images and not marked:
        return line
    unmarked = [UNSEEN] * (len(line.images) - marked)
    text = "\n".join([words, *unmarked] if words else unmarked)
    return msgspec.structs.replace(line, text=text, images=())


def without_calls(lines: tuple[TranscriptLine, ...]) -> Iterator[TranscriptLine]:
    """Replace tool calls and results by text."""
    names: dict[str, str] = {}
    for line in lines:
        if line.role == "tool":
            tool = names.get(line.tool_call_id, "a tool")
            text = f"[Result of {tool}]\n{line.text}"
            yield msgspec.structs.replace(line, role="user", text=text, tool_call_id="")
        elif line.tool_calls:
            names |= {call.id: call.name for call in line.tool_calls}
            if line.text:
                yield msgspec.structs.replace(line, tool_calls=())
        else:
            yield line


def tokens_of(text: str) -> int:
    """Estimate the tokens of a text."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def estimate(request: ModelRequest) -> Usage:
    """Estimate the tokens of a call."""
    characters = len(request.system)
    pictures = 0
    for line in request.lines:
        characters += len(line.text)
        if line.tool_calls:
            characters += sum([len(call.arguments) for call in line.tool_calls])
        pictures += len(line.images)
    characters += sum(
        [len(tool.description) + len(tool.parameters) for tool in request.tools]
    )
    tokens = -(-characters // CHARACTERS_PER_TOKEN) + pictures * PICTURE_TOKENS
    return Usage(tokens, request.max_tokens or USUAL_ANSWER)
