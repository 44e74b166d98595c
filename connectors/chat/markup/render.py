"""The door: a text in, what is sent to a platform out."""

from __future__ import annotations

from connectors.chat.markup import html as web
from connectors.chat.markup.dialect import Dialect
from connectors.chat.markup.parse import read
from connectors.chat.markup.writer import write

UNSEEN = "\u200b\u2060\ufeff"


def rendered(text: str, dialect: Dialect, most: int = 0) -> str:
    """Write a text, which may be Markdown, in a dialect.

    Args:
        text: what a model, or the runtime, says.
        dialect: of the platform; it holds which mentions are allowed.
        most: what the platform takes, in its unit; 0: any.

    Returns:
        What is sent. As it is, with nothing but mentions and escapes mended, if its
        markup has no room, shows nothing, or is nested too deeply: a part that
        `actors/journal/splitting.py` has cut always fits so.
    """
    blocks = read(text)
    said = "" if blocks is None else write(blocks, dialect)
    is_seen = any(not letter.isspace() and letter not in UNSEEN for letter in said)
    if not is_seen or 0 < most < dialect.size(said):
        return dialect.plain(text)
    return said


def rendered_html(text: str) -> str:
    """Write a text as HTML; empty if it is nested too deeply."""
    blocks = read(text)
    return "" if blocks is None else web.as_html(blocks)
