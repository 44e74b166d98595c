"""What was done for a message, step by step, for tracing.

A step is told once it has ended. It holds names, times and counts, and no words of
people or agents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from actors.messages.inbound import Usage

Stage = Literal[
    "accept", "route", "queue", "turn", "model", "tool", "commit", "send", "settle"
]
"""Which part of a message's way a step is.

`accept`: until it was stored. `route`: until an agent's conversation was told of it.
`queue`: until a turn of its model was free. `turn`: until the agent's answer was ready.
`model`, `tool`: one call within a turn. `commit`: until the answer was stored. `send`:
until the platform had it. `settle`: nobody answers the message, or an answer to another
one is for this one, too.
"""


class TracedStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a message's way, which ends now."""

    stage: Stage
    correlation_id: str
    """Of the message that all of it was caused by."""

    seconds: float | None
    """How long it took; None: since the message was stored."""

    traceparent: str = ""
    """Of the message, with `accept` and `route`: see `Inbound`."""

    name: str = ""
    """Of the connector, the tool, or the model as its provider calls it."""

    agent: str = ""
    turn: str = ""
    """Id of the attempt at a turn that the step belongs to; empty: to none."""

    outcome: str = "ok"
    """How it ended, in one of few words."""

    model: str = ""
    """Which of `[models.<name>]` was called."""

    usage: Usage = Usage()
    """The tokens of a model call."""

    is_to_asker: bool = False
    """Whether it sent a part of the answer to the author of the message."""

    parts_left: int | None = None
    """How many parts of that answer are still to be sent; None: the step does not say.
    """


Trace = Callable[[TracedStep], None]
"""Takes a step; must not wait, and must not fail."""

TraceParent = Callable[[str, str], str]
"""Gives the traceparent of a turn, by correlation id and turn, for those it calls."""
