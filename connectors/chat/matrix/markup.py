"""Markdown, as models write it, into the HTML that Matrix clients show; pure.

Why no pictures and no raw HTML: a client that loads an address tells its server what
stands in the address, and models can be talked into writing one.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

PLAIN = re.compile(r"<p>[^<&]*</p>\s*")

MARKDOWN = (
    MarkdownIt("commonmark", {"html": False, "breaks": True})
    .enable(["table", "strikethrough"])
    .disable(["image"])
)


def as_html(text: str) -> str:
    """Give the HTML of a text; empty if it looks the same without."""
    html = MARKDOWN.render(text).strip()
    return "" if PLAIN.fullmatch(html) else html
