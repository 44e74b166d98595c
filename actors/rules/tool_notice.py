"""What people read of a tool call: its name and, briefly, what it is to do; pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.messages import ToolCall

# Chosen: a line on a phone; whoever wants all of it finds it in `callboard replay`.
MOST = 160
"""Characters of a summary."""

_SECRET = re.compile(
    r"(?i)pass|secret|token|api.?key|authori[sz]ation|credential|cookie"
)
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069]+")
HIDDEN = "…"


def summary(call: ToolCall, redact: Callable[[str], str]) -> str:
    """Tell the arguments of a call in one line, without secrets.

    Args:
        call: as the model made it.
        redact: takes the values of secrets out of a text.
    """
    try:
        arguments: object = msgspec.json.decode(call.arguments)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        arguments = call.arguments.decode("utf-8", "replace")
    text = _UNSEEN.sub(" ", redact(_told(arguments))).replace("`", "'").strip()
    return text if len(text) <= MOST else text[: MOST - 1] + HIDDEN


def _told(arguments: object) -> str:
    if not isinstance(arguments, dict):
        return _value(arguments)
    named = cast("dict[str, object]", arguments)
    shown = {
        name: HIDDEN if _SECRET.search(name) else _value(value)
        for name, value in named.items()
    }
    if len(shown) == 1:
        return next(iter(shown.values()))
    return ", ".join(f"{name}: {value}" for name, value in shown.items())


def _value(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "{" + _told(cast("dict[str, object]", value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, cast("list[object]", value))) + "]"
    return msgspec.json.encode(value).decode()


def name_of(tool: str) -> str:
    """Give a tool's name as it may stand between backticks."""
    return _UNSEEN.sub("", tool).replace("`", "'")[:64]


def started(call: ToolCall, redact: Callable[[str], str]) -> str:
    """Tell that a tool runs (F213)."""
    told = summary(call, redact)
    line = f"\N{WRENCH} `{name_of(call.name)}`"
    return f"{line}: {told}" if told else line
