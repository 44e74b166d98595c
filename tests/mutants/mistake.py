"""What a mistake is that the tests must find."""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """One mistake."""

    name: str
    file: str
    before: str
    """Stands exactly once in the file."""

    after: str
    tests: tuple[str, ...]
    """What must go red; the whole suite would, too."""


SIMULATION = ("tests/simulation",)
