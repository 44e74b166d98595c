"""How alike two tasks are, by their words; pure (F259)."""

from __future__ import annotations

import re

ALIKE = 0.5
"""From here on people are asked whether they meant the same."""

MOST = 2000
"""Characters looked at."""

_WORD = re.compile(r"\w+")
_SHORT = 3


def are_alike(one: str, other: str) -> bool:
    """Whether two texts share half of their words, or more."""
    mine, theirs = words_of(one), words_of(other)
    both = mine & theirs
    return len(both) >= ALIKE * len(mine | theirs) > 0


def words_of(text: str) -> frozenset[str]:
    """Give the words that tell one task from another.

    Short ones are left out if there are others. What is written without blanks
    between the words (Chinese, Japanese) is taken apart into pairs of characters.
    """
    found: set[str] = set()
    for word in _WORD.findall(text[:MOST].casefold()):
        if word[0] >= "\u2e80" and len(word) > 2:
            found.update(word[at : at + 2] for at in range(len(word) - 1))
        else:
            found.add(word)
    long = {each for each in found if len(each) >= _SHORT or each[0] >= "\u2e80"}
    return frozenset(long or found)
