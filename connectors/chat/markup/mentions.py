"""Which mentions in a model's words may call somebody.

None, unless the connector allows it word by word: people who read the same chat are
called by what the model was talked into otherwise.
"""

from __future__ import annotations

import re
from functools import cache


@cache
def pattern_of(allowed: frozenset[str]) -> re.Pattern[str] | None:
    """Give what finds the mentions that are allowed; None: there are none."""
    if not allowed:
        return None
    longest_first = sorted(allowed, key=lambda each: (-len(each), each))
    return re.compile("(" + "|".join(map(re.escape, longest_first)) + r")(?!\w)")


def parted(text: str, allowed: frozenset[str]) -> list[str]:
    """Part a text; every second piece is a mention that is allowed."""
    pattern = pattern_of(allowed)
    return [text] if pattern is None else pattern.split(text)
