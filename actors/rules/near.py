"""Known names that look like a mistyped one.

Pure; used by every rule that has to answer "there is no such name".
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Chosen: names in settings are short; comparing takes time in proportion to the
# length, and the word comes from outside.
LONGEST_WORD = 64


def near_misses(word: str, known: Iterable[str]) -> tuple[str, ...]:
    """Find at most three known names that resemble `word`, the closest first."""
    names = {name.casefold(): name for name in known}
    close = get_close_matches(word[:LONGEST_WORD].casefold(), names)
    return tuple(names[each] for each in close)


def did_you_mean(near: tuple[str, ...], prefix: str = "") -> str:
    """Put near misses into a sentence with a leading blank; empty if there are none.

    Args:
        near: what `near_misses` found.
        prefix: written before each name, such as `/` before a command.
    """
    if not near:
        return ""
    return f" Did you mean {' or '.join(prefix + name for name in near)}?"
