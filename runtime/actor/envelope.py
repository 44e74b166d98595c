"""What carries a message that needs more than itself: an answer, a count, a lane.

A plain `tell` travels bare; only an `ask`, or a message that has already killed
its actor, is wrapped. Domain code never sees an envelope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.actor.reply import Reply


class Envelope:
    """One message with its reply slot and the number of times it killed its actor.

    Args:
        message: what the actor will receive.
        reply: where the answer goes; None after a `tell`.
        kills: how many incarnations died handling it.
    """

    __slots__ = ("is_ask", "kills", "message", "reply")

    def __init__(
        self, message: object, reply: Reply | None = None, kills: int = 0
    ) -> None:
        self.message = message
        self.reply = reply
        self.kills = kills
        self.is_ask = reply is not None
        """Stays true when the actor takes the reply to answer later."""


class Notice:
    """A message of the system lane: a timer's, a supervisor's, a death.

    It is not handed to the next incarnation when it kills one: what it said is
    then out of date.

    Args:
        message: what the actor will receive.
        generation: the only incarnation it is meant for; None: whichever is up.
    """

    __slots__ = ("generation", "is_waiting", "message")

    def __init__(self, message: object, generation: int | None = None) -> None:
        self.message = message
        self.generation = generation
        self.is_waiting = False
        """Kept by periodic timers, so that a tick never waits twice."""
