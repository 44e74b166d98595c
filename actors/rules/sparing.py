"""Who was told of a refusal lately: a flood is not answered by a flood; pure."""

from __future__ import annotations

from actors.rules.recent import Recent

# Chosen: who is pushed out is told once more than need be.
MOST_TOLD = 256
"""People kept in mind; of more, those told longest ago are forgotten."""


class Sparing:
    """Tells each person once in a period.

    Args:
        every: seconds of that period; 0: each time.
        most: people kept in mind, at least one.
    """

    __slots__ = ("_told", "every")

    def __init__(self, every: float, most: int = MOST_TOLD) -> None:
        self.every = every
        """May be changed."""

        self._told: Recent[tuple[str, ...], float] = Recent(most)

    def may_tell(self, whose: tuple[str, ...], now: float) -> bool:
        """Whether somebody is told now; then they are not for a while.

        Args:
            whose: who, where, and of what.
            now: seconds on the caller's clock; must not go backwards.
        """
        at = self._told.get(whose)
        if at is not None and now - at < self.every:
            return False
        if self.every:
            self._told[whose] = now
        return True
