"""One agent: takes questions and has each answered by a turn of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from actors import names
from actors.protocol import CancelTurn, Failed, RunTurn, StartTurn, TurnEnded
from runtime.actor import Actor
from runtime.keyed import InterruptKey, KeyGivenUp, StopKey
from runtime.mailbox import MailboxConfig
from runtime.messages import Keyed

if TYPE_CHECKING:
    from runtime.ref import ActorRef


class Agent(Actor):
    """Starts and cancels turns, so that none of them keeps another waiting.

    Takes: `StartTurn`, `CancelTurn` from sessions; `KeyGivenUp` about a turn.
    Sends: `RunTurn` to a new turn; `TurnEnded` for a turn that broke.
    Keeps: which session waits for which turn.
    Fails: never by its turns. Restarted, it forgets who waits for a turn that
        breaks afterwards; the session's own timer then ends the waiting.
    Ends: with the system.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=10_000)

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._sessions: dict[str, ActorRef] = {}

    def on_receive(self, message: object) -> None:
        """Start a turn, cancel one, or answer for one that broke."""
        match message:
            case StartTurn(turn_id=turn_id):
                self._sessions[turn_id] = message.session
                self.tell(names.turns(self._name), Keyed(turn_id, RunTurn(message)))
            case CancelTurn(turn_id=turn_id):
                self._sessions.pop(turn_id, None)
                # Both: the first ends a turn that runs, the second one that was not
                # begun, and each does nothing otherwise.
                self.tell(names.turns(self._name), InterruptKey(turn_id))
                self.tell(names.turns(self._name), StopKey(turn_id))
            case TurnEnded(turn_id=turn_id):
                session = self._sessions.pop(turn_id, None)
                if session is not None:
                    self.tell(session, message)
            case KeyGivenUp(key=turn_id):
                session = self._sessions.pop(turn_id, None)
                if session is not None:
                    outcome = Failed("⚠️ Something broke while I was answering.", "bug")
                    self.tell(session, TurnEnded(turn_id, outcome))
            case _:
                super().on_receive(message)
