"""What a model writes for the runtime and not for people.

Pure and total. Three things are found in a model's text and taken out of it:

- delegations, `[DELEGATE:ben] task [/DELEGATE]` (F242), which are carried out;
- tool calls written as text, `<tool_call>…</tool_call>` and kin (F260), which are
  never run: real calls arrive beside the text;
- thoughts, `<think>…</think>` and kin, which are nobody's business (P10).

Only model text is ever parsed. What is not well formed is not carried out, is not
shown, and is reported: a block that is never closed hides the rest of the text.

`Sanitizer` does the taking out, for streams piece by piece; `parse` uses the same
machine on a whole text, so that what people saw and what was carried out cannot
differ.

Tidying. Where something was taken out, blanks before it stay and decide what
becomes of the blanks after it: after a line break all go; after a blank, those up
to the next line break; after anything else they stay, and if there are none, one
blank is put in. At the beginning of the text they all go. The blank in between
also makes sure that what stood left and right of it cannot join to a new marker.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from actors.messages import Role

MAX_DELEGATIONS = 8
"""Most delegations of one text; what is more is reported and not carried out."""

MAX_REPORTED = 16
"""About how many entries of `Parsed.dropped`; `Parsed.dropped_total` counts all."""

_EXCERPT = 80

DropReason = Literal[
    "unclosed",
    "nested",
    "bad_name",
    "no_task",
    "too_many",
    "stray_end",
    "tool_call",
    "thinking",
]

_EXPLANATIONS: dict[DropReason, str] = {
    "unclosed": "it was not closed with [/DELEGATE]",
    "nested": "one delegation stood inside another",
    "bad_name": "it names no agent",
    "no_task": "it says no task",
    "too_many": f"one answer may hold {MAX_DELEGATIONS} delegations",
}


class Delegation(msgspec.Struct, frozen=True):
    """One agent asks another."""

    agent: str
    """Name of the agent asked, in lower case; it may not exist."""

    task: str
    """What to do, without the blanks around it; never empty."""


class Dropped(msgspec.Struct, frozen=True):
    """Something taken out of the text and not carried out."""

    reason: DropReason
    excerpt: str
    """Its beginning, for logs."""


class Parsed(msgspec.Struct, frozen=True):
    """A model's text taken apart."""

    visible: str
    """For people; without blanks at both ends if anything was taken out."""

    delegations: tuple[Delegation, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    """The first `MAX_REPORTED`, and the first for each reason, in order."""

    dropped_total: int = 0

    @property
    def notice(self) -> str:
        """What to tell people about delegations not carried out; empty if none."""
        why = dict.fromkeys(
            _EXPLANATIONS[each.reason]
            for each in self.dropped
            if each.reason in _EXPLANATIONS
        )
        return f"A delegation was not passed on: {'; '.join(why)}." if why else ""

    @property
    def is_silent(self) -> bool:
        """True if there is nothing to show, to carry out or to tell."""
        return not (self.visible.strip() or self.delegations or self.notice)


class Block(msgspec.Struct, frozen=True):
    """One thing that the sanitiser took out."""

    kind: Literal["delegation", "tool_call", "thinking", "stray_end"]
    start: int
    end: int
    """Offsets into the whole text, as for slices."""

    is_closed: bool = True
    is_nested: bool = False
    """True for a delegation with another one inside."""


_TOOL_TAGS = (
    "tool_call",
    "tool_calls",
    "toolcall",
    "tool-call",
    "tool_use",
    "invoke",
    "function_call",
    "function_calls",
)
_THINKING_TAGS = ("think", "thinking", "thought", "reasoning", "antthinking")
HIDDEN_TAGS = (*_TOOL_TAGS, *_THINKING_TAGS)
"""What stands between these tags is not shown."""

_ANY_TAG = "|".join(HIDDEN_TAGS)


class _Mode:
    """Where in the text the machine stands, and what can end that.

    Args:
        tokens: what to look for.
        literals: lower-case texts of which each token is one.
    """

    def __init__(self, tokens: str, *literals: str) -> None:
        # Why (?ai: only ASCII letters match in either case, so that a token is as
        # long in every spelling.
        self.tokens = re.compile(f"(?ai:{tokens})")
        self.longest = max(map(len, literals))
        self._beginnings = frozenset(
            literal[:length]
            for literal in literals
            for length in range(1, len(literal) + 1)
        )

    def held_from(self, text: str, at: int) -> int:
        """Find where a token that the end of `text` cuts off begins."""
        low = max(at, len(text) - self.longest)
        # Why these two places: [ and < stand only at the beginning of a token, so a
        # later one rules out an earlier; the last character may begin a `/>`.
        bracket = max(text.rfind("[", low), text.rfind("<", low))
        for start in (bracket, len(text) - 1):
            if start >= low and text[start:].lower() in self._beginnings:
                return start
        return len(text)


# Why [^\w-]: a tag's name has ended only when the next character is known; and every
# other character must count as its end, or taking out what follows would reveal a tag.
_TEXT = _Mode(
    r"\[delegate:|\[/delegate\]"
    rf"|</(?:{_ANY_TAG})>|<(?:{_ANY_TAG})(?=[^\w-])",
    "[delegate:",
    "[/delegate]",
    *(f"</{tag}>" for tag in HIDDEN_TAGS),
    *(f"<{tag}" for tag in HIDDEN_TAGS),
)
_DELEGATION = _Mode(r"\[delegate:|\[/delegate\]", "[delegate:", "[/delegate]")
# A tag before its `>`, then what follows; both end with the same closing tag.
_HEADS = {f"<{tag}": _Mode(f"</{tag}>|/?>", f"</{tag}>", "/>") for tag in HIDDEN_TAGS}
_BODIES = {f"<{tag}": _Mode(f"</{tag}>", f"</{tag}>") for tag in HIDDEN_TAGS}
_THINKING = frozenset(f"<{tag}" for tag in _THINKING_TAGS)


class Sanitizer:
    """Takes markers out of a model's text while it streams.

    For every way of cutting a text into pieces, what `feed` and `finish` return adds
    up to the same. At most 17 characters are held back, hidden text is not kept,
    and the time is in proportion to the length of the text.

    Args:
        blocks: where to note what was taken out; None notes nothing.
    """

    def __init__(self, blocks: list[Block] | None = None) -> None:
        self._blocks = blocks
        self._mode = _TEXT
        self._opener = ""
        self._held = ""
        self._offset = 0  # of the held text, in the whole text
        self._block_start = 0
        self._depth = 0
        self._is_nested = False
        self._gap = _Gap()

    def feed(self, delta: str) -> str:
        """Take the next piece in; give back what may be shown now."""
        # Why: nearly every piece is plain words, and no token begins without [ or <.
        plain = not self._held and "[" not in delta and "<" not in delta
        if plain and self._mode is _TEXT:
            self._offset += len(delta)
            return self._gap.join(delta)
        text = self._held + delta
        shown: list[str] = []
        at = 0
        while match := self._mode.tokens.search(text, at):
            if self._mode is _TEXT:
                shown.append(self._gap.join(text[at : match.start()]))
            self._take(match)
            at = match.end()
        keep = self._mode.held_from(text, at)
        if self._mode is _TEXT:
            shown.append(self._gap.join(text[at:keep]))
        self._held = text[keep:]
        self._offset += keep
        return "".join(shown)

    def finish(self) -> str:
        """End the text; give back the rest that may be shown. Call it once."""
        if self._mode is _TEXT:
            return self._gap.join(self._held)
        self._offset += len(self._held)
        self._end_block(self._offset, is_closed=False)
        return ""

    def _take(self, match: re.Match[str]) -> None:
        mark = match[0].lower()
        start, end = self._offset + match.start(), self._offset + match.end()
        if self._mode is _TEXT:
            self._open(mark, start, end)
        elif self._mode is _DELEGATION:
            self._is_nested = self._is_nested or mark == "[delegate:"
            self._depth += 1 if mark == "[delegate:" else -1
            if self._depth == 0:
                self._end_block(end)
        elif mark == ">":
            self._mode = _BODIES[self._opener]
        else:
            self._end_block(end)

    def _open(self, mark: str, start: int, end: int) -> None:
        self._block_start = start
        if mark == "[delegate:":
            self._mode, self._depth, self._is_nested = _DELEGATION, 1, False
        elif mark in _HEADS:
            self._mode, self._opener = _HEADS[mark], mark
        else:
            self._note(Block("stray_end", start, end))

    def _end_block(self, end: int, *, is_closed: bool = True) -> None:
        if self._mode is _DELEGATION:
            nested = self._is_nested
            block = Block("delegation", self._block_start, end, is_closed, nested)
        else:
            kind: Literal["thinking", "tool_call"] = (
                "thinking" if self._opener in _THINKING else "tool_call"
            )
            block = Block(kind, self._block_start, end, is_closed)
        self._note(block)
        self._mode = _TEXT

    def _note(self, block: Block) -> None:
        self._gap.open()
        if self._blocks is not None:
            self._blocks.append(block)


class _Gap:
    """Joins what is left of a text where something was taken out of it."""

    def __init__(self) -> None:
        self._is_open = False
        self._last: Literal["nothing", "text", "blank", "line"] = "nothing"

    def open(self) -> None:
        """Something was taken out here."""
        self._is_open = True

    def join(self, text: str) -> str:
        """Give back what is shown of the next piece of visible text."""
        if self._is_open and text:
            text = self._close(text)
        if text:
            self._remember(text)
        return text

    def _close(self, text: str) -> str:
        if self._last == "text":
            self._is_open = False
            return text if text[0].isspace() else " " + text
        rest = text.lstrip()
        if self._last == "blank":
            line = text.find("\n", 0, len(text) - len(rest))
            rest = rest if line < 0 else text[line:]
        self._is_open = not rest
        return rest

    def _remember(self, text: str) -> None:
        body = text.rstrip()
        if len(body) == len(text):
            self._last = "text"
        elif "\n" in text[len(body) :] or (not body and self._last == "line"):
            self._last = "line"
        else:
            self._last = "blank"


def parse(text: str, role: Role) -> Parsed:
    """Take a whole text apart.

    Args:
        text: what was said, of any length.
        role: who said it; only an assistant's text holds markers.
    """
    if role != "assistant":
        return Parsed(text)
    blocks: list[Block] = []
    sanitizer = Sanitizer(blocks)
    visible = sanitizer.feed(text) + sanitizer.finish()
    if not blocks:
        return Parsed(text)
    delegations: list[Delegation] = []
    dropped: list[Dropped] = []
    total = 0
    for block in blocks:
        found = _read(block, text)
        if isinstance(found, Delegation):
            if len(delegations) < MAX_DELEGATIONS:
                delegations.append(found)
                continue
            found = "too_many"
        total += 1
        if total <= MAX_REPORTED or all(each.reason != found for each in dropped):
            excerpt = text[block.start : min(block.end, block.start + _EXCERPT)]
            dropped.append(Dropped(found, excerpt))
    return Parsed(visible.strip(), tuple(delegations), tuple(dropped), total)


# Why blanks around the name: models write `[DELEGATE: ben]` as often as not.
_HEAD = re.compile(r"(?ai:\[delegate:)\s{0,8}([A-Za-z0-9_-]{1,64})\s{0,8}\]")


def _read(block: Block, text: str) -> Delegation | DropReason:
    if block.kind != "delegation":
        return block.kind
    if not block.is_closed:
        return "unclosed"
    if block.is_nested:
        return "nested"
    head = _HEAD.match(text, block.start, block.end)
    if head is None:
        return "bad_name"
    task = text[head.end() : block.end - len("[/delegate]")].strip()
    return Delegation(head[1].lower(), task) if task else "no_task"
