"""Glob patterns for names and ids in the settings. Pure.

`*` matches anything and `?` one character, case-sensitively. Brackets have no meaning,
so an id such as `[bridge] sam` matches itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate

import msgspec


class Globs(msgspec.Struct, frozen=True):
    """A list of compiled patterns; made by `globs`."""

    exact: frozenset[str] = frozenset()
    patterns: tuple[tuple[str, re.Pattern[str]], ...] = ()
    """Each pattern as written and compiled, in order."""

    def fit(self, text: str) -> str:
        """Return the first matching pattern as written; empty if none matches."""
        if text in self.exact:
            return text
        return next((way for way, each in self.patterns if each.match(text)), "")


def globs(patterns: Iterable[str]) -> Globs:
    """Compile patterns."""
    written = tuple(patterns)
    wild = tuple(
        (each, re.compile(translate(each))) for each in written if is_wild(each)
    )
    return Globs(frozenset(written), wild)


def is_wild(pattern: str) -> bool:
    """Return whether a pattern can match more than itself."""
    return any(letter in pattern for letter in "*?[")
