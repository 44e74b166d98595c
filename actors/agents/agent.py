"""The actor of one agent: starts a turn of its own for each question."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec

from actors import names
from actors.protocol import (
    CancelCondense,
    CancelTurn,
    Condense,
    Condensed,
    Failed,
    ReplaceFiles,
    RouteUnanswered,
    RunTurn,
    StartTurn,
    TurnEnded,
)
from actors.rules.prompt.brief import PersonaFiles
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Keyed
from runtime.actor.ref import ActorRef
from runtime.supervision.keyed import InterruptKey, KeyGivenUp, StopKey

BROKE = "⚠️ Something broke while I was answering."
ASK_AGAIN = "Please ask again. If that does not help, tell whoever runs me."


class SessionStarted(msgspec.Struct, frozen=True):
    """To an agent: a session has started, and waits for nothing asked before."""

    session: ActorRef


class Agent(Actor):
    """Starts and cancels turns, so that none of them keeps another waiting.

    Takes: `StartTurn`, `CancelTurn`, `Condense`, `CancelCondense`, `SessionStarted`
        from sessions; `TurnEnded`, `Condensed`, `KeyGivenUp` about a turn or a
        condenser; `ReplaceFiles` from the edge that reads them.
    Sends: `RunTurn` to a new turn, `Condense` to a new condenser; `TurnEnded` or
        `Condensed` for one that broke.
    Keeps: which session waits for which of them; the persona's texts as they are now,
        which it gives to each turn.
    Fails: never by its turns. Restarted, it forgets who waits for a turn that breaks
        without a dead letter; the session's own timer then ends the waiting. What
        was lost with its sessions, should they have been restarted too, the router
        takes up again.
    Ends: with the system.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=10_000)
    passes_on: ClassVar[bool] = True

    def __init__(
        self, name: str, read_files: Callable[[], PersonaFiles] = PersonaFiles
    ) -> None:
        super().__init__()
        self._name = name
        self._files = read_files()
        self._sessions: dict[str, ActorRef] = {}
        self._orders: dict[str, ActorRef] = {}

    def on_start(self) -> None:
        """Have the router hand in again what an earlier incarnation left unanswered."""
        if self.find(names.ROUTER) is not None:  # else it will do so when it starts
            self.tell(names.ROUTER, RouteUnanswered())

    def pass_on(self, message: object) -> bool:
        """Start a turn; note that one has ended."""
        match message:
            case StartTurn(turn_id=turn_id):
                self._sessions[turn_id] = message.session
                run = RunTurn(message, self._files)
                self.tell(names.turns(self._name), Keyed(turn_id, run))
            case TurnEnded(turn_id=turn_id):
                self._sessions.pop(turn_id, None)  # the turn has told the session
            case _:
                return False
        return True

    def on_receive(self, message: object) -> None:
        """Start a turn, cancel one, or answer for one that broke."""
        match message:
            case StartTurn() | TurnEnded():
                self.pass_on(message)
            case ReplaceFiles(files=files):
                self._files = files
            case CancelTurn(turn_id=turn_id):
                self._cancel_turn(turn_id)
            case KeyGivenUp(key=key):
                self._given_up(key)
            case _:
                self._on_condensing(message)

    def _on_condensing(self, message: object) -> None:
        """Have a conversation summed up, or not any more."""
        match message:
            case Condense(id=order_id):
                self._orders[order_id] = message.session
                self.tell(names.condensers(self._name), Keyed(order_id, message))
            case CancelCondense(id=order_id):
                self._cancel_order(order_id)
            case SessionStarted(session=session):
                self._cancel_all(session)
            case Condensed(id=order_id):
                self._orders.pop(order_id, None)
            case _:
                super().on_receive(message)

    def _cancel_turn(self, turn_id: str) -> None:
        self._sessions.pop(turn_id, None)
        self._end(names.turns(self._name), turn_id)

    def _cancel_order(self, order_id: str) -> None:
        self._orders.pop(order_id, None)
        self._end(names.condensers(self._name), order_id)

    def _end(self, supervisor: str, key: str) -> None:
        # Both: the first ends one that runs, the second one that was not begun, and
        # each does nothing otherwise.
        self.tell(supervisor, InterruptKey(key))
        self.tell(supervisor, StopKey(key))

    def _cancel_all(self, session: ActorRef) -> None:
        """Cancel what ran for an incarnation that was killed: it could not say so."""
        for turn_id in _of(session, self._sessions):
            self._cancel_turn(turn_id)
        for order_id in _of(session, self._orders):
            self._cancel_order(order_id)

    def _given_up(self, key: str) -> None:
        """Answer for a turn, or who sums up, that broke."""
        session = self._sessions.pop(key, None)
        if session is not None:
            outcome = Failed(BROKE, "bug", advice=ASK_AGAIN, may_retry=True)
            self.tell(session, TurnEnded(key, outcome))
        session = self._orders.pop(key, None)
        if session is not None:
            self.tell(session, Condensed(id=key, failure="bug"))


def _of(session: ActorRef, running: dict[str, ActorRef]) -> list[str]:
    """Name what runs for one session; found by name, which outlives its end."""
    return [key for key, ref in running.items() if ref.name == session.name]
