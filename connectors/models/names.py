"""Names, ids and turns as providers allow them.

Pure. Names that a provider would refuse are changed on the way out; `ToolNames`
knows the way back, so that nobody else sees the changed ones. Anthropic and Google want
turns: the user begins and ends, tool results are in the user's turn, and what follows
each other in one role is one turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from actors.messages.inbound import TranscriptLine

if TYPE_CHECKING:
    from actors.messages.inbound import ToolSpec

# Source: the references of OpenAI (`tools[].function.name`), Anthropic
# (`tools[].name`) and Google (`functionDeclarations[].name`, which must begin with a
# letter); this is what all three allow.
FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
MAX_NAME = 64


class ToolNames:
    """The tools' names as providers allow them, and back.

    Args:
        tools: the tools on offer; two never share a name as sent.
    """

    def __init__(self, tools: tuple[ToolSpec, ...]) -> None:
        self._ours: dict[str, str] = {}
        for tool in tools:
            name = allowed_tool_name(tool.name)
            unique, number = name, 1
            while unique in self._ours:
                number += 1
                unique = f"{name[: MAX_NAME - 8]}_{number}"
            self._ours[unique] = tool.name
        self._sent = {ours: sent for sent, ours in self._ours.items()}

    def sent(self, name: str) -> str:
        """Translate a tool's name for the provider."""
        return self._sent.get(name) or allowed_tool_name(name)

    def ours(self, name: str) -> str:
        """Translate back; a name that was not on offer stays as it is."""
        return self._ours.get(name, name)


class CallIds:
    """The ids of a transcript's tool calls as providers allow them, each once.

    Why: a transcript may hold calls of another provider, whose ids look different, or
    of one that numbers them afresh in each answer. Results follow their calls.
    """

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}
        self._used: set[str] = set()

    def of_call(self, call_id: str) -> str:
        """Translate the id of a call."""
        plain = allowed_name(call_id) or "call"
        unique, number = plain, 1
        while unique in self._used:
            number += 1
            unique = f"{plain[: MAX_NAME - 8]}_{number}"
        self._used.add(unique)
        self._sent[call_id] = unique
        return unique

    def of_result(self, call_id: str) -> str:
        """Translate the id that a result carries: the newest call of that id."""
        return self._sent.get(call_id) or allowed_name(call_id) or "call"


def allowed_tool_name(name: str) -> str:
    """Change what providers forbid in a tool's name; never empty."""
    allowed = allowed_name(name) or "tool"
    return allowed if allowed[0].isalpha() else f"t_{allowed}"[:MAX_NAME]


def allowed_name(name: str) -> str:
    """Change what providers forbid in a name; empty if nothing of it can stay."""
    return FORBIDDEN.sub("_", name).strip("_")[:MAX_NAME]


EARLIER = "[Earlier messages are not shown.]"
"""Begins a transcript whose beginning was cut off before an answer."""

GO_ON = "[Go on.]"
"""Ends a transcript whose last words are the model's own."""


class Turn(msgspec.Struct, frozen=True):
    """What one side says before the other does."""

    is_user: bool
    lines: tuple[TranscriptLine, ...]


def turns(lines: Iterable[TranscriptLine]) -> Iterator[Turn]:
    """Group a transcript into turns; the first and the last are the user's."""
    is_user = False
    is_first = True
    for is_user, group in groupby(lines, key=is_users):
        if is_first and not is_user:
            yield Turn(is_user=True, lines=(TranscriptLine("user", EARLIER),))
        is_first = False
        yield Turn(is_user=is_user, lines=tuple(group))
    if not is_user:
        yield Turn(is_user=True, lines=(TranscriptLine("user", GO_ON),))


def is_users(line: TranscriptLine) -> bool:
    """Tell whether a line is in the user's turn: all but the model's own are."""
    return line.role != "assistant"
