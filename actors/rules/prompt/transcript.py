"""Prepares the lines of a conversation for a model.

Pure. A *turn* is a person's line and all lines up to the next person's line.
Transcripts are cut only between turns and never between a tool call and its result,
since providers refuse such transcripts.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import eq

import msgspec

from actors.messages.inbound import TranscriptLine

_STALE = re.compile(r"(?ai)<tool_result[^>]{0,400}>.*?</tool_result>\s*", re.DOTALL)

LOST = "Error: the result of this call was lost."
"""Stands in for a missing result of a tool call."""


SEND_FILE = "send_file"
"""Name of the tool with which an agent sends files of its own folder."""


def prepare(
    lines: Sequence[TranscriptLine], max_history: int
) -> tuple[TranscriptLine, ...]:
    """Repair, merge and trim a history for a model."""
    return trim(merge(repair(lines)), max_history)


def without_stale(lines: Sequence[TranscriptLine]) -> tuple[TranscriptLine, ...]:
    """Remove tool results that are plain text in old lines.

    They belong to finished turns of programs that keep no calls, and only cost tokens.
    A line without other text is removed.
    """
    if not [line for line in lines if "</tool_result>" in line.text.lower()]:
        return tuple(lines)
    kept: list[TranscriptLine] = []
    for line in lines:
        text = line.text if line.role == "tool" else _without_results(line.text)
        if text == line.text:
            kept.append(line)
        elif text.strip() or line.tool_calls or line.images:
            kept.append(msgspec.structs.replace(line, text=text.rstrip()))
    return tuple(kept)


def _without_results(text: str) -> str:
    # Why only so far: the end of an unclosed frame would be searched again and again.
    end = text.lower().rfind("</tool_result>") + len("</tool_result>")
    return _STALE.sub("", text[:end]) + text[end:] if "<" in text else text


def used_tools(lines: Iterable[TranscriptLine]) -> tuple[str, ...]:
    """Return the names of the called tools, in order, each once."""
    names = [call.name for each in lines for call in each.tool_calls]
    return tuple(dict.fromkeys(names))


def with_used_tools(text: str, used: Sequence[str], sent: str = "") -> str:
    """Prefix an answer with the tools that were used for it.

    Args:
        sent: names of the files sent with it, in one line. It is part of this prefix
            because the sanitiser removes the prefix from answers, so that a model
            cannot fake it.
    """
    told = [each for each in used if not (sent and each == SEND_FILE)]
    told += [f"{SEND_FILE} ({sent})"] if sent else []
    return f"[Used tools: {', '.join(told)}]\n{text}" if told else text


def sent(names: str) -> str:
    """Describe sent files, for an answer without text; empty without files."""
    return f"[File sent: {names}]" if names else ""


def flat(lines: Iterable[TranscriptLine]) -> str:
    """Format a transcript as one text, each line after its role."""
    return "\n".join(f"[{line.role}]: {line.text}" for line in lines)


class Window(msgspec.Struct, frozen=True):
    """The part of a history that a model sees."""

    lines: tuple[TranscriptLine, ...]
    left_out: int
    """Number of lines that are left out."""


def window(lines: Sequence[TranscriptLine], max_lines: int, max_chars: int) -> Window:
    """Select the newest whole turns, repaired and merged.

    Args:
        lines: a transcript, oldest first; the last line is the question.
        max_lines: most lines, counted after merging.
        max_chars: most characters. The newest turn is always complete.
    """
    sound = repair(lines)

    def merged(start: int) -> tuple[TranscriptLine, ...] | None:
        rest = sound[start:]
        if sum([len(line.text) for line in rest]) > max_chars:
            return None
        whole = merge(rest)
        return whole if len(whole) <= max_lines else None

    if (whole := merged(0)) is not None:  # as most often
        return Window(whole, 0)
    # A later start gives a smaller window.
    starts = turn_starts(sound)
    first = bisect_left(starts, 1, key=lambda start: merged(start) is not None)
    start = starts[min(first, len(starts) - 1)]
    return Window(merge(sound[start:]), start)


def told_of(left_out: int) -> tuple[str, ...]:
    """Return a note for the prompt about left out lines; empty without any.

    It goes into the prompt, because among the lines it would look like somebody's
    message.
    """
    if not left_out:
        return ()
    noun = "message is" if left_out == 1 else "messages are"
    return (f"[… {left_out} earlier {noun} not shown]",)


def repair(lines: Sequence[TranscriptLine]) -> tuple[TranscriptLine, ...]:
    """Ensure that each tool call is followed by its one result, and vice versa.

    Providers refuse other transcripts, and with them every further question in the
    conversation. A result without a call is removed; a call without a result gets one
    that says so; of several results the first counts; a later result is moved to its
    call. Calls with a repeated id keep only their text. Valid lines are unchanged.
    """
    if not [line for line in lines if line.tool_calls or line.role == "tool"]:
        return tuple(lines)
    results = _first_results(lines)
    repaired: list[TranscriptLine] = []
    seen: set[str] = set()
    for line in lines:
        if line.role == "tool":
            continue  # moved to its call, if there is one
        calls = tuple(
            {call.id: call for call in line.tool_calls if call.id not in seen}.values()
        )
        seen.update(call.id for call in calls)
        if calls == line.tool_calls:
            repaired.append(line)
        elif calls or line.text:
            repaired.append(msgspec.structs.replace(line, tool_calls=calls))
        for call in calls:
            lost = TranscriptLine("tool", LOST, tool_call_id=call.id)
            repaired.append(results.get(call.id, lost))
    return tuple(repaired)


def _first_results(lines: Sequence[TranscriptLine]) -> dict[str, TranscriptLine]:
    """Return the first result of each call, by the call's id."""
    called: set[str] = set()
    results: dict[str, TranscriptLine] = {}
    for line in lines:
        called.update(call.id for call in line.tool_calls)
        if line.role == "tool" and line.tool_call_id in called:
            results.setdefault(line.tool_call_id, line)
    return results


