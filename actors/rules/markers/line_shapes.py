"""What a line of a model's text may be, by how it looks; pure.

A line mark may stand behind a list's dash, and be bold; behind a quote's bracket or in
backticks it is an example.
"""

from __future__ import annotations

import re
from typing import Literal

from actors.rules.markers import control_words, narration
from actors.rules.markers import json_calls as tool_json
from actors.rules.markers.tags import LINES, MEDIA

Shape = Literal["undecided", "plain", "blank", "line", "object", "narration"]

LOOK = 64
"""Characters at the beginning of a line by which it is told what it may be."""

_FORMATTING = " \t*_`~#>-"

_NAMES = "|".join(LINES)
_MEDIA = "|".join(MEDIA)
_SURE = "|".join(map(re.escape, control_words.SURE))
_MAY_BE = re.compile(
    rf"(?:{_NAMES}|{'|'.join(control_words.UNSURE)})(?![A-Za-z0-9_])|(?ai:{_SURE})"
    rf"|\[(?:{_MEDIA}):"
)
_LARGE = frozenset(
    word[:length]
    for word in (*LINES, *control_words.UNSURE, *(f"[{name}:" for name in MEDIA))
    for length in range(1, len(word) + 1)
)
_SMALL = frozenset(
    word[:length] for word in control_words.SURE for length in range(1, len(word) + 1)
)
_MARK = re.compile(
    rf"(?P<before>[\s*_`~#>-]*)(?P<name>{_NAMES})(?![A-Za-z0-9_])"
    r"[*_`~]{0,4}[ \t]{0,8}"
    r"(?::(?P<value>.*))?",
    re.DOTALL,
)
_MEDIA_MARK = re.compile(
    rf"(?P<before>[\s*_`~#>-]*)\[(?P<name>{_MEDIA}):(?P<value>[^\[\]]*)\]"
    r"[\s*_`~.!]*",
)
_NOTHING = re.compile(r"[\s*_`~.!]*")


def shape_of(head: str, *, is_whole: bool, hides_narration: bool = False) -> Shape:
    """Say what a line may be.

    Args:
        head: its first `LOOK` characters, or fewer if the rest is not there yet; what
            follows a line break does not matter.
        is_whole: whether no more is to come that could tell.
        hides_narration: whether narration is looked for.
    """
    line, has_end, _ = head.partition("\n")
    bare = line.lstrip(" \t\r")
    if bare.startswith("{"):  # its first key may stand on the next line
        return _of_object(head.lstrip(" \t\r"), is_whole=is_whole)
    is_whole = is_whole or bool(has_end)
    if not bare:
        return "blank" if has_end else ("plain" if is_whole else "undecided")
    if bare.startswith(("```", "~~~")):
        return "line"
    core = bare.lstrip(_FORMATTING)
    is_beginning = not core or core in _LARGE or core.lower() in _SMALL
    if is_beginning and not is_whole:
        return "undecided"
    if _MAY_BE.match(core):
        return "line"
    return _of_words(line, is_whole=is_whole) if hides_narration else "plain"


def _of_object(bare: str, *, is_whole: bool) -> Shape:
    if tool_json.begins(bare):
        return "object"
    may = not is_whole and tool_json.may_begin(bare)
    return "undecided" if may else "plain"


def _of_words(line: str, *, is_whole: bool) -> Shape:
    may = narration.may_be(line)
    if may is None:
        return "plain" if is_whole else "undecided"
    return "narration" if may else "plain"


def may_close(mark: str, head: str) -> bool:
    """Whether more letters could make the end of a code block of this."""
    return not head.strip().strip(mark[0])


def mark_of(line: str) -> str:
    """Give the name of the mark that a whole line is; empty if it is none."""
    if (media := _MEDIA_MARK.fullmatch(line)) is not None:
        return media["name"]
    found = _MARK.fullmatch(line)
    return _name(found, line[found.end("name") :]) if found else _bare(line)


def name_of(head: str) -> str:
    """Give the name of the mark that a line of unknown length is."""
    found = _MARK.match(head)
    return _name(found, head[found.end("name") :]) if found else ""


def value_of(line: str) -> str:
    """Give what stands in a mark, after its colon."""
    if (media := _MEDIA_MARK.match(line)) is not None:
        return media["value"].strip()
    found = _MARK.match(line)
    value = (found["value"] or "").strip() if found else ""
    is_wrapped = found is not None and found["before"].strip(" \t#>-")
    return value.strip("*`").strip() if is_wrapped else value.removeprefix("**").strip()


def is_quoted(line: str) -> bool:
    """Whether a mark is written as an example."""
    found = _MARK.match(line) or _MEDIA_MARK.match(line)
    return found is not None and ("`" in found["before"] or ">" in found["before"])


def _name(found: re.Match[str], after: str) -> str:
    name, value = found["name"], found["value"]
    shape = LINES[name]
    if value is None:
        return _bare_name(name, after)
    if shape.is_word and not ("|" in value if shape.least > 1 else value.strip()):
        return ""
    return name


def _bare(line: str) -> str:
    found = _MARK.match(line)
    return _bare_name(found["name"], line[found.end("name") :]) if found else ""


def _bare_name(name: str, after: str) -> str:
    """Give the name of a mark without a value, if nothing else is said."""
    return name if LINES[name].least == 0 and _NOTHING.fullmatch(after) else ""
