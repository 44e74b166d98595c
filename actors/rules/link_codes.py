"""Codes by which a person shows that two accounts are theirs; pure.

A code is shown on one account, in private, and typed on the other. It has 40 random
bits, holds for minutes, counts once, and wrong ones may be tried a few times only.
Kept in memory: after a restart a new one is asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

import msgspec

from actors.rules.approvals import LETTERS

CODE_BYTES = 5
"""Random bytes of a code: eight letters of five bits each."""

HOLDS_FOR = 600.0
"""Seconds that a code holds."""

MOST_TRIES = 5
"""Wrong codes of one account, until it has to wait."""

TRIES_WITHIN = 900.0
"""Seconds after which the tries of an account are forgotten."""

# Chosen: each is a hundred bytes; who floods pushes out the oldest, which only have
# to be asked for again.
MOST_CODES = 1_000
MOST_TRIERS = 10_000

Refusal = Literal["unknown", "own", "too_many"]


class Issued(msgspec.Struct, frozen=True):
    """One code that holds."""

    account: str
    until: float


class Tried(msgspec.Struct, frozen=True):
    """The wrong tries of one account."""

    count: int
    since: float


class Redeemed(msgspec.Struct, frozen=True):
    """A code that counted."""

    account: str
    """Where it was shown."""


class LinkCodes:
    """All codes that hold, and who has tried wrong ones."""

    def __init__(self) -> None:
        self._codes: OrderedDict[str, Issued] = OrderedDict()
        self._tried: OrderedDict[str, Tried] = OrderedDict()

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
        number = int.from_bytes(random[:CODE_BYTES], "big")
        code = "".join(LETTERS[number >> shift & 31] for shift in range(35, -5, -5))
        self._codes[code] = Issued(account, now + HOLDS_FOR)
        while len(self._codes) > MOST_CODES:
            self._codes.popitem(last=False)
        return f"{code[:4]}-{code[4:]}"

    def redeem(self, typed: str, account: str, now: float) -> Redeemed | Refusal:
        """Take a code that was typed on an account.

        Returns:
            The account it was shown on, or why it does not count.
        """
        tried = self._tried.get(account, Tried(0, now))
        if now - tried.since >= TRIES_WITHIN:
            tried = Tried(0, now)
        if tried.count >= MOST_TRIES:
            return "too_many"
        code = plain(typed)
        issued = self._codes.get(code)
        if issued is None or issued.until <= now:
            self._note(account, Tried(tried.count + 1, tried.since))
            return "unknown"
        if issued.account == account:
            return "own"
        del self._codes[code]
        self._tried.pop(account, None)
        return Redeemed(issued.account)

    def _note(self, account: str, tried: Tried) -> None:
        self._tried[account] = tried
        self._tried.move_to_end(account)
        while len(self._tried) > MOST_TRIERS:
            self._tried.popitem(last=False)


def plain(typed: str) -> str:
    """Read a code as people type it: in any case, with what looks alike."""
    letters = typed.upper().replace("O", "0").replace("I", "1").replace("L", "1")
    return "".join(c for c in letters if c in LETTERS)[:16]
