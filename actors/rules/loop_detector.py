"""Notices that a model goes round in circles: the same call, the same result; pure.

A call is known by its tool and its arguments, however these are written. It repeats
an earlier one if that had the same result, or none (it was not run). The calls of one
turn need not follow each other: A, B, A, B repeats both. Whoever polls gets new results
and may go on, three times as long. Only the last calls of a turn count (F207, P18).
"""

from __future__ import annotations

import hashlib
from collections import deque
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from actors.messages import ToolCall

POLLING = 3
"""How many calls with new results count as much as one with the same."""

LoopStep = Literal["warned", "blocked", "broken"]
"""The model is told; the call is not run; the loop ends."""


class LoopLimits(msgspec.Struct, frozen=True):
    """From which repetition on something is done; the first call is the first."""

    warn_after: int = 3
    block_after: int = 5
    break_after: int = 7


class Made(msgspec.Struct):
    """One call of the turn."""

    signature: bytes
    result: bytes = b""
    """Empty while it runs, and if it was not run."""


class LoopDetector:
    """The last calls of one turn.

    Args:
        limits: when to warn, to block and to break.
    """

    __slots__ = ("_limits", "_made", "is_broken")

    def __init__(self, limits: LoopLimits) -> None:
        self._limits = limits
        self._made: deque[Made] = deque(maxlen=POLLING * limits.break_after)
        self.is_broken = False
        """Whether the loop is to end; it stays so."""

    def called(self, call: ToolCall) -> tuple[Made, LoopStep | None]:
        """Take a call in, before it runs; say what is to be done about it.

        Returns:
            With `blocked` and `broken` it is not to be run.
        """
        made = Made(signature(call))
        self._made.append(made)
        count = self._repetition(made)
        if count >= self._limits.break_after:
            self.is_broken = True
            return made, "broken"
        return made, "blocked" if count >= self._limits.block_after else None

    def returned(self, made: Made, text: str) -> None:
        """Take a call's result in."""
        made.result = digest(text.encode("utf-8", "surrogatepass"))

    def repeated(self, made: Made) -> LoopStep | None:
        """Say whether to warn, once all calls of the round have their results.

        Why then: the order in which they come in must not matter.
        """
        is_much = self._repetition(made) >= self._limits.warn_after
        return "warned" if is_much else None

    def _repetition(self, made: Made) -> int:
        """Count how often this call was made to no other effect, itself included."""
        same = [each for each in self._made if each.signature == made.signature]
        results = [each.result for each in reversed(same)]
        last = next(filter(None, results), b"")
        run = 0
        for result in results:
            if result not in {b"", last}:
                break
            run += 1
        return max(run, len(same) // POLLING)


def signature(call: ToolCall) -> bytes:
    """Know a call by its tool and its arguments, in whatever order these stand."""
    try:
        arguments = msgspec.json.encode(
            msgspec.json.decode(call.arguments), order="deterministic"
        )
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        arguments = call.arguments.strip()
    return digest(call.name.encode("utf-8", "surrogatepass") + b"\0" + arguments)


def digest(content: bytes) -> bytes:
    """Give a short stand-in for something long; never empty."""
    return hashlib.blake2b(content, digest_size=16).digest()
