"""How often two agents may speak to each other in one chat; pure.

Agents that answer each other never tire. So for each pair in each chat, whoever of the
two begins, exchanges are counted; after `max_rounds` of them no model is asked any more
until the pair has been quiet for `cooldown` seconds. One exchange of a pair for each
message of a person is not counted: people may ask as often as they like, and are held
up by other limits. Whatever follows from it, agents do by themselves.

What is asked about twice under one key, after a crash, say, is ruled alike and counted
once. How far one message may reach is no matter of this: that is counted in the chain,
which is stored with it, so a process that ends forgets nothing but the last seconds.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

import msgspec

MOST_PAIRS = 10_000
"""Pairs that are remembered. One more is refused until some have been quiet: a pair
that is forgotten too early could go on for ever."""

MOST_KEYS = 64
"""Exchanges of one pair that are known again."""

Pair = tuple[str, str, str]
"""A chat, and two agents in the order of their names."""


class PairExchange(msgspec.Struct, frozen=True, kw_only=True):
    """One agent is about to speak to another."""

    chat: str
    """Where, as `connector/chat`."""

    source: str
    target: str
    key: str
    """The same when the same is asked about again."""

    begun_by: str = ""
    """The person's message that is being answered; empty: the words of an agent, of
    somebody else's program or of the clock are."""

    @property
    def pair(self) -> Pair:
        """Whom it is counted for."""
        one, other = sorted((self.source, self.target))
        return self.chat, one, other


class PairLimits(msgspec.Struct, frozen=True):
    """The limits of the settings."""

    max_rounds: int
    """Exchanges in a row; 0: only those that people cause."""

    cooldown: float
    """Seconds of quiet after which they may begin anew."""


class PairState(msgspec.Struct, frozen=True):
    """The counts of one pair of agents."""

    rounds: int = 0
    """Exchanges that were counted."""

    at: float = 0.0
    """When the last one was, in seconds."""

    keys: tuple[str, ...] = ()
    begun_by: tuple[str, ...] = ()


class PairRuling(msgspec.Struct, frozen=True):
    """Whether an exchange is allowed."""

    reason: Literal["ok", "max_rounds", "too_many_pairs", "unruled"]
    """`unruled`: nobody could say, so: no."""

    wait: float = 0.0
    """Seconds until it might be."""

    @property
    def is_allowed(self) -> bool:
        """Whether it may."""
        return self.reason == "ok"


ALLOWED = PairRuling("ok")


class PairLimiter:
    """Counts the exchanges of all pairs."""

    def __init__(
        self,
        limits: PairLimits,
        states: dict[Pair, PairState] | None = None,
        most: int = MOST_PAIRS,
    ) -> None:
        self._limits = limits
        self._most = most
        self._states: OrderedDict[Pair, PairState] = OrderedDict(states or {})

    @property
    def states(self) -> dict[Pair, PairState]:
        """What is known now, by pair."""
        return dict(self._states)

    def __len__(self) -> int:
        """Count the pairs that are remembered."""
        return len(self._states)

    def rule(self, exchange: PairExchange, now: float) -> PairRuling:
        """Say whether an exchange may be; count it if so.

        Args:
            now: seconds on a clock that does not go back.
        """
        pair = exchange.pair
        known = self._states.get(pair)
        if known is not None and exchange.key in known.keys:
            return ALLOWED
        state = known or PairState(at=now)
        if now - state.at >= self._limits.cooldown:
            state = msgspec.structs.replace(state, rounds=0)
        ruling, after = self._count(exchange, state, now)
        if ruling.is_allowed:
            if known is None and not self._has_room(now):
                return PairRuling("too_many_pairs", self._limits.cooldown)
            keys = (*after.keys, exchange.key)[-MOST_KEYS:]
            self._states[pair] = msgspec.structs.replace(after, keys=keys)
            self._states.move_to_end(pair)
        return ruling

    def _count(
        self, exchange: PairExchange, state: PairState, now: float
    ) -> tuple[PairRuling, PairState]:
        begun_by = exchange.begun_by
        if begun_by and begun_by not in state.begun_by:
            begun = (*state.begun_by, begun_by)[-MOST_KEYS:]
            at = state.at if state.rounds else now
            return ALLOWED, msgspec.structs.replace(state, begun_by=begun, at=at)
        if state.rounds >= self._limits.max_rounds:
            wait = max(0.0, state.at + self._limits.cooldown - now)
            return PairRuling("max_rounds", wait), state
        counted = msgspec.structs.replace(state, rounds=state.rounds + 1, at=now)
        return ALLOWED, counted

    def _has_room(self, now: float) -> bool:
        if len(self._states) >= self._most:
            self.sweep(now)
        return len(self._states) < self._most

    def sweep(self, now: float) -> int:
        """Forget the pairs that have been quiet for long enough.

        Args:
            now: as in `rule`.

        Returns:
            How many.
        """
        cooldown = self._limits.cooldown
        quiet = [
            pair for pair, state in self._states.items() if now - state.at >= cooldown
        ]
        for pair in quiet:
            del self._states[pair]
        return len(quiet)
