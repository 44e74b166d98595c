"""Patterns of names and ids, as the settings have them; pure.

`*` stands for anything, `?` for one character, in the letters' own case. What is
written like an id fits that id, whatever stands in it: `[bridge] sam` is no set.
"""

from __future__ import annotations

import re
from fnmatch import translate
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable


class Globs(msgspec.Struct, frozen=True):
    """Some patterns, ready for matching; made by `globs`."""

    exact: frozenset[str] = frozenset()
    patterns: tuple[tuple[str, re.Pattern[str]], ...] = ()
    """As they were written, and compiled; in their order."""

    def fit(self, text: str) -> str:
        """Give the pattern that fits, as it was written; empty: none does."""
        if text in self.exact:
            return text
        return next((way for way, each in self.patterns if each.match(text)), "")


def globs(patterns: Iterable[str]) -> Globs:
    """Make patterns ready for matching."""
    written = tuple(patterns)
    wild = tuple(
        (each, re.compile(translate(each))) for each in written if is_wild(each)
    )
    return Globs(frozenset(written), wild)


def is_wild(pattern: str) -> bool:
    """Whether a pattern may fit more than itself."""
    return any(letter in pattern for letter in "*?[")