def trim(
    lines: Sequence[TranscriptLine], max_history: int
) -> tuple[TranscriptLine, ...]:
    """Keep the newest whole turns.

    Args:
        lines: a transcript, oldest first.
        max_history: most lines to keep. The newest turn is always kept whole.
    """
    starts = turn_starts(lines)
    fitting = (start for start in starts if len(lines) - start <= max_history)
    return tuple(lines[next(fitting, starts[-1]) :])


def turn_starts(lines: Sequence[TranscriptLine]) -> list[int]:
    """Return the indexes at which turns start; at least one, the first is 0.

    Lines before the first person's line count as a turn. A person's line between a call
    and its result (a steered message) starts none.
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


def merge(lines: Sequence[TranscriptLine]) -> tuple[TranscriptLine, ...]:
    r"""Join adjacent lines of one role, so that roles alternate.

    Texts are joined with `\n\n`. Texts of different people are each prefixed with the
    name. Lines with tool calls and their results are never joined.
    """
    roles = [line.role for line in lines]
    if not any(map(eq, roles, roles[1:])):
        return tuple(lines)  # usually they alternate already
    merged: list[TranscriptLine] = []
    for is_plain, group in groupby(lines, key=_is_plain):
        if not is_plain:
            merged.extend(group)
            continue
        for _, run in groupby(group, key=_role):
            merged.append(_join(tuple(run)))
    return tuple(merged)


def _is_plain(line: TranscriptLine) -> bool:
    return line.role != "tool" and not line.tool_calls


def _role(line: TranscriptLine) -> str:
    return line.role


def _join(run: tuple[TranscriptLine, ...]) -> TranscriptLine:
    first = run[0]
    if len(run) == 1:
        return first
    images = tuple(image for line in run for image in line.images)
    if len({line.name for line in run}) == 1:
        text, name = _paragraphs(line.text for line in run), first.name
    else:
        text, name = _paragraphs(map(_with_name, run)), ""
    return TranscriptLine(first.role, text, name, images=images)


def _with_name(line: TranscriptLine) -> str:
    return f"{line.name}: {line.text}" if line.name else line.text


def _paragraphs(texts: Iterable[str]) -> str:
    return "\n\n".join(texts)
