"""Slack's mrkdwn.

Source: Slack, "Formatting text for app surfaces": `*bold*`, `_italic_`, `~strike~`,
code, quotes by line, `<https://…|named links>`; no headings, tables or nested lists; of
all signs only `&`, `<` and `>` are escaped, and all that calls somebody begins with
`<`. Marks inside a word are not seen: a blank of no width stands at their edges.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from connectors.chat.markup.dialect import (
    JOINT,
    MarkupLine,
    parted,
    prefixed,
    softened,
    utf16,
    without_ticks,
)
from connectors.chat.markup.tree import Inline, Mark, WebLink

MARKS: dict[Mark, tuple[str, str]] = {
    "strong": ("*", "*"),
    "em": ("_", "_"),
    "strike": ("~", "~"),
}
ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
# With `link_names` these would call, too.
CALL = re.compile(r"@(?=channel|here|everyone)", re.IGNORECASE)


@dataclass(frozen=True)
class Slack:
    """Slack; see `Dialect`."""

    allowed: frozenset[str] = frozenset()
    """Mentions that stay, as `<@U123>`."""

    marks: ClassVar[Mapping[Mark, tuple[str, str]]] = MARKS
    is_tagged: ClassVar[bool] = False
    needs_edges: ClassVar[bool] = True
    bullet: ClassVar[str] = "• "

    def prepare(self, inline: Inline) -> Inline:
        """Take the meaning from signs that stand for themselves."""
        return softened(inline, MARKS)

    def escape(self, text: str, *, is_first: bool) -> str:
        """Escape what Slack reads."""
        pieces = parted(text, self.allowed)
        said = [
            each if index % 2 else escaped(each) for index, each in enumerate(pieces)
        ]
        whole = "".join(said)
        is_quote = is_first and whole.lstrip().startswith("&gt;")
        return f"{JOINT}{whole}" if is_quote else whole

    def code(self, text: str) -> str:
        """Write code; its own backticks would end it."""
        return f"`{escaped(without_ticks(text))}`"

    def link(self, link: WebLink) -> str:
        """Write a link."""
        href = link.href.translate(ESCAPES).replace("|", "%7C")
        if link.is_bare and link.text == link.href:
            return f"<{href}>"
        return f"<{href}|{escaped(link.text).replace('|', '¦')}>"

    def fence(self, text: str, language: str) -> list[str]:
        """Write code; Slack knows no languages."""
        del language
        inner = escaped(text).replace("``", f"`{JOINT}`")
        return ["```", *inner.split("\n"), "```"]

    def heading(self, level: int) -> str:
        """Know no headings."""
        del level
        return ""

    def quote(self, lines: list[MarkupLine], depth: int) -> list[MarkupLine]:
        """Write a bracket before each line; Slack knows no quotes in quotes."""
        return prefixed(lines, "> " if depth == 0 else f"{JOINT}&gt; ")

    def plain(self, text: str) -> str:
        """Escape what Slack reads."""
        return escaped(text)

    def size(self, rendered: str) -> int:
        """Count as strictly as anybody could."""
        return utf16(rendered)


def escaped(text: str) -> str:
    """Escape what Slack reads, and break what calls a channel."""
    return CALL.sub(f"@{JOINT}", text).translate(ESCAPES)
