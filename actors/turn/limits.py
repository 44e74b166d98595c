"""Limits of one turn: repeated tool calls, and tokens. Pure.

The loop detector compares calls by tool and arguments, whatever the order of the
arguments. A call repeats an earlier one if both had the same result, or none because
they were not run. The calls need not follow each other: A, B, A, B repeats both. A call
that polls gets new results, and may go on three times as long. Only the last calls
count.

The token allowance ends a run in time. The next round reads what the last one read and
wrote, and the results of the tools since. So the model must answer without tools when
the allowance is enough for one more round only.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable
from typing import Literal

import msgspec

from actors.messages.inbound import ToolCall, TranscriptLine, Usage

POLLING = 3
"""How many calls with new results count as one repetition."""

LoopStep = Literal["warned", "blocked", "broken"]
"""`warned`: the model is told; `blocked`: the call is not run; `broken`: the turn
ends."""


class LoopLimits(msgspec.Struct, frozen=True):
    """At which repetition each step begins; the first call counts as 1."""

    warn_after: int = 3
    block_after: int = 5
    break_after: int = 7


class RecordedCall(msgspec.Struct):
    """One tool call of the turn."""

    signature: bytes
    result: bytes = b""
    """Digest of its result; empty while it runs, and if it was not run."""


class LoopDetector:
    """Finds repetitions among the last calls of one turn."""

    __slots__ = ("_limits", "_made", "is_broken")

    def __init__(self, limits: LoopLimits) -> None:
        self._limits = limits
        self._made: deque[RecordedCall] = deque(maxlen=POLLING * limits.break_after)
        self.is_broken = False
        """Whether the turn must end; stays true."""

    def called(self, call: ToolCall) -> tuple[RecordedCall, LoopStep | None]:
        """Take a call before it runs.

        Returns:
            The call, and the step that follows; with `blocked` and `broken` it must not
            run.
        """
        made = RecordedCall(signature(call))
        self._made.append(made)
        count = self._repetition(made)
        if count >= self._limits.break_after:
            self.is_broken = True
            return made, "broken"
        return made, "blocked" if count >= self._limits.block_after else None

    def returned(self, made: RecordedCall, text: str) -> None:
        """Take the result of a call."""
        made.result = digest(text.encode("utf-8", "surrogatepass"))

    def repeated(self, made: RecordedCall) -> LoopStep | None:
        """Say whether to warn; called when all calls of the round have results.

        Why then: the order of the results must not matter.
        """
        is_much = self._repetition(made) >= self._limits.warn_after
        return "warned" if is_much else None

    def _repetition(self, made: RecordedCall) -> int:
        """Count the calls like this one with the same result, itself included."""
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
    """Give the digest of a call's tool and arguments, whatever their order."""
    try:
        arguments = msgspec.json.encode(
            msgspec.json.decode(call.arguments), order="deterministic"
        )
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        arguments = call.arguments.strip()
    return digest(call.name.encode("utf-8", "surrogatepass") + b"\0" + arguments)


def digest(content: bytes) -> bytes:
    """Give a short digest; never empty."""
    return hashlib.blake2b(content, digest_size=16).digest()


# Source: what every estimate in this field divides by.
CHARACTERS_PER_TOKEN = 4


class TokenAllowance(msgspec.Struct):
    """The tokens that one run may take."""

    most: int
    """Most tokens, read and written; 0: no limit."""

    taken: int = 0
    """Tokens so far."""

    _expected: int = 0

    def take(self, usage: Usage) -> None:
        """Count a round."""
        tokens = usage.input_tokens + usage.output_tokens
        self.taken += tokens
        self._expected = tokens

    def expect(self, results: Iterable[TranscriptLine]) -> None:
        """Note the tool results that the next round will read."""
        characters = sum(len(each.text) for each in results)
        self._expected += characters // CHARACTERS_PER_TOKEN

    @property
    def is_over(self) -> bool:
        """Whether there is not enough left for one more round."""
        return bool(self.most) and self.taken + self._expected > self.most

    @property
    def is_last(self) -> bool:
        """Whether the next round must be the last."""
        return bool(self.most) and self.taken + 2 * self._expected > self.most

    @property
    def used_up(self) -> str:
        """The text for people when the allowance is used up."""
        return (
            f"I have used up what one run may take: {self.taken} of {self.most} tokens,"
            " too little for another round. Have me do less at a time, or raise"
            " autonomous.run_tokens."
        )
