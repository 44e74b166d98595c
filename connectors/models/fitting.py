"""Leaves out of a request what its model cannot take, and says so in its place.

Pure. A model that cannot see is told that there was a picture; one that cannot call
tools reads of earlier calls as of something that happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.messages import Line, ModelRequest

UNSEEN = "[Image not shown: the model cannot see]"


def fitted(
    request: ModelRequest, *, sees: bool, calls: bool, names: bool
) -> ModelRequest:
    """Fit a request to its model; unchanged if there is nothing to leave out.

    Args:
        request: what is to be asked.
        sees: whether the model takes pictures.
        calls: whether it takes tools.
        names: whether a line can say who spoke.
    """
    lines = request.lines
    if not sees and any(line.images for line in lines):
        lines = tuple(map(without_images, lines))
    if not calls and any(line.tool_calls or line.tool_call_id for line in lines):
        lines = tuple(without_calls(lines))
    if not names and has_several_speakers(lines):
        lines = tuple(map(with_name, lines))
    tools = request.tools if calls else ()
    if lines is request.lines and tools is request.tools:
        return request
    return msgspec.structs.replace(request, lines=lines, tools=tools)


def without_images(line: Line) -> Line:
    """Put a mark in the place of each picture."""
    if not line.images:
        return line
    marks = [UNSEEN] * len(line.images)
    text = "\n".join([line.text, *marks] if line.text else marks)
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


def has_several_speakers(lines: tuple[Line, ...]) -> bool:
    """Tell whether it matters who said what: in a chat of two it does not."""
    return len({line.name for line in lines if line.role == "user" and line.name}) > 1


def with_name(line: Line) -> Line:
    """Put the speaker's name before a person's words."""
    if line.role != "user" or not line.name:
        return line
    return msgspec.structs.replace(line, text=f"{line.name}: {line.text}", name="")
