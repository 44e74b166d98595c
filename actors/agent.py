"""One agent: takes questions and has each answered by a turn of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from actors import names
from actors.protocol import CancelTurn, Failed, RunTurn, StartTurn, TakeUp, TurnEnded
from runtime.actor import Actor
from runtime.keyed import InterruptKey, KeyGivenUp, StopKey
from runtime.mailbox import MailboxConfig
from runtime.messages import Keyed

if TYPE_CHECKING:
    from runtime.ref import ActorRef

BROKE = "⚠️ Something broke while I was answering."


class Agent(Actor):
    """Starts and cancels turns, so that none of them keeps another waiting.

    Takes: `StartTurn`, `CancelTurn` from sessions; `TurnEnded`, `KeyGivenUp` about a
        turn.
    Sends: `RunTurn` to a new turn; `TurnEnded` for a turn that broke.
    Keeps: which session waits for which turn.
    Fails: never by its turns. Restarted, it forgets who waits for a turn that breaks
        without a dead letter; the session's own timer then ends the waiting. What
        was lost with its sessions, should they have been restarted too, the router
        takes up again.
    Ends: with the system.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=10_000)

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._sessions: dict[str, ActorRef] = {}

    def on_start(self) -> None:
        """Have the router hand in again what an earlier incarnation left unanswered."""
        if self.find(names.ROUTER) is not None:  # else it will do so when it starts
            self.tell(names.ROUTER, TakeUp())

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
                self._sessions.pop(turn_id, None)  # the turn has told the session
            case KeyGivenUp(key=turn_id):
                session = self._sessions.pop(turn_id, None)
                if session is not None:
                    outcome = Failed(BROKE, "bug", may_retry=True)
                    self.tell(session, TurnEnded(turn_id, outcome))
            case _:
                super().on_receive(message)
