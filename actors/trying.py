"""What an attempt at a message hears from its session, and what it reports."""

from __future__ import annotations

import msgspec

from actors.protocol import (
    Failed,
    Finished,
    Granted,
    TurnEnded,
    TurnSpent,
    TurnSpoke,
)
from actors.rules import message_state
from actors.showing import DraftDue
from actors.signals import SignDue
from actors.vigil import LookAtTurn
from actors.words import TurnMoved
from runtime.rows import Committed


class WaitedLongEnough(msgspec.Struct, frozen=True):
    """A note to the session: a turn should have reported by now."""

    turn_id: str


class Claimed(msgspec.Struct, frozen=True):
    """A note to the session: what became of the commit that an attempt begins."""

    turn_id: str
    outcome: Committed | Exception


class ClaimAgain(msgspec.Struct, frozen=True):
    """A note to the session: the disk may take the claim now."""

    turn_id: str


class Superseded(msgspec.Struct, frozen=True):
    """The message is settled already: by hand, or by an earlier process."""


Message = (
    Granted
    | Claimed
    | ClaimAgain
    | TurnSpoke
    | TurnSpent
    | TurnMoved
    | LookAtTurn
    | DraftDue
    | SignDue
    | WaitedLongEnough
    | TurnEnded
)
Report = Finished | Failed | Superseded


def as_fails(failed: Failed, now: float) -> message_state.Fails:
    """Say that a turn failed, in the words of the rules; `now` in Unix seconds."""
    reason, may_retry = failed.reason, failed.may_retry
    return message_state.Fails(reason, may_retry, now, failed.not_before)
