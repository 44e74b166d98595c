"""How a long reply is cut into messages that a platform takes; pure.

Cuts where people would: between paragraphs, else between lines, else between words,
else anywhere. Blanks at a cut are dropped, nothing else is.
"""

from __future__ import annotations

SEPARATORS = ("\n\n", "\n", " ")


def split(text: str, most: int) -> list[str]:
    """Cut a text into parts of at most `most` characters.

    Args:
        text: what is to be said.
        most: longest part, in characters; 0 means that any length is taken.

    Returns:
        No part is blank; a blank text has none.
    """
    parts: list[str] = []
    rest = text if most <= 0 or len(text) <= most else text.strip()
    while most > 0 and len(rest) > most:
        cut = _cut(rest, most)
        parts.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip()
    return [part for part in (*parts, rest) if part.strip()]


def _cut(text: str, most: int) -> int:
    """Find the best place for a cut; above 0."""
    for separator in SEPARATORS:
        # Why half: a first paragraph of three words is no message of its own.
        found = text.rfind(separator, most // 2, most + 1)
        if found > 0:
            return found
    return most
