"""Codes by which a person shows that two accounts are theirs; pure.

A code is shown on one account, in private, and typed on the other. It holds for minutes
and counts once; what codes are, and how often wrong ones may be tried, is `codes.py`.
Kept in memory: after a restart a new one is asked for.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.rules.codes import Tries, code_of, plain, shown
from actors.rules.recent import Recent

HOLDS_FOR = 600.0
"""Seconds that a code holds."""

# Chosen: each is a hundred bytes; who floods pushes out the oldest, which only have
# to be asked for again.
MOST_CODES = 1_000

Refusal = Literal["unknown", "own", "too_many"]


class Issued(msgspec.Struct, frozen=True):
    """One code that holds."""

    account: str
    until: float


class Redeemed(msgspec.Struct, frozen=True):
    """A code that counted."""

    account: str
    """Where it was shown."""


class LinkCodes:
    """All codes that hold, and who has tried wrong ones."""

    def __init__(self) -> None:
        self._codes: Recent[str, Issued] = Recent(MOST_CODES)
        self._tries = Tries()

    def issue(self, account: str, random: bytes, now: float) -> str:
        """Make a code for an account; an earlier one of it no longer holds.

        Args:
            account: where it is shown.
            random: `CODE_BYTES` bytes that nobody can guess.
            now: seconds on a clock that does not go backwards.
        """
        for code, issued in tuple(self._codes.items()):
            if issued.account == account or issued.until <= now:
                del self._codes[code]
        code = code_of(random)
        self._codes[code] = Issued(account, now + HOLDS_FOR)
        return shown(code)

    def redeem(self, typed: str, account: str, now: float) -> Redeemed | Refusal:
        """Take a code that was typed on an account.

        Returns:
            The account it was shown on, or why it does not count.
        """
        if self._tries.are_used_up(account, now):
            return "too_many"
        code = plain(typed)
        issued = self._codes.get(code)
        if issued is None or issued.until <= now:
            self._tries.note_wrong(account, now)
            return "unknown"
        if issued.account == account:
            return "own"
        del self._codes[code]
        self._tries.forget(account)
        return Redeemed(issued.account)
