"""Answers that come as an object with `text`, `thought` and `actions`; pure.

Some agents were taught to answer so. Behind a setting: to everybody else, an object is
an object. The thought and the actions are kept for clients of ElizaOS, which show them
beside the answer; nobody else gets them. Of the actions only those that ask for silence
mean something here.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from actors.rules.markers.sanitizer import Sanitizer

MOST = 200_000
"""Characters of such an answer; a longer one is shown as it is."""

MOST_THOUGHT = 4_000
"""Characters of a thought that are kept."""

MOST_ACTIONS, MOST_NAME = 20, 64
"""How many actions are kept, and how many characters of a name."""

_FENCED = re.compile(r"```(?:json)?[ \t]*\n(?P<body>.*)\n[ \t]*```", re.DOTALL)
_BEGINNINGS = ("{", "```json", "```\n")


class AnswerEnvelope(msgspec.Struct, frozen=True):
    """An answer taken out of its object."""

    text: str
    """Still with markers and all."""

    controls: tuple[str, ...] = ()
    """`IGNORE`, if it is not to be sent."""

    thought: str = ""
    actions: tuple[str, ...] = ()
    """Names of actions, in capitals, such as `REPLY`."""


class _Fields(msgspec.Struct, forbid_unknown_fields=True):
    text: str = ""
    message: str = ""
    thought: str = ""
    reasoning: str = ""
    actions: list[str] | str | None = None
    action: str = ""
    providers: list[str] | str | None = None
    simple: bool | None = None
    name: str = ""
    user: str = ""


def open_envelope(text: str) -> AnswerEnvelope | None:
    """Take an answer out of its object; None if it does not stand in one."""
    if len(text) > MOST:
        return None
    body = text.strip()
    if fenced := _FENCED.fullmatch(body):
        body = fenced["body"].strip()
    if not (body.startswith("{") and body.endswith("}")):
        return None
    try:
        keys = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        fields = msgspec.json.decode(body, type=_Fields)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    if not keys.keys() & {"text", "actions", "action"} or len(keys) < 2:
        return None  # an answer that merely has such a key
    named = fields.actions if isinstance(fields.actions, list) else [fields.actions]
    words = [str(each).strip().upper() for each in (*named, fields.action) if each]
    is_silent = "IGNORE" in words or not (fields.text or fields.message).strip()
    return AnswerEnvelope(
        "" if is_silent else fields.text or fields.message,
        ("IGNORE",) if is_silent else (),
        thought=(fields.thought or fields.reasoning).strip()[:MOST_THOUGHT],
        actions=tuple(word[:MOST_NAME] for word in words[:MOST_ACTIONS]),
    )


class EnvelopeSanitizer:
    """Cleans a text that may come in an envelope: shows such a one at its end.

    Args:
        hides_narration: as for `Sanitizer`.
    """

    __slots__ = ("_length", "_mode", "_pieces", "_sanitizer")

    def __init__(self, *, hides_narration: bool = False) -> None:
        self._sanitizer = Sanitizer(hides_narration=hides_narration)
        self._mode: Literal["beginning", "inside", "plain"] = "beginning"
        self._pieces: list[str] = []
        self._length = 0

    def feed(self, delta: str) -> str:
        """Take the next piece in; give back what may be shown now."""
        if self._mode == "plain":
            return self._sanitizer.feed(delta)
        self._pieces.append(delta)
        self._length += len(delta)
        if self._mode == "beginning":
            self._pieces = ["".join(self._pieces)]
            self._mode = _begin(self._pieces[0])
        if self._mode == "plain" or self._length > MOST:
            return self._pass_on("".join(self._pieces))
        return ""

    def finish(self) -> str:
        """End the text; give back the rest that may be shown. Call it once."""
        if self._mode == "plain":
            return self._sanitizer.finish()
        text = "".join(self._pieces)
        envelope = open_envelope(text)
        shown = self._pass_on(text if envelope is None else envelope.text)
        return shown + self._sanitizer.finish()

    def _pass_on(self, text: str) -> str:
        self._mode = "plain"
        self._pieces.clear()
        return self._sanitizer.feed(text)


def _begin(text: str) -> Literal["beginning", "inside", "plain"]:
    bare = text.lstrip()
    if bare.startswith(_BEGINNINGS):
        return "inside"
    may = not bare or any(each.startswith(bare) for each in _BEGINNINGS)
    return "beginning" if may else "plain"
