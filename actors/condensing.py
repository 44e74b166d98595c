"""What is said about putting a conversation's past into other words.

A session orders it from its agent, which has it done by a condenser of its own; a turn
that has too much to ask asks its session for it.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.ledger import Run
from actors.messages import Line
from actors.rules.compaction import Trigger
from runtime.fact_rows import FactChange
from runtime.ref import ActorRef

Outcome = Literal["summarised", "truncated", "kept", "ok", "failed"]
"""What became of a compaction: a summary took the place of lines; lines were cut;
nothing was changed. Of a flush or a reset: `ok`. Of each: `failed`."""


class Condense(msgspec.Struct, frozen=True, kw_only=True):
    """To an agent, then to a condenser: put this into other words."""

    id: str
    """Of the event that will tell of it."""

    session: ActorRef
    conversation: str
    """The session's key."""

    sender_id: str
    """On whose account it stands."""

    correlation_id: str
    is_group: bool = False
    """Whether others read along."""

    lines: tuple[Line, ...]
    newer: int = 0
    """How many lines the conversation has after these."""

    version: int = 0
    """Number of the journal's last event when it had these."""

    wants_facts: bool
    wants_summary: bool
    within: float
    """Seconds it may take."""

    has_permit: bool
    """Whether a turn waits for it, by whose permit it may run."""


class CancelCondense(msgspec.Struct, frozen=True):
    """To an agent: nobody waits for this any more."""

    id: str


class Condensed(msgspec.Struct, frozen=True, kw_only=True):
    """To a session, and to its agent: what came of it."""

    id: str
    summary: str = ""
    """Empty if none was wanted, or could be had."""

    remembered: tuple[FactChange, ...] = ()
    """Rows to be stored with the event."""

    run: Run | None = None
    """What it took; None if no model was asked."""

    failure: str = ""
    """One bounded word; empty if all that was wanted is there."""


class Shorten(msgspec.Struct, frozen=True):
    """To a session, asked by a turn: there is too much to ask."""

    turn_id: str
    trigger: Trigger
    must: bool
    """Whether the model will surely not take it as it is."""


class Shortened(msgspec.Struct, frozen=True):
    """How a turn may go on."""

    outcome: Outcome
    history: tuple[Line, ...]
    earlier: int
    summaries: tuple[str, ...]


class EndIfOver(msgspec.Struct, frozen=True):
    """To a session: end the conversation, if its time is over."""


class EndNow(msgspec.Struct, frozen=True):
    """To a session: forget the conversation as soon as nothing runs here.

    As `/forget` does, but nobody is answered: what was said is gone where it was said.
    """
