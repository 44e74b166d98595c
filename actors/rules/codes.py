"""Short codes that people read on one screen and type on another; pure.

A code has 40 random bits, written as eight letters that look like no others. Wrong
ones may be tried a few times only, 480 in a day: one of twenty
codes that hold is guessed by one account in three hundred thousand years.
"""

from __future__ import annotations

import msgspec

from actors.rules.approvals import LETTERS
from actors.rules.recent import Recent

CODE_BYTES = 5
"""Random bytes of a code: eight letters of five bits each."""

MOST_TRIES = 5
"""Wrong codes of one account, until it has to wait."""

TRIES_WITHIN = 900.0
"""Seconds after which the tries of an account are forgotten."""

# Chosen: each is a hundred bytes; who floods pushes out the oldest.
MOST_TRIERS = 10_000


def code_of(random: bytes) -> str:
    """Write random bytes as a code.

    Args:
        random: `CODE_BYTES` bytes that nobody can guess.
    """
    number = int.from_bytes(random[:CODE_BYTES], "big")
    return "".join(LETTERS[number >> shift & 31] for shift in range(35, -5, -5))


def shown(code: str) -> str:
    """Write a code as people read it."""
    return f"{code[:4]}-{code[4:]}"


def plain(typed: str) -> str:
    """Read a code as people type it: in any case, with what looks alike."""
    letters = typed.upper().replace("O", "0").replace("I", "1").replace("L", "1")
    return "".join(c for c in letters if c in LETTERS)[:16]


class Tried(msgspec.Struct, frozen=True):
    """The wrong tries of one account."""

    count: int
    since: float


class Tries:
    """Who has tried wrong codes, and may try no more for a while."""

    def __init__(self) -> None:
        self._tried: Recent[str, Tried] = Recent(MOST_TRIERS)

    def are_used_up(self, account: str, now: float) -> bool:
        """Whether an account has to wait.

        Args:
            account: whose tries.
            now: seconds on a clock that does not go backwards.
        """
        return self._of(account, now).count >= MOST_TRIES

    def note_wrong(self, account: str, now: float) -> None:
        """Count a wrong code."""
        tried = self._of(account, now)
        self._tried[account] = Tried(tried.count + 1, tried.since)

    def forget(self, account: str) -> None:
        """Begin anew, after a right one."""
        self._tried.pop(account, None)

    def _of(self, account: str, now: float) -> Tried:
        tried = self._tried.get(account, Tried(0, now))
        return Tried(0, now) if now - tried.since >= TRIES_WITHIN else tried
