"""A request made fit for the model that is asked; what it may take; pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from actors.messages import Line, ModelRequest, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.rules.accounts import Offer

_MARK = re.compile(r"(?i)\[IMAGE:[^\]\n]{0,2000}\]")

UNSEEN = "[Image not shown: the model cannot see]"

# Source: what every estimate in this field divides by.
CHARACTERS_PER_TOKEN = 4

# Chosen: what an answer has at most, mostly, where nothing bounds it. Only what is
# held back of a budget while a call is under way depends on it.
USUAL_ANSWER = 1000

# Chosen: what providers count for one picture of usual size.
PICTURE_TOKENS = 1000


def fit(request: ModelRequest, offer: Offer) -> ModelRequest:
    """Leave out what a model cannot take, and name the model."""
    lines = request.lines
    if not offer.takes_images:
        lines = tuple(map(without_images, lines))
    if not offer.takes_tools:
        lines = tuple(without_calls(lines))
    tools = request.tools if offer.takes_tools else ()
    return msgspec.structs.replace(request, model=offer.model, lines=lines, tools=tools)


def without_images(line: Line) -> Line:
    """Say in the place of each picture, and of each mark of one, that there was one."""
    words = _MARK.sub(UNSEEN, line.text) if "[" in line.text else line.text
    if not line.images and words == line.text:
        return line
    marks = [UNSEEN] * len(line.images)
    text = "\n".join([words, *marks] if words else marks)
    return msgspec.structs.replace(line, text=text, images=())


def without_calls(lines: tuple[Line, ...]) -> Iterator[Line]:
    """Tell of calls and their results in words."""
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
    """Reckon the tokens of a text."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def estimate(request: ModelRequest) -> Usage:
    """Estimate what a call may take."""
    characters = len(request.system)
    pictures = 0
    for line in request.lines:
        characters += len(line.text)
        if line.tool_calls:
            characters += sum(len(call.arguments) for call in line.tool_calls)
        pictures += len(line.images)
    characters += sum(
        len(tool.description) + len(tool.parameters) for tool in request.tools
    )
    tokens = -(-characters // CHARACTERS_PER_TOKEN) + pictures * PICTURE_TOKENS
    return Usage(tokens, request.max_tokens or USUAL_ANSWER)
