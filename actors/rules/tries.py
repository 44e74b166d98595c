"""How long one question goes on when the models it is put to fail.

Pure. Within one round each backend is asked once at most. When none is left, the
next round begins after a wait, if that is short; a longer one is for the durable
retry of the message. `calling.py` carries it out.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from actors.errors import ModelFault
    from actors.rules.accounts import Backend

# Chosen: three rounds, as a busy provider mostly has room again within seconds.
ROUNDS = 3

# Chosen: with more accounts and fallbacks than that, the rest is left for the message's
# next turn: nobody wants to wait for thirty providers to fail one after the other.
MOST_CALLS = 12

# Chosen: seconds in all; who waits for the end of other calls, which may cost less
# than is held back for them, waits as long as most calls take.
MOST_HELD = 60.0

LONGEST_WAIT = 20.0
"""Seconds; a longer wait ends the turn, and the message waits instead."""

NEUTRAL: dict[ModelFault, str] = {
    "rate": "overloaded",
    "overload": "overloaded",
    "quota": "not available",
    "auth": "not available",
    "network": "it cannot be reached",
    "timeout": "it took too long",
    "protocol": "its answer was cut off or made no sense",
}
"""What people read of a failure that is no fault of theirs: never whose limit it was
(F194)."""

Step = Literal["rotate", "larger", "refuse"]


class Tries:
    """What was tried for one question.

    Args:
        model: whom it is for.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        """Which of `[models.<name>]` is to be asked next."""

        self._tried: set[Backend] = set()
        self._rounds = 1
        self._calls = 0
        self._last: ModelFault = "overload"
        self._held = 0.0

    @property
    def tried(self) -> frozenset[Backend]:
        """Who was asked in this round."""
        return frozenset(self._tried)

    @property
    def excuse(self) -> str:
        """What to tell the person."""
        return NEUTRAL.get(self._last, "not available")

    def failed(self, backend: Backend, kind: ModelFault, larger: str) -> Step:
        """Say how to go on after a failure.

        Args:
            backend: who failed.
            kind: how.
            larger: the model for transcripts too long for this one; empty: none.
        """
        self._calls += 1
        self._tried.add(backend)
        self._last = kind
        if kind == "context" and larger and self._calls < MOST_CALLS:
            self.model = larger
            return "larger"
        if kind in {"context", "vision", "content", "bad_request"}:
            return "refuse"
        return "rotate"

    @property
    def is_exhausted(self) -> bool:
        """Whether no further call is to be made."""
        return self._calls >= MOST_CALLS

    def wait_held(self, seconds: float) -> float | None:
        """Say how long to wait for the end of other calls; None: give up."""
        self._held += max(seconds, MOST_HELD / 100)
        return seconds if self._held <= MOST_HELD else None

    def wait(self, seconds: float) -> float | None:
        """Say how long to wait for the next round; None: give up.

        Args:
            seconds: until a backend may be asked; may be negative, or infinite.
        """
        is_too_long = math.isinf(seconds) or seconds > LONGEST_WAIT
        if self._rounds >= ROUNDS or self.is_exhausted or is_too_long:
            return None
        self._rounds += 1
        self._tried.clear()
        return max(seconds, 0.0)
