"""First stage of the sanitiser: removes tags from streamed text. Pure.

Tags may begin anywhere. All text from a tag's beginning to its end is hidden. An
unclosed tag hides the rest, except for tags with `ends_with_paragraph`. The remaining
text goes to the second stage, piece by piece, with the offset of its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import product

from actors.rules.markers.line_stage import LineStage
from actors.rules.markers.stage import Block, Kind, MarkerGap
from actors.rules.markers.tags import (
    BLOCK_TAGS,
    BLOCKS,
    BROKEN_ROLE_TAGS,
    HIDDEN_TAGS,
    ROLE_TAGS,
    ROLES,
    THINKING_TAGS,
    UNSEEN,
    USED_TOOLS,
)

MOST_HEAD = 100
"""Longest opening tag, such as `[MEMORY:category]`, in characters."""

_NOTHING = dict.fromkeys(map(ord, UNSEEN))


class _Mode:
    """State of the machine, and the tokens that end it.

    Args:
        tokens: tokens to search for.
        literals: lower-case prefixes, of which each token begins with one.
    """

    def __init__(self, tokens: str, *literals: str) -> None:
        self._tokens = tokens
        self._beginnings = frozenset(
            literal[:length]
            for literal in literals
            for length in range(1, len(literal) + 1)
        )
        firsts = "".join(sorted({literal[0] for literal in literals}))
        self._firsts = re.compile(f"[{re.escape(firsts)}]") if firsts else None
        # Twice, since each character of a role tag may be followed by an invisible one.
        self.longest = 2 * max(map(len, literals), default=0)

    @cached_property
    def tokens(self) -> re.Pattern[str]:
        """Matches the tokens.

        Why made only now: few modes are ever entered, and all of them together were a
        twentieth of the start.
        """
        # Why (?ai: only ASCII letters match in either case, so that a token has the
        # same length in every spelling.
        return re.compile(f"(?ai:{self._tokens})")

    def search(self, text: str, at: int) -> re.Match[str] | None:
        """Find the next token from `at` on.

        Why it looks for a first character first: most texts hold none, and to try all
        tokens at each character took a tenth of a message's processor time.
        """
        if self._firsts is not None:
            first = self._firsts.search(text, at)
            if first is None:
                return None
            at = first.start()
        return self.tokens.search(text, at)

    def held_from(self, text: str, at: int) -> int:
        """Return the start of a token that is cut off by the end of `text`."""
        if self._firsts is None:
            return len(text)
        for first in self._firsts.finditer(text, max(at, len(text) - self.longest)):
            rest = text[first.start() :].lower().translate(_NOTHING)
            if rest in self._beginnings:
                return first.start()
        return len(text)


def _any_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, words))


_HIDDEN = _any_of(HIDDEN_TAGS)
_PARAGRAPHS = tuple(tag for tag in BLOCK_TAGS if tag.ends_with_paragraph)
_SECTIONS = tuple(tag for tag in BLOCK_TAGS if not tag.ends_with_paragraph)
_WITH_COLON = tuple(f"{tag.opener}:" for tag in (*_PARAGRAPHS, BLOCKS["DELEGATE"]))
_WITHOUT = tuple(tag.opener for tag in _SECTIONS if tag.name != "DELEGATE")
_CLOSERS = tuple(tag.closer for tag in BLOCK_TAGS)
_ROLES = (*ROLE_TAGS, *BROKEN_ROLE_TAGS)

# Why [^\w-]: a tag's name ends only when the next character is known; and every other
# character must end it, or removing the following text would reveal a tag.
_TEXT = _Mode(
    rf"{_any_of(_WITH_COLON)}|(?:{_any_of(_WITHOUT)})(?=[^\w-])"
    rf"|{_any_of(_CLOSERS)}|{re.escape(USED_TOOLS)}"
    rf"|</(?:{_HIDDEN})>|<(?:{_HIDDEN})(?=[^\w-])"
    rf"|{ROLES}",
    *_WITH_COLON,
    *_WITHOUT,
    *_CLOSERS,
    USED_TOOLS,
    *(f"</{tag}>" for tag in HIDDEN_TAGS),
    *(f"<{tag}" for tag in HIDDEN_TAGS),
    *_ROLES,
)
# A tag before its `>`, then its content; both end with the same closing tag.
_HEADS = {
    f"<{tag}": _Mode(f"</{tag}>|/?>", f"</{tag}>", "/>", ">") for tag in HIDDEN_TAGS
}
_BODIES = {f"<{tag}": _Mode(f"</{tag}>", f"</{tag}>") for tag in HIDDEN_TAGS}
_THINKING = frozenset(f"<{tag}" for tag in THINKING_TAGS)


def _section(opener: str, closer: str, after: str) -> _Mode:
    return _Mode(f"{re.escape(opener)}{after}|{re.escape(closer)}", opener, closer)


_SECTION_MODES = {
    "[delegate:": _section("[delegate:", "[/delegate]", ""),
    **{name: _section(name, f"[/{name[1:]}]", r"(?=[^\w-])") for name in _WITHOUT},
}
_PARAGRAPH_OPENERS = tuple(f"{tag.opener}:" for tag in _PARAGRAPHS)
_PARAGRAPH_HEAD = _Mode(r"\]|(?=[\n\[])")
_BLANKS = ("", *" \t\r", *map("".join, product(" \t\r", repeat=2)))
_PARAGRAPH_MODES = {
    f"{tag.opener}:": _Mode(
        rf"{re.escape(tag.closer)}|(?={_any_of(_PARAGRAPH_OPENERS)})"
        r"|(?=\n[ \t\r]{0,2}\n)",
        tag.closer,
        *_PARAGRAPH_OPENERS,
        *(f"\n{blanks}" for blanks in _BLANKS),
    )
    for tag in _PARAGRAPHS
}
_USED_MODE = _Mode(r"\]|(?=\n)")
_NAME = re.compile(r"(?a:\s{0,8}[\w.-]{1,64}\s{0,8})")


class TagStage:
    """Removes tags.

    However a text is split into pieces, the second stage gets the same. At most 51
    characters are held back, hidden text is not kept, and the time is linear in the
    length of the text.

    Args:
        after: the second stage.
        blocks: receives what was removed; None records nothing.
    """

    __slots__ = (
        "_after",
        "_block_start",
        "_blocks",
        "_depth",
        "_gap",
        "_head",
        "_is_nested",
        "_is_quoted",
        "_mode",
        "_offset",
        "_opener",
        "held",
    )

    def __init__(self, after: LineStage, blocks: list[Block] | None) -> None:
        self._after = after
        self._blocks = blocks
        self._mode = _TEXT
        self._opener = ""
        self.held = ""
        self._offset = 0  # of the held text, in the whole text
        self._block_start = 0
        self._head = ""
        self._depth = 0
        self._is_nested = False
        self._is_quoted = False
        self._gap = MarkerGap()

    @property
    def is_quiet(self) -> bool:
        """Whether a piece without brackets would pass unchanged."""
        return self._mode is _TEXT and not self.held and not self._gap.is_open

    def skip(self, length: int, last: str) -> None:
        """Note plain text that passed; `last` is its end. Only if `is_quiet`."""
        self._offset += length
        self._gap.join(last)

    def feed(self, delta: str) -> None:
        """Process the next piece."""
        text = self.held + delta
        at = 0
        while match := self._mode.search(text, at):
            self._pass_on(text[at : match.start()], self._offset + match.start())
            self._take(match)
            at = match.end()
        keep = self._mode.held_from(text, at)
        self._pass_on(text[at:keep], self._offset + keep)
        self.held = text[keep:]
        self._offset += keep

    def finish(self) -> None:
        """End the text. Call it once."""
        self._offset += len(self.held)
        if self._mode is _TEXT:
            self._pass_on(self.held, self._offset)
        else:
            self._end_block(self._offset, is_closed=False)

    def _pass_on(self, text: str, end: int) -> None:
        if self._mode is _TEXT:
            shown = self._gap.join(text)
            if shown:
                self._after.feed(shown, end)
        elif self._mode is _PARAGRAPH_HEAD and len(self._head) <= MOST_HEAD:
            self._head += text

    def _take(self, match: re.Match[str]) -> None:
        mark = match[0].lower()
        start, end = self._offset + match.start(), self._offset + match.end()
        if self._mode is _TEXT:
            self._open(mark, start, end)
        elif self._mode is _PARAGRAPH_HEAD:
            is_name = mark == "]" and _NAME.fullmatch(self._head)
            if is_name:
                self._mode = _PARAGRAPH_MODES[self._opener]
            else:
                self._end_block(end)
        elif self._opener in _SECTION_MODES:
            self._nest(mark, end)
        elif mark == ">":
            self._mode = _BODIES[self._opener]
        else:
            is_closed = bool(mark) or self._opener not in _PARAGRAPH_MODES
            self._end_block(end, is_closed=is_closed)

    def _nest(self, mark: str, end: int) -> None:
        is_opener = mark == self._opener
        self._is_nested = self._is_nested or is_opener
        self._depth += 1 if is_opener else -1
        if self._depth == 0:
            self._end_block(end)

    def _open(self, mark: str, start: int, end: int) -> None:
        self._block_start = start
        self._is_quoted = self._after.is_quoted
        self._opener, self._head = mark, ""
        self._depth, self._is_nested = 1, False
        if mark in _SECTION_MODES:
            self._mode = _SECTION_MODES[mark]
        elif mark in _PARAGRAPH_MODES:
            self._mode = _PARAGRAPH_HEAD
        elif mark in _HEADS:
            self._mode = _HEADS[mark]
        elif mark == USED_TOOLS:
            self._mode = _USED_MODE
        else:
            is_end = mark in _CLOSERS or mark.startswith("</")
            self._note(Block("stray_end" if is_end else "role_tag", start, end))

    def _end_block(self, end: int, *, is_closed: bool = True) -> None:
        opener = self._opener
        if opener.startswith("<") or opener == USED_TOOLS:
            kind: Kind = "thinking" if opener in _THINKING else "tool_call"
            block = Block(kind, self._block_start, end, is_closed=is_closed)
        else:
            block = Block(
                "tag",
                self._block_start,
                end,
                opener.strip("[:").upper(),
                is_closed=is_closed,
                is_nested=self._is_nested,
                is_quoted=self._is_quoted,
            )
        self._mode = _TEXT
        self._note(block)

    def _note(self, block: Block) -> None:
        self._gap.open()
        self._after.took(block.kind)
        if self._blocks is not None:
            self._blocks.append(block)
