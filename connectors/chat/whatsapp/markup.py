"""WhatsApp's marks.

Source: WhatsApp, "How to format your messages": `*bold*`, `_italic_`, `~strike~`,
code between one or three backticks, quotes and lists by line; no headings, tables or
named links, and nothing can be escaped. Nobody can be called from the text alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from connectors.chat.markup.dialect import (
    JOINT,
    MarkupLine,
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


@dataclass(frozen=True)
class WhatsApp:
    """WhatsApp; see `Dialect`."""

    marks: ClassVar[Mapping[Mark, tuple[str, str]]] = MARKS
    is_tagged: ClassVar[bool] = False
    needs_edges: ClassVar[bool] = True
    bullet: ClassVar[str] = "- "

    def prepare(self, inline: Inline) -> Inline:
        """Take the meaning from signs that stand for themselves."""
        return softened(inline, MARKS)

    def escape(self, text: str, *, is_first: bool) -> str:
        """Keep a line from becoming a quote."""
        is_quote = is_first and text.lstrip().startswith(">")
        return f"{JOINT}{text}" if is_quote else text

    def code(self, text: str) -> str:
        """Write code; its own backticks would end it."""
        return f"`{without_ticks(text)}`"

    def link(self, link: WebLink) -> str:
        """Write the address out."""
        if link.is_bare:
            return link.text
        return f"{link.text} ({link.href.removeprefix('mailto:')})"

    def fence(self, text: str, language: str) -> list[str]:
        """Write code; WhatsApp knows no languages."""
        del language
        lines = text.replace("``", f"`{JOINT}`").split("\n")
        return ["```", *lines, "```"]

    def heading(self, level: int) -> str:
        """Know no headings."""
        del level
        return ""

    def quote(self, lines: list[MarkupLine], depth: int) -> list[MarkupLine]:
        """Write a bracket before each line; WhatsApp knows no quotes in quotes."""
        return prefixed(lines, "> " if depth == 0 else f"{JOINT}> ")

    def plain(self, text: str) -> str:
        """Leave a text as it is."""
        return text

    def size(self, rendered: str) -> int:
        """Count as strictly as anybody could."""
        return utf16(rendered)
