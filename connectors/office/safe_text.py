"""Texts of people and agents, made safe to be shown on a terminal or a page. Pure.

Control characters in them could move the cursor, change colours or type into a shell,
and marks that reorder text could make a name look like another one.
"""

from __future__ import annotations

import re

# Control characters but tab and line feed; then the marks that reorder text
# (bidirectional overrides and isolates), line and paragraph separators, and half
# surrogates, which no terminal can show.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def make_safe(text: str) -> str:
    """Make control characters visible; carriage returns before line feeds vanish."""
    return UNSAFE.sub(visible, text.replace("\r\n", "\n"))


def visible(found: re.Match[str]) -> str:
    """Give the sign for one control character: Unicode's picture of it, or U+FFFD."""
    code = ord(found.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"
