"""Tool calls that a model wrote as bare JSON into its text; pure.

Narrowly: an object alone on its lines, or alone in a code block, with a tool's name
and its arguments and nothing else but what vendors put beside them. What merely holds
such keys inside something larger is an answer, and stays.
"""

from __future__ import annotations

import re
from typing import cast

import msgspec

MOST = 16_000
"""Characters of such an object; a longer one is shown."""

_ARGUMENTS = ("arguments", "parameters", "input")
_BESIDE = ("id", "call_id", "type", "function")
_KEYS = "|".join(("name", "tool_calls", *_ARGUMENTS, *_BESIDE))
_BEGIN = re.compile(rf'\{{\s{{0,40}}"(?:{_KEYS})"\s{{0,8}}:')
_CUT_BEGIN = re.compile(r'\{\s{0,40}(?:"(?:[a-z_]{0,12}(?:"\s{0,8})?)?)?')
_CUT_CALL = re.compile(
    r'\{\s*"name"\s*:\s*"[A-Za-z_][\w.:/-]*"\s*,\s*'
    r'"(?:arguments|parameters|input)"\s*:'
)
_NAME = re.compile(r"(?a:[A-Za-z_][\w.:/-]{0,127})")
_TYPES = ("function", "tool_use", "tool_call", "function_call")


def begins(head: str) -> bool:
    """Whether an object begins as such a call does."""
    return _BEGIN.match(head) is not None


def may_begin(head: str) -> bool:
    """Whether more letters could make such a beginning of this."""
    return _CUT_BEGIN.fullmatch(head) is not None


def is_cut_call(text: str) -> bool:
    """Whether an object that never ended was a call: its arguments had begun."""
    return _CUT_CALL.match(text) is not None


def is_call(text: str) -> bool:
    """Whether a whole object is such a call."""
    try:
        found: object = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return _is_call(found)


def _is_call(found: object) -> bool:
    if not isinstance(found, dict):
        return False
    fields = cast("dict[str, object]", found)
    if set(fields) == {"tool_calls"}:
        calls = fields["tool_calls"]
        return isinstance(calls, list) and all(
            map(_is_call, cast("list[object]", calls))
        )
    kind = fields.get("type", "function")
    if kind not in _TYPES or not _are_ids(fields):
        return False
    if "function" in fields:
        return set(fields) <= {*_BESIDE} and _is_call(fields["function"])
    given = [key for key in _ARGUMENTS if key in fields]
    rest = set(fields) - {"name", *_ARGUMENTS, *_BESIDE}
    name = fields.get("name")
    return (
        not rest
        and len(given) == 1
        and isinstance(name, str)
        and _NAME.fullmatch(name) is not None
        and _are_arguments(fields[given[0]])
    )


def _are_ids(fields: dict[str, object]) -> bool:
    return all(isinstance(fields.get(key, ""), str) for key in ("id", "call_id"))


def _are_arguments(given: object) -> bool:
    """Whether these are arguments: an object, or an object written as text."""
    if isinstance(given, str):
        text = given.strip()
        return text.startswith("{") and text.endswith("}")
    return isinstance(given, dict)


class ObjectEnd(msgspec.Struct):
    """Finds where a JSON object ends that comes in pieces; each letter is read once."""

    _read: int = 0  # of the text
    end: int | None = None
    """Characters of the object, when its end has been found."""

    _depth: int = 0
    _in_string: bool = False
    _is_escaped: bool = False

    @property
    def is_too_long(self) -> bool:
        """Whether so much was looked through that it is given up."""
        return self.end is None and self._read >= MOST

    def look(self, text: str, begin: int) -> None:
        """Look on in a text that has grown.

        Args:
            text: holds the object.
            begin: where in it the object's brace stands, or blanks before it.
        """
        stop = min(len(text), begin + MOST)
        for place in range(begin + self._read, stop):
            if self.end is not None:
                return
            self._read += 1
            if self._take(text[place]):
                self.end = self._read

    def _take(self, letter: str) -> bool:
        if self._is_escaped:
            self._is_escaped = False
        elif self._in_string:
            self._is_escaped = letter == "\\"
            self._in_string = letter != '"'
        elif letter == '"':
            self._in_string = True
        elif letter in "{}":
            self._depth += 1 if letter == "{" else -1
            return self._depth == 0
        return False
