"""Where a lesson stands in a skill's file: under one heading, once, up to a bound.

Pure. Everything else in the file stays as its author wrote it.
"""

from __future__ import annotations

import msgspec

from actors.rules.foreign import one_line

HEADING = "## Lessons"
FENCE = "---"
CODE = ("```", "~~~")
ITEM = "- "

# Chosen: they are sent with every message that calls for the skill; fifty of them are
# some 6,000 tokens at most, and nobody keeps more rules than that.
MOST_LESSONS = 50
LONGEST_LESSON = 500
"""Characters."""


class Added(msgspec.Struct, frozen=True):
    """What the file is to hold."""

    text: str
    """The whole file; as it was if the lesson stands there already."""

    why: str = ""
    """Why nothing is added, to whoever wanted it; empty: it stands there."""


def read_lesson(lesson: str) -> str:
    """Make one line of a lesson; empty: there is nothing in it."""
    return one_line(lesson, LONGEST_LESSON + 1)


def add(text: str, lesson: str, most_chars: int) -> Added:
    """Add a lesson to a skill's file.

    Args:
        text: the file, with its head.
        lesson: as `read_lesson` gives it.
        most_chars: longest instructions, the head not counted.
    """
    lines = text.split("\n")
    body = _body(lines)
    outside, is_open = _outside_code(lines, body)
    if why := _why_not(lesson, has_head=body > 0, is_open=is_open):
        return Added(text, why)
    start, stop = _section(lines, outside)
    there = {line.rstrip() for line in lines[start:stop] if line.startswith(ITEM)}
    if ITEM + lesson in there:
        return Added(text)
    end = "\r" if lines[0].endswith("\r") else ""
    behind = _behind(lines, start, stop)
    lines[behind:behind] = [line + end for line in _new(lines, start, behind, lesson)]
    if lines[-1].strip():
        lines.append("")  # so that the file ends with a line's end
    if len(there) >= MOST_LESSONS:
        why = f"it has its {MOST_LESSONS} lessons; somebody has to take some out"
    elif len("\n".join(lines[body:])) > most_chars:
        why = f"its instructions would be above {most_chars} characters"
    return Added(text if why else "\n".join(lines), why)


def _why_not(lesson: str, *, has_head: bool, is_open: bool) -> str:
    """Say why nothing can be added, if so."""
    if not lesson:
        return "there is nothing to learn in it"
    if len(lesson) > LONGEST_LESSON:
        return f"a lesson has {LONGEST_LESSON} characters at most"
    if not has_head:
        return "its SKILL.md has no head, so it is none"
    return "a block of code in its SKILL.md has no end" if is_open else ""


def _body(lines: list[str]) -> int:
    """Give the first line behind the head; 0: there is no head."""
    if lines[0].removeprefix("\ufeff").rstrip() != FENCE:
        return 0
    ends = (n for n, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE)
    return next(ends, -1) + 1


def _outside_code(lines: list[str], body: int) -> tuple[list[int], bool]:
    """Give the lines of the body that are no code, and whether some code has no end."""
    outside: list[int] = []
    mark = ""
    for number, line in enumerate(lines[body:], body):
        fence = line.lstrip(" ")[:3]
        if fence in CODE and mark in ("", fence):
            mark = "" if mark else fence
        elif not mark:
            outside.append(number)
    return outside, bool(mark)


def _section(lines: list[str], outside: list[int]) -> tuple[int, int]:
    """Give the lines of the lessons, heading included; where they belong, if none."""
    start = next((n for n in outside if lines[n].rstrip() == HEADING), len(lines))
    behind = (n for n in outside if n > start and lines[n].startswith(("# ", "## ")))
    return start, next(behind, len(lines))


def _behind(lines: list[str], start: int, stop: int) -> int:
    """Give the line before which a new lesson stands, blank ones at the end kept."""
    while stop > start and not lines[stop - 1].strip():
        stop -= 1
    return stop


def _new(lines: list[str], start: int, behind: int, lesson: str) -> list[str]:
    """Give the lines that are new: the lesson, and what must stand before it."""
    if behind > start + 1:
        return [ITEM + lesson]
    if behind == start + 1:
        return ["", ITEM + lesson]
    before = [] if lines[-1:] == [""] else [""]
    return [*before, HEADING, "", ITEM + lesson]
