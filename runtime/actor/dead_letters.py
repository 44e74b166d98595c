"""Messages that no one will handle: kept for a look, counted for ever.

A dead letter is not an error of the sender: it says that a message was given up,
why, and by which actor. The last few can be read; the counts never shrink.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Literal

import msgspec

Reason = Literal[
    "mailbox_full",
    "dropped_oldest",
    "stopped",
    "killed",
    "failed",
    "poison",
    "late_reply",
    "no_such_actor",
    "not_understood",
    "left_behind",
]

# Chosen: enough to see what happened a moment ago; a page shows no more.
KEEP = 256

# Chosen: the kept messages together weigh no more bytes than this, and one alone no
# more than a quarter of it, so that files in messages do not pile up here.
KEEP_BYTES = 4_000_000


class DeadLetter(msgspec.Struct, frozen=True):
    """One message given up."""

    recipient: str
    """Name of the actor it was for."""

    reason: Reason
    message: object
    """A text about it instead, where it was too heavy to be kept."""


class DeadLetters:
    """The last dead letters and how many there were for each reason.

    Args:
        weigh: tells the bytes a message counts for.
        failed: told what an observer raised.
        keep: how many to keep for a look; older ones only stay in the counts.
        keep_bytes: most bytes of messages to keep.
    """

    def __init__(
        self,
        weigh: Callable[[object], int],
        failed: Callable[[BaseException], object],
        keep: int = KEEP,
        keep_bytes: int = KEEP_BYTES,
    ) -> None:
        self._weigh = weigh
        self._failed = failed
        self._keep_bytes = keep_bytes
        self._least = -(-keep_bytes // keep)
        """Bytes that each counts for at least, so that there are no more than `keep`.
        """

        self._last: deque[tuple[DeadLetter, int]] = deque()
        self._weights: Counter[str] = Counter()
        """By recipient: bytes of those of `_last`."""

        self._weight = 0
        """All together."""

        self._observers: list[Callable[[DeadLetter], None]] = []
        self.counts: Counter[str] = Counter()

    def add(self, recipient: str, reason: Reason, message: object) -> None:
        """Count and keep one message that no one will handle."""
        self.counts[reason] += 1
        letter = DeadLetter(recipient, reason, message)
        self._put(letter, self._weigh(message))
        for observer in self._observers:
            try:
                observer(letter)
            except BaseException as raised:  # noqa: BLE001  a stranger's function
                self._failed(raised)

    def _put(self, letter: DeadLetter, weight: int) -> None:
        if weight * 4 > self._keep_bytes:
            text = f"{type(letter.message).__name__} of {weight} bytes, not kept"
            letter = DeadLetter(letter.recipient, letter.reason, text)
            weight = len(text)
        weight = max(weight, self._least)
        self._last.append((letter, weight))
        self._weights[letter.recipient] += weight
        self._weight += weight
        while self._weight > self._keep_bytes:
            self._forget_one()

    def _forget_one(self) -> None:
        """Forget the oldest of whom has the most: a flood at one hides no other."""
        weights = self._weights
        name = max(weights, key=weights.__getitem__)
        last = self._last
        at = next(at for at in range(len(last)) if last[at][0].recipient == name)
        weight = last[at][1]
        del last[at]
        self._weight -= weight
        weights[name] -= weight
        if not weights[name]:
            del weights[name]

    def observe(self, observer: Callable[[DeadLetter], None]) -> None:
        """Call `observer` with every dead letter from now on; it must not wait.

        What it raises ends nobody. It gets the message itself, also where that is
        too heavy to be kept.
        """
        self._observers.append(observer)

    def last(self) -> tuple[DeadLetter, ...]:
        """Give the kept dead letters, oldest first; may be called from any thread."""
        # Why a copy: made in one step, while the kernel's thread adds others.
        return tuple(letter for letter, _weight in list(self._last))
