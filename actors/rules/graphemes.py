"""Where a text may be cut between what people take for letters; pure.

Source: Unicode Annex 29, "Grapheme Cluster Boundaries", as far as Python's own tables
go: what is put on a letter stays with it; so do joined emoji, flags, the parts of a
Korean syllable and of an Indian conjunct, and CR with LF.
"""

from __future__ import annotations

import unicodedata

ZWJ = "\u200d"
VIRAMA = 9  # the combining class of signs that join two consonants

# Chosen: the longest emoji of Unicode 16 have ten; more is a tower of accents.
MOST = 32
"""Code points of one letter that are kept together."""


def boundary(text: str, at: int) -> int:
    """Give the last place, at most `at`, where a text may be cut; above 0.

    Args:
        text: any.
        at: from 1 to its length.
    """
    for place in range(at, max(at - MOST, 0), -1):
        if place == len(text) or not _is_joined(text, place):
            return place
    return at


def _is_joined(text: str, at: int) -> bool:
    """Tell whether the letters on both sides of a place are one."""
    before, after = text[at - 1], text[at]
    if before.isascii() and after.isascii():
        return before == "\r" and after == "\n"
    if _extends(after):
        return True
    if _is_flag(before) and _is_flag(after):
        return _flags_before(text, at) % 2 == 1
    is_conjunct = unicodedata.combining(before) == VIRAMA and after.isalpha()
    is_pair = "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff"
    return before == ZWJ or is_conjunct or is_pair or _is_korean(before, after)


def _extends(letter: str) -> bool:
    return (
        letter == ZWJ
        or unicodedata.category(letter) in {"Mn", "Me", "Mc"}
        or "\U0001f3fb" <= letter <= "\U0001f3ff"  # colours of skin
        or "\U000e0020" <= letter <= "\U000e007f"  # tags, as in Scotland's flag
    )


def _is_flag(letter: str) -> bool:
    return "\U0001f1e6" <= letter <= "\U0001f1ff"


def _flags_before(text: str, at: int) -> int:
    begin = at
    while begin > 0 and _is_flag(text[begin - 1]):
        begin -= 1
    return at - begin


def _is_korean(before: str, after: str) -> bool:
    """Tell whether two parts make one syllable."""
    if "\u1160" <= after <= "\u11ff":  # a vowel or an end follows
        return "\u1100" <= before <= "\u11ff" or "\uac00" <= before <= "\ud7a3"
    is_begun = "\u1100" <= before <= "\u115f"
    return is_begun and ("\u1100" <= after <= "\u115f" or "\uac00" <= after <= "\ud7a3")
