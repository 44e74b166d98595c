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

# Chosen: below the longest message of any platform, with room for the question.
MOST_ASKED = 1_200
"""Characters of a summary that somebody is to decide by."""

_SECRET = re.compile(
    r"(?i)pass|secret|token|api.?key|authori[sz]ation|credential|cookie"
)
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069]+")
_BREAK = re.compile(r"[\n\r\v\f\x85\u2028\u2029]+")
# Not a quote: to a shell, one keeps a command from being run, the other runs it.
_BACKTICK = "\N{MODIFIER LETTER GRAVE ACCENT}"
HIDDEN = "…"


def summary(call: ToolCall, redact: Callable[[str], str], most: int = MOST) -> str:
    """Tell the arguments of a call in one line, without secrets.

    Args:
        call: as the model made it.
        redact: takes the values of secrets out of a text.
        most: characters; of a longer text the end is kept, too, since what matters
            may have been put there. Above 50.
    """
    try:
        arguments: object = msgspec.json.decode(call.arguments)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        arguments = call.arguments.decode("utf-8", "replace")
    told = _BREAK.sub(" \N{RETURN SYMBOL} ", redact(_told(arguments)))
    text = _UNSEEN.sub(" ", told).replace("`", _BACKTICK).strip()
    if len(text) <= most:
        return text
    left_out = f" {HIDDEN} {len(text) - most:,} and more characters {HIDDEN} "
    half, rest = divmod(most - len(left_out), 2)
    return text[: half + rest] + left_out + text[-half:]


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
    return _UNSEEN.sub("", tool).replace("`", _BACKTICK)[:64]


def started(call: ToolCall, redact: Callable[[str], str]) -> str:
    """Tell that a tool runs (F213)."""
    told = summary(call, redact)
    line = f"\N{WRENCH} `{name_of(call.name)}`"
    return f"{line}: {told}" if told else line
