"""Short codes that people read on one screen and type on another. Pure.

A code has 40 random bits in eight letters that cannot be confused. An account may try
only 480 wrong codes a day, so guessing one of twenty valid codes takes three hundred
thousand years.
"""

from __future__ import annotations

import msgspec

from actors.rules.text.limits import RecentMap

CODE_BYTES = 5
"""Random bytes of a code; they give eight letters of five bits each."""

MOST_TRIES = 5
"""Wrong codes that an account may try before it has to wait."""

TRIES_WITHIN = 900.0
"""Seconds after which an account's tries are forgotten."""

# Chosen: each takes a hundred bytes; a flood pushes out the oldest.
MOST_TRIERS = 10_000


def code_of(random: bytes) -> str:
    """Encode random bytes as a code.

    Args:
        random: `CODE_BYTES` bytes from a secure source.
    """
    number = int.from_bytes(random[:CODE_BYTES], "big")
    return "".join(LETTERS[number >> shift & 31] for shift in range(35, -5, -5))


def shown(code: str) -> str:
    """Format a code for people."""
    return f"{code[:4]}-{code[4:]}"


def plain(typed: str) -> str:
    """Normalise a code as typed by people: case, separators, similar letters."""
    letters = typed.upper().replace("O", "0").replace("I", "1").replace("L", "1")
    return "".join(c for c in letters if c in LETTERS)[:16]


class WrongTries(msgspec.Struct, frozen=True):
    """Wrong tries of one account."""

    count: int
    since: float


class TryLimiter:
    """Limits how many wrong codes an account may try."""

    def __init__(self) -> None:
        self._tried: RecentMap[str, WrongTries] = RecentMap(MOST_TRIERS)

    def are_used_up(self, account: str, now: float) -> bool:
        """Return whether an account has to wait.

        Args:
            now: monotonic seconds.
        """
        return self._of(account, now).count >= MOST_TRIES

    def note_wrong(self, account: str, now: float) -> None:
        """Count a wrong code."""
        tried = self._of(account, now)
        self._tried[account] = WrongTries(tried.count + 1, tried.since)

    def forget(self, account: str) -> None:
        """Forget the wrong tries, after a right code."""
        self._tried.pop(account, None)

    def _of(self, account: str, now: float) -> WrongTries:
        tried = self._tried.get(account, WrongTries(0, now))
        return WrongTries(0, now) if now - tried.since >= TRIES_WITHIN else tried


# Source: Crockford's base 32: no I, L, O (similar to digits) and no U (accidental
# obscenities).
LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
