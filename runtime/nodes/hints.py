"""Short messages between the nodes of a company, any of which may get lost.

A hint says that there is something to look at, and never what is true: who relies on it
also looks by itself now and then. Pure; `runtime/postgresql/hints.py` carries hints.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

ROWS = "rows"
"""Topic: rows were written that concern other nodes; the payload names their kinds."""

MOST_WAITING = 1000
"""Hints that may wait to be sent; one more is dropped."""

MOST_BYTES = 7500
"""Longest message on the way. Source: PostgreSQL's NOTIFY takes fewer than 8,000."""


class Hint(msgspec.Struct, frozen=True):
    """What one node tells all others."""

    node: str
    """Who sent it."""

    topic: str
    payload: str = ""


class SentHints(msgspec.Struct, frozen=True, array_like=True):
    """The hints of one message on the way."""

    node: str
    hints: tuple[tuple[str, str], ...]


Take = Callable[[Hint], None]


class HintBoard:
    """Takes hints in to be sent, and hands on those that come; in one thread.

    Args:
        node: the node that this is; its own hints do not come back.
        wake: called when something is to be sent.
    """

    def __init__(self, node: str, wake: Callable[[], object] = bool) -> None:
        self._node = node
        self._waiting: dict[tuple[str, str], None] = {}
        self._takers: dict[str, list[Take]] = {}
        self.wake = wake
        self.dropped = 0
        """How many could not be sent, because too many waited or they were too long."""

    def tell(self, topic: str, payload: str = "") -> bool:
        """Send a hint to all other nodes, soon; equal ones that wait are sent once.

        Args:
            topic: what it is about, as `rows`.
            payload: what to look at; together with the topic at most some 7,000 bytes.

        Returns:
            False: it is not sent, because too many wait or because it is too long.
        """
        hint = (topic, payload)
        is_full = hint not in self._waiting and len(self._waiting) >= MOST_WAITING
        if is_full or len(encode(self._node, (hint,))) > MOST_BYTES:
            self.dropped += 1
            return False
        self._waiting[hint] = None
        self.wake()
        return True

    def subscribe(self, topic: str, take: Take) -> Callable[[], None]:
        """Have a function called for each hint of a topic; gives what ends that.

        Args:
            topic: which hints.
            take: called in the thread of the board; it must not wait, nor raise.
        """
        takers = self._takers.setdefault(topic, [])
        takers.append(take)
        return lambda: takers.remove(take) if take in takers else None

    def unsent(self) -> list[str]:
        """Give what is to be sent, as few messages as possible, and forget it."""
        waiting, self._waiting = tuple(self._waiting), {}
        found: list[str] = []
        while waiting:
            count = len(waiting)
            while len(text := encode(self._node, waiting[:count])) > MOST_BYTES:
                count = max(1, count // 2)
            found.append(text.decode())
            waiting = waiting[count:]
        return found

    def arrive(self, text: str) -> None:
        """Hand on the hints of one message; one that cannot be read is passed over."""
        try:
            sent = msgspec.json.decode(text, type=SentHints)
        except msgspec.DecodeError:
            return  # of another release, or sent by hand
        if sent.node == self._node:
            return
        for topic, payload in sent.hints:
            for take in (*self._takers.get(topic, ()),):
                take(Hint(sent.node, topic, payload))


def encode(node: str, hints: tuple[tuple[str, str], ...]) -> bytes:
    """Write hints as one message."""
    return msgspec.json.encode(SentHints(node, hints))
