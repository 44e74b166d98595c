"""Text without any markup: terminals, and platforms that show none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from connectors.chat.markup.dialect import MarkupLine, prefixed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.chat.markup.tree import Inline, Mark, WebLink


@dataclass(frozen=True)
class Plain:
    """No markup; see `Dialect`."""

    marks: ClassVar[Mapping[Mark, tuple[str, str]]] = {}
    is_tagged: ClassVar[bool] = False
    needs_edges: ClassVar[bool] = False
    bullet: ClassVar[str] = "- "

    def prepare(self, inline: Inline) -> Inline:
        """Leave a paragraph as it is."""
        return inline

    def escape(self, text: str, *, is_first: bool) -> str:
        """Leave text as it is."""
        del is_first
        return text

    def code(self, text: str) -> str:
        """Leave code as it is."""
        return text

    def link(self, link: WebLink) -> str:
        """Write the address out."""
        return link.href if link.is_bare else f"{link.text} ({link.href})"

    def fence(self, text: str, language: str) -> list[str]:
        """Write the code alone."""
        del language
        return text.split("\n")

    def heading(self, level: int) -> str:
        """Show no level."""
        del level
        return ""

    def quote(self, lines: list[MarkupLine], depth: int) -> list[MarkupLine]:
        """Write a bracket before each line."""
        del depth
        return prefixed(lines, "> ")

    def plain(self, text: str) -> str:
        """Leave a text as it is."""
        return text

    def size(self, rendered: str) -> int:
        """Count characters."""
        return len(rendered)
