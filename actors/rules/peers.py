"""How often an agent answers another program until it is quiet for a while.

Pure but for its counters. Two programs that answer each other never stop by themselves,
whatever their models are told (P7), so this counts, and no model is asked. A pair is an
agent of ours and somebody else's program, whoever began; what it does in one chat
changes nothing elsewhere (F057).
"""

from __future__ import annotations

import msgspec

# Chosen: pairs of agents and programs that wrote within their cool-down.
MOST_PAIRS = 10_000


class Pair(msgspec.Struct):
    """How far two have come."""

    depth: int
    """Answers since they were last quiet."""

    forget_at: float
    """Monotonic seconds from which on it counts no longer."""


class Peers:
    """Counts the answers of each pair in each chat.

    Args:
        most: pairs it remembers; of more, the one that was quiet longest is forgotten.
    """

    def __init__(self, most: int = MOST_PAIRS) -> None:
        self._most = most
        self._pairs: dict[tuple[str, str, str], Pair] = {}
        """By chat, agent and program; who answered last is last."""

    def __len__(self) -> int:
        """Count the pairs that are remembered."""
        return len(self._pairs)

    def may_answer(
        self, chat: str, agent: str, peer: str, rounds: int, now: float
    ) -> bool:
        """Tell whether an agent may answer a program once more.

        Args:
            chat: where.
            agent: of ours.
            peer: who wrote.
            rounds: answers until they have to be quiet.
            now: monotonic seconds.
        """
        pair = self._pairs.get((chat, agent, peer))
        return pair is None or now >= pair.forget_at or pair.depth < rounds

    def answers(
        self, chat: str, agent: str, peer: str, cooldown: float, now: float
    ) -> None:
        """Count an answer.

        Args:
            chat: where.
            agent: of ours.
            peer: whom it answers.
            cooldown: seconds of quiet after which it counts no longer.
            now: monotonic seconds.
        """
        key = (chat, agent, peer)
        pair = self._pairs.pop(key, None)
        depth = 0 if pair is None or now >= pair.forget_at else pair.depth
        self._pairs[key] = Pair(depth + 1, now + cooldown)
        while len(self._pairs) > self._most:
            del self._pairs[next(iter(self._pairs))]

    def sweep(self, now: float) -> None:
        """Forget whoever was quiet long enough.

        Args:
            now: monotonic seconds.
        """
        pairs = self._pairs.items()
        self._pairs = {key: pair for key, pair in pairs if now < pair.forget_at}
