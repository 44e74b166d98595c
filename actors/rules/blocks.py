"""What was taken out of a text, as the two stages of the sanitiser note it; pure."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal[
    "tag",
    "mark",
    "control",
    "stray_end",
    "tool_call",
    "thinking",
    "role_tag",
    "tool_json",
    "narration",
]


class Block(msgspec.Struct, frozen=True):
    """One thing that the sanitiser took out."""

    kind: Kind
    start: int
    end: int
    """Offsets into the whole text, as for slices."""

    name: str = ""
    """Of a tag or a mark, as in `rules/tags.py`; of a control word, the word."""

    text: str = ""
    """The line of a mark: what stood in it may have been taken out before."""

    is_closed: bool = True
    is_nested: bool = False
    """True for a tag with another one of its name inside."""

    is_quoted: bool = False
    """Whether it stood in code: then it is an example, and not carried out."""

    is_too_long: bool = False
    """Whether a line was too long to be read."""
