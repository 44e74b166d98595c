"""What carries a message that needs more than itself: an answer, a count, a lane.

A plain `tell` travels bare; only an `ask`, or a message that has already killed
its actor, is wrapped. Domain code never sees an envelope.
"""

from __future__ import annotations

import msgspec

from runtime.actor.reply import Reply


# Why Structs: made in C, which a call of `__init__` for each message is not.
class Envelope(msgspec.Struct, eq=False):
    """One message with its reply slot and the number of times it killed its actor."""

    message: object
    """What the actor will receive."""

    reply: Reply | None = None
    """Where the answer goes; None after a `tell`."""

    is_ask: bool = False
    """Stays true when the actor takes the reply to answer later."""

    kills: int = 0
    """How many incarnations died handling it."""

    def __repr__(self) -> str:
        """Show nothing of the message, which may be words of people."""
        return f"<{type(self).__name__}>"


class Notice(msgspec.Struct, eq=False):
    """A message of the system lane: a timer's, a supervisor's, a death.

    It is not handed to the next incarnation when it kills one: what it said is
    then out of date.
    """

    message: object
    """What the actor will receive."""

    generation: int | None = None
    """The only incarnation it is meant for; None: whichever is up."""

    is_waiting: bool = False
    """Kept by periodic timers, so that a tick never waits twice."""

    def __repr__(self) -> str:
        """Show nothing of the message, which may be words of people."""
        return f"<{type(self).__name__}>"
