"""Suggestions for a mistyped name.

Pure. Used wherever the answer is "there is no such name".
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

# Chosen: names in settings are short, and the time to compare grows with the length of
# a foreign word.
LONGEST_WORD = 64


def near_misses(word: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return at most three known names similar to `word`, the closest first."""
    names = {name.casefold(): name for name in known}
    close = get_close_matches(word[:LONGEST_WORD].casefold(), names)
    return tuple(names[each] for each in close)


def did_you_mean(near: tuple[str, ...], prefix: str = "") -> str:
    """Format suggestions as a sentence with a leading space; empty without any.

    Args:
        near: result of `near_misses`.
        prefix: written before each name, such as `/` before a command.
    """
    if not near:
        return ""
    return f" Did you mean {' or '.join(prefix + name for name in near)}?"
