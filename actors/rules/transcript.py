"""Which lines of a conversation a model is shown, and in what shape.

Pure. A *turn* is a person's line and what follows until the next person's line. A
transcript is only ever cut between turns, and never between a tool's call and its
result: providers refuse such a transcript.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from actors.messages import Line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


LOST = "Error: the result of this call was lost."
"""Stands for the result of a call that has none (P17)."""


def prepare(lines: Sequence[Line], max_history: int) -> tuple[Line, ...]:
    """Repair, merge, then trim: what a model is shown of a history."""
    return trim(merge(repair(lines)), max_history)


def repair(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Make every call have its one result, right behind it, and every result its call.

    Providers refuse a transcript where that is not so, and with it every further
    question in the conversation. A result without a call is left out; a call without
    a result gets one that says so; of several results the first counts; a result that
    stands further on is moved to its call, and so are calls with an id used before,
    which keep nothing but their words. What is sound stays as it is.
    """
    if not any(line.tool_calls or line.role == "tool" for line in lines):
        return tuple(lines)
    results = _first_results(lines)
    repaired: list[Line] = []
    seen: set[str] = set()
    for line in lines:
        if line.role == "tool":
            continue  # stands behind its call, if it has one
        calls = tuple(
            {call.id: call for call in line.tool_calls if call.id not in seen}.values()
        )
        seen.update(call.id for call in calls)
        if calls == line.tool_calls:
            repaired.append(line)
        elif calls or line.text:
            repaired.append(msgspec.structs.replace(line, tool_calls=calls))
        for call in calls:
            lost = Line("tool", LOST, tool_call_id=call.id)
            repaired.append(results.get(call.id, lost))
    return tuple(repaired)


def _first_results(lines: Sequence[Line]) -> dict[str, Line]:
    """Give the first result that stands behind a call, by the call's id."""
    called: set[str] = set()
    results: dict[str, Line] = {}
    for line in lines:
        called.update(call.id for call in line.tool_calls)
        if line.role == "tool" and line.tool_call_id in called:
            results.setdefault(line.tool_call_id, line)
    return results


def trim(lines: Sequence[Line], max_history: int) -> tuple[Line, ...]:
    """Keep the newest whole turns.

    Args:
        lines: a transcript, oldest first.
        max_history: most lines kept. Only the newest turn may be longer: it is kept
            whole whatever its length.
    """
    starts = turn_starts(lines)
    fitting = (start for start in starts if len(lines) - start <= max_history)
    return tuple(lines[next(fitting, starts[-1]) :])


def turn_starts(lines: Sequence[Line]) -> list[int]:
    """Find where turns start; at least one place, the first is 0.

    Lines before the first person's line count as a turn. A person's line between a
    call and its result (words put into a running tool loop) starts none.
    """
    starts = [0]
    caller: dict[str, int] = {}
    for index, line in enumerate(lines):
        if line.role == "user" and index > 0:
            starts.append(index)
        for call in line.tool_calls:
            caller[call.id] = index
        if line.role == "tool":
            called_at = caller.get(line.tool_call_id, index)
            while starts[-1] > called_at:
                starts.pop()
    return starts


def merge(lines: Sequence[Line]) -> tuple[Line, ...]:
    r"""Join neighbours of one role, so that roles alternate (F092, F114).

    Texts are joined with `\n\n`. Where they are by people of different names, each
    is preceded by its name. Lines with tool calls, and their results, stay alone.
    """
    merged: list[Line] = []
    for is_plain, group in groupby(lines, key=_is_plain):
        if not is_plain:
            merged.extend(group)
            continue
        for _, run in groupby(group, key=_role):
            merged.append(_join(tuple(run)))
    return tuple(merged)


def _is_plain(line: Line) -> bool:
    return line.role != "tool" and not line.tool_calls


def _role(line: Line) -> str:
    return line.role


def _join(run: tuple[Line, ...]) -> Line:
    first = run[0]
    if len(run) == 1:
        return first
    images = tuple(image for line in run for image in line.images)
    if len({line.name for line in run}) == 1:
        text, name = _paragraphs(line.text for line in run), first.name
    else:
        text, name = _paragraphs(map(_with_name, run)), ""
    return Line(first.role, text, name, images=images)


def _with_name(line: Line) -> str:
    return f"{line.name}: {line.text}" if line.name else line.text


def _paragraphs(texts: Iterable[str]) -> str:
    return "\n\n".join(texts)
