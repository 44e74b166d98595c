"""Whose memory holds nothing, so that nobody needs to look; pure.

Most messages come from people of whom nothing is known. That is looked up once, and
holds until something is written there. What is remembered after a look began is
counted, so that a look that came too early settles nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST = 10_000
"""Scopes known to be blank; one more makes the oldest unknown again."""

VALID = 600.0
"""Seconds. Why not for ever: another program may write to the same database, and
nobody tells of that."""


class Look(msgspec.Struct, frozen=True):
    """When a look into memory began."""

    written: int
    """How often something had been written by then."""

    at: float
    """Seconds of a clock that only goes forward."""


class Blanks:
    """Scopes that hold nothing.

    Args:
        most: how many are known at once.
    """

    __slots__ = ("_seen", "_written")

    def __init__(self, most: int = MOST) -> None:
        self._seen: Recent[str, float] = Recent(most)
        self._written = 0

    def look(self, now: float) -> Look:
        """Begin to look; give what `found` is told afterwards."""
        return Look(self._written, now)

    def found(self, scopes: Iterable[str], look: Look) -> None:
        """Take in that a look found nothing in these scopes, nor anything expired."""
        if look.written == self._written:
            for scope in scopes:
                self._seen[scope] = look.at

    def wrote(self, scopes: Iterable[str]) -> None:
        """Take in that something was written there."""
        self._written += 1
        for scope in scopes:
            self._seen.pop(scope, None)

    def cover(self, scopes: tuple[str, ...], now: float) -> bool:
        """Tell whether all of these scopes, one at least, hold nothing."""
        never = now - VALID
        return bool(scopes) and all(
            self._seen.get(scope, never) > never for scope in scopes
        )
