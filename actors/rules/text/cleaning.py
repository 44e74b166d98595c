"""Cleans and shortens text of foreign programs. Pure.

Descriptions by tool servers and skill files go into prompts and logs. Cleaning removes
what people cannot see and models can.
"""

from __future__ import annotations

import re

CUT = "…"

# Control characters except tab and line feed; marks that change the direction of text
# or join and split it invisibly; characters that no font shows (U+E0000 tags can hide
# whole sentences); lone surrogates, which no encoding accepts.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
LINE_ENDS = re.compile("\r\n?|\u2028|\u2029|\x85")
MANY_BLANK_LINES = re.compile(r"\n{3,}")


def clean(text: str, most: int) -> str:
    """Remove invisible characters, then shorten.

    Args:
        most: longest result in characters, at least 1.

    Returns:
        The cleaned text; a shortened one ends with an ellipsis.
    """
    # Why first: the part that is cut off need not be searched.
    text = text[: 4 * most + 1_000]
    seen = UNSEEN.sub("", LINE_ENDS.sub("\n", text))
    seen = MANY_BLANK_LINES.sub("\n\n", seen).strip()
    return seen if len(seen) <= most else seen[: most - 1] + CUT


def one_line(text: str, most: int) -> str:
    """Clean a text and put it on one line."""
    return clean(" ".join(text[: 4 * most + 1_000].split()), most)
