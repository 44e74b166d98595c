"""Dead letters of a message's way: whose they are, and who waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.protocol import (
    Deliver,
    Granted,
    Hear,
    Route,
    RunTurn,
    StartTurn,
    TurnEnded,
)
from runtime.messages import Keyed

if TYPE_CHECKING:
    from runtime.deadletters import DeadLetter


def unwrapped(letter: DeadLetter) -> object:
    """Give the message of a letter, also if it was on its way to a key."""
    message = letter.message
    return message.message if isinstance(message, Keyed) else message


def is_owed_an_answer(letter: DeadLetter) -> bool:
    """Whether somebody waits for what a dead letter would have brought.

    Letters at the end of the system are not: their messages stay unsettled in the
    store, and the next start takes them up again. So it is with messages for an
    actor that is not there: when it comes back, they are taken up.
    """
    reason = letter.reason
    match unwrapped(letter):
        case StartTurn() | RunTurn():
            return reason not in {"stopped", "interrupted"}
        case Hear() | Route():
            return reason not in {"stopped", "interrupted", "no_such_actor"}
        case Deliver():
            return reason in {"poison", "failed", "mailbox_full"}
        case TurnEnded() | Granted():
            return reason == "mailbox_full"
        case _:
            return False
