"""Which lines of a conversation a model is shown, and in what shape.

Pure. A *turn* is a person's line and what follows until the next person's line. A
transcript is only ever cut between turns, and never between a tool's call and its
result: providers refuse such a transcript.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import groupby
from operator import eq
from typing import TYPE_CHECKING

import msgspec

from actors.messages import Line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_STALE = re.compile(r"(?ai)<tool_result[^>]{0,400}>.*?</tool_result>\s*", re.DOTALL)

LOST = "Error: the result of this call was lost."
"""Stands for the result of a call that has none (P17)."""


SEND_FILE = "send_file"
"""The tool by which an agent sends files of its own folder."""


def prepare(lines: Sequence[Line], max_history: int) -> tuple[Line, ...]:
    """Repair, merge, then trim: what a model is shown of a history."""
    return trim(merge(repair(lines)), max_history)


def without_stale(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Leave out results of tools that stand as text in old lines (F115).

    They are of a turn long over, were written by a program that keeps no calls, and
    only cost room. A line with nothing else in it is left out whole.
    """
    if not any("</tool_result>" in line.text.lower() for line in lines):
        return tuple(lines)
    kept: list[Line] = []
    for line in lines:
        text = line.text if line.role == "tool" else _without_results(line.text)
        if text == line.text:
            kept.append(line)
        elif text.strip() or line.tool_calls or line.images:
            kept.append(msgspec.structs.replace(line, text=text.rstrip()))
    return tuple(kept)


def _without_results(text: str) -> str:
    # Why only so far: what is opened and never closed would be searched for its end
    # again and again.
    end = text.lower().rfind("</tool_result>") + len("</tool_result>")
    return _STALE.sub("", text[:end]) + text[end:] if "<" in text else text


def used_tools(lines: Iterable[Line]) -> tuple[str, ...]:
    """Name the tools that were called, in order, each once."""
    return tuple(dict.fromkeys(call.name for each in lines for call in each.tool_calls))


def with_used_tools(text: str, used: Sequence[str], sent: str = "") -> str:
    """Write before an answer by which tools it was found (F118).

    Args:
        text: the answer.
        used: names of the tools.
        sent: names of the files that went out with it, in one line. Why here: whoever
            repeats this line is not believed, as it is taken out of what models say.
    """
    told = [each for each in used if not (sent and each == SEND_FILE)]
    told += [f"{SEND_FILE} ({sent})"] if sent else []
    return f"[Used tools: {', '.join(told)}]\n{text}" if told else text


def sent(names: str) -> str:
    """Say in words that files went out, where nothing else was said; empty for none."""
    return f"[File sent: {names}]" if names else ""


def flat(lines: Iterable[Line]) -> str:
    """Write a transcript as one text, each line behind its role (F180)."""
    return "\n".join(f"[{line.role}]: {line.text}" for line in lines)


class Window(msgspec.Struct, frozen=True):
    """What a model is shown of a history."""

    lines: tuple[Line, ...]
    left_out: int
    """Lines that were there, and are not shown."""


def window(lines: Sequence[Line], max_lines: int, max_chars: int) -> Window:
    """Choose the newest whole turns, repaired and merged.

    Args:
        lines: a transcript, oldest first; the last one is what is asked.
        max_lines: most lines shown, counted after they are merged.
        max_chars: most characters of them (F117). The newest turn is shown whole
            whatever its length.
    """
    sound = repair(lines)
    starts = turn_starts(sound)

    def is_small(start: int) -> bool:
        rest = sound[start:]
        characters = sum(len(line.text) for line in rest)
        return characters <= max_chars and len(merge(rest)) <= max_lines

    # The later it starts, the smaller it is.
    first = bisect_left(starts, 1, key=is_small)
    start = starts[min(first, len(starts) - 1)]
    return Window(merge(sound[start:]), start)


def told_of(left_out: int) -> tuple[str, ...]:
    """Tell a model that there was more; nothing if there was not.

    For its prompt: among the lines it would be somebody's words.
    """
    if not left_out:
        return ()
    noun = "message is" if left_out == 1 else "messages are"
    return (f"[… {left_out} earlier {noun} not shown]",)


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
    roles = [line.role for line in lines]
    if not any(map(eq, roles, roles[1:])):
        return tuple(lines)  # mostly they alternate already
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
