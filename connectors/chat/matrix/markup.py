"""Markdown, as models write it, into the HTML that Matrix clients show; pure."""

from __future__ import annotations

import re

from connectors.chat.markup.rendering import rendered_html

PLAIN = re.compile(r"<p>[^<&]*</p>\s*")


def as_html(text: str) -> str:
    """Give the HTML of a text; empty if it looks the same without."""
    html = rendered_html(text)
    return "" if PLAIN.fullmatch(html) else html
