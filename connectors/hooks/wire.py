"""What goes over a hook program's pipes, one JSON object in each line; pure.

To the program, one question:

    {"id": "7", "event": "message_received", "text": "hello", "about": {...}}

From it, in any order, one answer each:

    {"id": "7", "action": "continue"}
    {"id": "7", "action": "change", "text": "hello!"}
    {"id": "7", "action": "cancel", "reason": "spam"}
    {"id": "7", "error": "the word list is missing"}

Asked about `message_heard`, it may have the message for itself, and answer it:

    {"id": "8", "action": "consume", "text": "The gate is open."}

To the program, with no answer to come:

    {"event": "turn_finished", "text": "...", "about": {...}, "ended": {...}}

An answer with any other field is none: there is no way to say where words go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules.foreign import one_line
from actors.rules.hooking import Action, Verdict
from connectors.hooks.errors import HookError

if TYPE_CHECKING:
    from actors.hooking import AskHook, TellHook

LONGEST_LINE = 1024 * 1024
"""Bytes of one line from a program: the longest words that pass, several times."""

LONGEST_ERROR = 300


class Answer(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One line from a program."""

    id: str
    action: Action | None = None
    text: str = ""
    reason: str = ""
    error: str = ""


ANSWERS = msgspec.json.Decoder(Answer)


class Named(msgspec.Struct, frozen=True):
    """As much of a wrong line as says which question it is about."""

    id: str


NAMED = msgspec.json.Decoder(Named)


def question(number: str, asked: AskHook) -> bytes:
    """Write a question, as one line."""
    line: dict[str, object] = {
        "id": number,
        "event": asked.event,
        "text": asked.text,
        "about": asked.about,
    }
    return msgspec.json.encode(line) + b"\n"


def notice(told: TellHook) -> bytes:
    """Write what needs no answer, as one line."""
    line: dict[str, object] = {
        "event": "turn_finished",
        "text": told.text,
        "about": told.about,
        "ended": told.ended,
    }
    return msgspec.json.encode(line) + b"\n"


def read(line: bytes) -> tuple[str, Verdict | HookError]:
    """Read an answer.

    Returns:
        Which question it answers, and how; the former is empty if it does not say.
    """
    try:
        answer = ANSWERS.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = f"what it wrote is no answer: {one_line(str(error), LONGEST_ERROR)}"
        return named(line), HookError(text, "wrong")
    return answer.id, verdict(answer)


def verdict(answer: Answer) -> Verdict | HookError:
    """Take an answer's verdict, or say why it has none."""
    if answer.error:
        said = one_line(answer.error, LONGEST_ERROR)
        return HookError(f"it says that it failed: {said}", "failed")
    if answer.action is None:
        return HookError("its answer has no 'action'", "wrong")
    return Verdict(answer.action, answer.text, answer.reason)


def named(line: bytes) -> str:
    """Find which question a wrong line is about; empty if it does not say."""
    try:
        return NAMED.decode(line).id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
