"""Leaves out of a request what its model cannot take, and says so in its place.

Pure. A model that cannot see is told that there was a picture; one that cannot call
tools reads of earlier calls as of something that happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules.prompt.estimate import without_calls, without_images

if TYPE_CHECKING:
    from actors.messages.inbound import ModelRequest, TranscriptLine


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


def has_several_speakers(lines: tuple[TranscriptLine, ...]) -> bool:
    """Tell whether it matters who said what: in a chat of two it does not."""
    return len({line.name for line in lines if line.role == "user" and line.name}) > 1


def with_name(line: TranscriptLine) -> TranscriptLine:
    """Put the speaker's name before a person's words."""
    if line.role != "user" or not line.name:
        return line
    return msgspec.structs.replace(line, text=f"{line.name}: {line.text}", name="")
