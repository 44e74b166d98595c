"""What QQ shows: plain text, in which some words call people or channels.

Source: QQ, "内嵌格式" and "文本交互": `<@id>`, `<#id>`, `<emoji:id>`, `<qqbot-…/>` and
`@everyone`. Markdown is for bots that QQ has given leave by a template, so not used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from connectors.chat.markup.dialect import JOINT, Plain, WebLink, utf16

CALLS = re.compile(r"<(?=[@#/a-zA-Z])|@(?=everyone)")
"""Signs with which something begins that QQ does not show as it is."""


@dataclass(frozen=True)
class QQ(Plain):
    """QQ; see `Dialect`. Nobody is called: a joint follows what would begin a call."""

    def escape(self, text: str, *, is_first: bool) -> str:
        """Keep text from calling anybody."""
        del is_first
        return self.plain(text)

    def code(self, text: str) -> str:
        """Keep code from calling anybody."""
        return self.plain(text)

    def link(self, link: WebLink) -> str:
        """Write the address out; its words call nobody."""
        return self.plain(super().link(link))

    def fence(self, text: str, language: str) -> list[str]:
        """Write the code alone; nobody is called there, either."""
        del language
        return self.plain(text).split("\n")

    def plain(self, text: str) -> str:
        """Keep a text from calling anybody."""
        return CALLS.sub(lambda found: f"{found[0]}{JOINT}", text)

    def size(self, rendered: str) -> int:
        """Count as strictly as anybody could."""
        return utf16(rendered)
