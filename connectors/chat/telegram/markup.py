"""Telegram's HTML.

Source: Bot API, "Formatting options", "HTML style": `b`, `i`, `s`, `code`, `pre` with
`code class="language-…"`, `a`, `blockquote`; `&lt;`, `&gt;` and `&amp;`. Code and `pre`
go with no other mark, quotes with no other quote. Only the text counts against the
limit, not its tags; of more than 100 marks in a message the last are not shown. Names
with an at sign call people: a blank of no width is put into them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from connectors.chat.markup.dialect import JOINT, MarkupLine, parted, utf16
from connectors.chat.markup.tree import Code, Inline, Mark, WebLink

MARKS: dict[Mark, tuple[str, str]] = {
    "strong": ("<b>", "</b>"),
    "em": ("<i>", "</i>"),
    "strike": ("<s>", "</s>"),
}
# Why the end: what follows may be a name between tags, which call as without them.
CALL = re.compile(r"(?<!\w)@(?=\w|\Z)")
TAG = re.compile(r"<[^>]*>")
LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,32}")


@dataclass(frozen=True)
class Telegram:
    """Telegram; see `Dialect`."""

    allowed: frozenset[str] = frozenset()
    """Mentions that stay, as `@zoe_1`."""

    marks: ClassVar[Mapping[Mark, tuple[str, str]]] = MARKS
    is_tagged: ClassVar[bool] = True
    needs_edges: ClassVar[bool] = False
    bullet: ClassVar[str] = "• "

    def prepare(self, inline: Inline) -> Inline:
        """Take the marks from code, which goes with none."""
        return tuple(
            Code(piece.text) if isinstance(piece, Code) else piece for piece in inline
        )

    def escape(self, text: str, *, is_first: bool) -> str:
        """Escape what HTML reads, and break names that would call."""
        del is_first
        pieces = parted(text, self.allowed)
        said = [
            html.escape(each, quote=False) if index % 2 else escaped(each)
            for index, each in enumerate(pieces)
        ]
        return "".join(said)

    def code(self, text: str) -> str:
        """Write code."""
        return f"<code>{html.escape(text, quote=False)}</code>"

    def link(self, link: WebLink) -> str:
        """Write a link; clients find bare addresses themselves."""
        if link.is_bare:
            return html.escape(link.text, quote=False)
        href = html.escape(link.href)
        return f'<a href="{href}">{escaped(link.text)}</a>'

    def fence(self, text: str, language: str) -> list[str]:
        """Write code with its language."""
        inner = html.escape(text, quote=False)
        if LANGUAGE.fullmatch(language):
            opener = f'<pre><code class="language-{language}">'
            return f"{opener}{inner}</code></pre>".split("\n")
        return f"<pre>{inner}</pre>".split("\n")

    def heading(self, level: int) -> str:
        """Know no headings."""
        del level
        return ""

    def quote(self, lines: list[MarkupLine], depth: int) -> list[MarkupLine]:
        """Put a quote between tags; in it, brackets begin the lines of another."""
        if not any(line.text for line in lines):
            return []
        if depth > 0:
            return [MarkupLine(f"&gt; {line.text}", is_flush=True) for line in lines]
        text = "\n".join(line.text for line in lines)
        whole = f"<blockquote>{text}</blockquote>"
        return [MarkupLine(line, is_flush=True) for line in whole.split("\n")]

    def plain(self, text: str) -> str:
        """Escape what HTML reads, and break names that would call."""
        return escaped(text)

    def size(self, rendered: str) -> int:
        """Count what is left when tags and escapes are read."""
        return utf16(html.unescape(TAG.sub("", rendered)))


def escaped(text: str) -> str:
    """Escape what HTML reads, and break names that would call."""
    return html.escape(CALL.sub(f"@{JOINT}", text), quote=False)
