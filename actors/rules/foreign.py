"""Text from programs nobody here has read: cleaned and cut, never trusted; pure.

What a server of tools, or a skill's file, says of itself goes into prompts and logs.
It keeps its letters and loses what people cannot see and models can.
"""

from __future__ import annotations

import re

CUT = "…"

# Control characters but tab and line feed; marks that turn the direction of text
# around or join and part it unseen; what no font shows (U+E0000 tags, in which whole
# sentences can be hidden); halves of characters, which no encoding takes.
UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
LINE_ENDS = re.compile("\r\n?|\u2028|\u2029|\x85")
MANY_BLANK_LINES = re.compile(r"\n{3,}")


def clean(text: str, most: int) -> str:
    """Take out what cannot be seen, then cut.

    Args:
        text: anything.
        most: characters that may be left, at least 1.

    Returns:
        At most that many; a cut text ends with an ellipsis.
    """
    # Why first: what is thrown away need not be looked through.
    text = text[: 4 * most + 1_000]
    seen = UNSEEN.sub("", LINE_ENDS.sub("\n", text))
    seen = MANY_BLANK_LINES.sub("\n\n", seen).strip()
    return seen if len(seen) <= most else seen[: most - 1] + CUT


def one_line(text: str, most: int) -> str:
    """Clean a text, and make one line of it."""
    return clean(" ".join(text[: 4 * most + 1_000].split()), most)
