"""A message that is not settled yet, and what its turn is told of the past."""

from __future__ import annotations

import msgspec

from actors.messages import Inbound, Line
from actors.rules import message_state


class Held(msgspec.Struct, frozen=True):
    """A message that is not settled yet."""

    inbound: Inbound
    state: message_state.MessageState
    told: str = ""
    """What to answer when the conversation has ended, which is all that it wants;
    empty: it wants an answer of the agent."""

    flushes: bool = True
    """Whether the conversation is gone through before it ends."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn is told of the past."""

    lines: tuple[Line, ...] = ()
    """The conversation so far."""

    earlier: int = 0
    """How many lines it had before these."""

    summaries: tuple[str, ...] = ()
    steps: str = ""
    """The journal stream of this message's rounds and tool calls."""

    answered: tuple[str, ...] = ()
    """Ids of the messages that the conversation has answered lately."""

    reported: int = 0
    """The last attempt whose rounds stand in the ledger already."""

    resume: str = ""
    """By which the model may go on where it left off."""


NOTHING = Known()
