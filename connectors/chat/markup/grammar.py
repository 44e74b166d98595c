"""Which Markdown is read: CommonMark with tables, strikethrough and bare addresses.

Raw HTML is text. Definitions of links (`[1]: https://…`) are text, too: a part of a
reply must be understood by itself, and one definition could make a short part long.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

# Chosen: nobody reads deeper quotes or lists, and markdown-it leaves out what is
# nested deeper than it may.
MOST_NESTED = 30

MOST_PIPES = 64
"""Columns of a table, about; a line with more makes all of a text have no tables.

Why: markdown-it fills short rows with empty cells, so that 8 KB took 1.3 s."""

# Why from the beginning of a line: begun anywhere, a line without pipes was looked at
# as often as it has characters, and 60 KB took 17 s.
TOO_WIDE = re.compile(rf"^(?:[^|\n]*\|){{{MOST_PIPES}}}", re.MULTILINE)
LONGEST_SCHEME = len("-https")
SCHEME = re.compile(r"(?:^|[^A-Za-z0-9+.-])(https?)$", re.IGNORECASE)
AFTER_SCHEME = re.compile(r"://[^\s<>`|\"\\\x00-\x1f\x7f]{1,2000}")
CLOSERS = {")": "(", "]": "[", "}": "{"}
NO_END = ".,:;!?'*_~"


def bare_address(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - their shape
    """Read an address that stands in the text, so that no mark is found in it."""
    if state.linkLevel > 0 or state.src[state.pos] != ":":
        return False
    scheme = SCHEME.search(state.pending[-LONGEST_SCHEME:])
    found = AFTER_SCHEME.match(state.src, state.pos, state.posMax)
    if scheme is None or found is None:
        return False
    rest = without_end(found[0])
    if len(rest) <= len("://"):
        return False
    if not silent:
        state.pending = state.pending[: -len(scheme[1])]
        opening = state.push("link_open", "a", 1)
        opening.attrs, opening.info = {"href": scheme[1] + rest}, "auto"
        state.push("text", "", 0).content = scheme[1] + rest
        state.push("link_close", "a", -1)
    state.pos += len(rest)
    return True


def without_end(address: str) -> str:
    """Leave out the marks after an address that belong to the sentence."""
    while address:
        last = address[-1]
        opener = CLOSERS.get(last, "")
        is_extra = bool(opener) and address.count(last) > address.count(opener)
        if last not in NO_END and not is_extra:
            return address
        address = address[:-1]
    return address


def make_parser(*, has_tables: bool) -> MarkdownIt:
    """Make a parser; threads may share it.

    It puts its rules together when it reads first, for all to see: so it reads here.
    """
    options = {"html": False, "breaks": True, "maxNesting": MOST_NESTED}
    parser = MarkdownIt("commonmark", options).disable("reference")
    parser = parser.enable(["strikethrough", *(["table"] if has_tables else [])])
    parser.inline.ruler.before("newline", "bare_address", bare_address)
    parser.parse("a")
    return parser


PARSER, WITHOUT_TABLES = make_parser(has_tables=True), make_parser(has_tables=False)


def tokens_of(text: str) -> list[Token]:
    """Read a text into markdown-it's tokens."""
    parser = WITHOUT_TABLES if TOO_WIDE.search(text) else PARSER
    return parser.parse(text)


def is_too_deep(tokens: list[Token]) -> bool:
    """Tell whether something may have been left out."""
    return any(token.level + 1 >= MOST_NESTED for token in tokens)
