"""Whether two texts say the same thing, so that it need not be kept twice (F138).

Pure. Two measures, as in Arvis: at least 70 % of the words are the same, or fewer than
15 % of the characters of the longer text differ. Neither may hide a change: texts with
other numbers, or of which one says *not*, do not say the same.
"""

from __future__ import annotations

import re
from collections import Counter

from actors.rules.index_words import RUN, folded, words_of

WORD_OVERLAP = 0.7
"""Share of the telling words of the text with more of them that the other has too."""

EDIT_SHARE = 0.15
"""Share of the longer text's characters; fewer edits than this make one the other."""

SHORTEST_EDITED = 20
"""Characters; in a shorter text one letter makes another word: *tea*, *sea*."""

LONGEST_EDITED = 400
"""Characters; edits of longer texts are not counted, only their words."""

NUMBER = re.compile(r"\d+")
NEGATED = """
no not never none nothing nobody without cannot don didn doesn isn aren wasn weren won
wouldn shouldn couldn hasn haven anymore nunca jamas nada nadie sin tampoco ni nao nicht
nie kein keine keinen keiner niemals ohne pas jamais rien sans non mai senza niet nooit
geen zonder не нет никогда без
"""
NEGATIONS = frozenset(NEGATED.split())


def is_alike(first: str, second: str) -> bool:
    """Whether two texts say the same thing, as far as one can see."""
    left, right = (" ".join(RUN.findall(folded(text))) for text in (first, second))
    if left == right:
        return bool(left)
    if not left or not right or _changes(left) != _changes(right):
        return False
    return _shares_words(left, right) or _is_edited(left, right)


def _changes(text: str) -> tuple[Counter[str], bool]:
    words = frozenset(text.split())
    return Counter(NUMBER.findall(text)), bool(words & NEGATIONS)


def _shares_words(left: str, right: str) -> bool:
    # Why only those that tell something: *owns a book on stars* and *… on trees* have
    # four of five words in common, of three that matter two.
    first, second = Counter(words_of(left)), Counter(words_of(right))
    most = max(first.total(), second.total())
    return bool(most) and (first & second).total() >= WORD_OVERLAP * most


def _is_edited(left: str, right: str) -> bool:
    longer = max(len(left), len(right))
    if not SHORTEST_EDITED <= longer <= LONGEST_EDITED:
        return False
    # Fewer than: 15 % itself is too many.
    most = -int(-EDIT_SHARE * longer // 1) - 1
    return edits(left, right, most) <= most


def edits(left: str, right: str, most: int) -> int:
    """Count the characters to put in, take out or replace; Levenshtein's distance.

    Args:
        left: one text.
        right: the other.
        most: more are not counted.

    Returns:
        `most + 1` if there are more.
    """
    if most < 0 or abs(len(left) - len(right)) > most or _differ(left, right) > most:
        return most + 1
    # Only cells that near the diagonal can be within `most`.
    too_many = most + 1
    row = [min(column, too_many) for column in range(len(right) + 1)]
    for at, character in enumerate(left, 1):
        begin, end = max(1, at - most), min(len(right), at + most)
        above, row = row, [too_many] * (len(right) + 1)
        row[0] = min(at, too_many)
        for column in range(begin, end + 1):
            step = above[column - 1] + (character != right[column - 1])
            row[column] = min(step, above[column] + 1, row[column - 1] + 1, too_many)
        if min(row) > most:
            return too_many
    return row[-1]


def _differ(left: str, right: str) -> int:
    """Give a number of edits that are needed at least, whatever the order."""
    first, second = Counter(left), Counter(right)
    return max((first - second).total(), (second - first).total())
