"""The actor that counts how often agents speak to each other, in all chats."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from actors.delegation.messages import KnownPairs, MayWork
from actors.delegation.pairs import PairExchange, PairLimiter, PairLimits, PairRuling
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.telemetry.logs import EventLog

LOG = EventLog("collaboration")

SWEEP_EVERY = 60.0
"""Seconds between looks for pairs that have been quiet."""


class ForgetQuietPairs(msgspec.Struct, frozen=True):
    """A note to itself: forget pairs that have not spoken for long."""


class Collaboration(Actor):
    """Decides whether two agents may speak to each other once more.

    Takes: `MayWork` (asked), by turns, before any model is asked.
    Sends: nothing but answers.
    Keeps: the exchanges of each pair in each chat, for as long as they count. Its next
        incarnation takes them over; a new process begins anew, as after a pause: what
        was under way then has its hops and its budget in its chain, which is stored.
    Fails: never by these messages.
    Ends: with the system.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=10_000)

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._ruled_by = self._limits
        self._limiter = PairLimiter(self._ruled_by)

    def on_start(self) -> None:
        """Begin to forget what no longer counts."""
        self.every(SWEEP_EVERY, ForgetQuietPairs())

    def on_failure(self, *_: object, **__: object) -> None:
        """Hand on what is counted."""
        self.requeue(KnownPairs(self._limiter.states))

    def on_receive(self, message: object) -> object:
        """Rule, or sweep."""
        match message:
            case MayWork(exchanges=exchanges):
                now = self._services.clock.monotonic()
                return tuple(self._rule(each, now) for each in exchanges)
            case KnownPairs(states=states):
                self._limiter = PairLimiter(self._limits, states)
                self._ruled_by = self._limits
            case ForgetQuietPairs():
                self._limiter.sweep(self._services.clock.monotonic())
            case _:
                return super().on_receive(message)
        return None

    @property
    def _limits(self) -> PairLimits:
        config = self._services.collaboration
        return PairLimits(config.max_rounds, config.cooldown)

    def _rule(self, exchange: PairExchange, now: float) -> PairRuling:
        if self._limits != self._ruled_by:  # the settings have changed
            self._ruled_by = self._limits
            self._limiter = PairLimiter(self._limits, self._limiter.states)
        ruling = self._limiter.rule(exchange, now)
        if not ruling.is_allowed:
            LOG.info(
                "agents are to pause",
                source=exchange.source,
                target=exchange.target,
                reason=ruling.reason,
                seconds=round(ruling.wait, 1),
            )
        return ruling
