"""What the actors on a message's way say to each other.

In the order of the way: connector, router, session, limiter, agent, turn, and
back through session and connector to the courier of the chat.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from actors.ledger import Spent
from actors.messages import (
    Delivery,
    Draft,
    Image,
    Inbound,
    Line,
    RefusedAttempt,
    Trouble,
    Typing,
    Usage,
)
from actors.rules.approvals import OpenApproval
from actors.rules.markers import Delegation
from actors.rules.message_state import Past
from runtime.ref import ActorRef


class Receive(msgspec.Struct, frozen=True):
    """To a connector, asked: store this; the answer is False if it was known."""

    inbound: Inbound


class Refuse(msgspec.Struct, frozen=True):
    """To a connector: somebody was not let in; put that on record."""

    attempt: RefusedAttempt


class Route(msgspec.Struct, frozen=True):
    """To the router: find who hears this; it is stored."""

    inbound: Inbound
    number: int = 0
    """Its number in the inbox; 0 if whoever tells does not know."""


class TakeUp(msgspec.Struct, frozen=True):
    """To the router: look for stored messages that nobody answers."""


class Hear(msgspec.Struct, frozen=True):
    """To a session: somebody said this."""

    inbound: Inbound
    past: Past = Past()
    """What an earlier process, or incarnation, did about it."""


class StopCaused(msgspec.Struct, frozen=True):
    """To the router, then to who is awake in a chat: stop what an agent handed on."""

    by: Inbound
    """The `/stop`: where it was said, and by whom."""

    agent: str
    """Whom it was said to; what it gave others to do is stopped."""

    correlation_id: str = ""
    """Only what goes back to this message; empty: to any of this person's."""


class Acquire(msgspec.Struct, frozen=True):
    """To the limiter: this session wants to run a turn."""

    holder: str
    """The session's name; it holds at most one permit."""

    turn_id: str
    session: ActorRef
    priority: int = 5
    """1 to 10, lower is more urgent."""


class Granted(msgspec.Struct, frozen=True):
    """To a session: the turn may run."""

    turn_id: str


class Release(msgspec.Struct, frozen=True):
    """To the limiter: this session runs no turn, and waits for none."""

    holder: str


class StartTurn(msgspec.Struct, frozen=True, kw_only=True):
    """To an agent: answer this."""

    turn_id: str
    generation: int
    session: ActorRef
    inbound: Inbound
    history: tuple[Line, ...]
    """Earlier lines of the conversation, oldest first."""

    steps: str = ""
    """The journal stream of this message's rounds and tool calls."""

    attempt: int = 1
    """Which start of this message's turn it is."""

    reported: int = 0
    """The last start whose rounds stand in the ledger already."""

    may_have_steps: bool = False
    """Whether an earlier attempt may have recorded some."""

    conversation: str = ""
    """The session's key."""

    resume: str = ""
    """What the last answer gave as its `resume`."""

    images: tuple[Image, ...] = ()
    """What the question shows; found by the turn itself in its attachments."""


class RunTurn(msgspec.Struct, frozen=True):
    """To a turn: this is your question."""

    start: StartTurn


class CancelTurn(msgspec.Struct, frozen=True):
    """To an agent: nobody waits for this turn any more."""

    turn_id: str


class TurnSpoke(msgspec.Struct, frozen=True):
    """To a session: the model said some more; markers and all."""

    turn_id: str
    text: str
    starts_over: bool = False
    """Whether all that was said before is void: this takes its place."""


class TurnNoted(msgspec.Struct, frozen=True):
    """To a session: tell people this in the course of the turn, once."""

    turn_id: str
    key: str
    """Says which note of the message it is: the same again, when the turn is begun
    again; told once."""

    text: str


class AskLeave(msgspec.Struct, frozen=True, kw_only=True):
    """To a session, asked by a turn: may this call be made? See `Leave`."""

    turn_id: str
    call_id: str
    key: str
    """Says which call of the message it is; the same when it is asked again."""

    tool: str
    effect: Literal["read", "write", "run"]
    summary: str
    """What the call is to do, in one line for people."""


class Leave(msgspec.Struct, frozen=True):
    """Whether a call may be made."""

    outcome: Literal["approved", "denied", "timeout", "unasked"]
    """`unasked`: there is nobody who could be asked."""

    by: str = ""
    """Who decided, as `connector/sender_id`; empty if nobody did."""

    why: str = ""
    """For the model, if it may not."""


class Decide(msgspec.Struct, frozen=True):
    """To the session whose turn waits: somebody decided about a call."""

    approval: OpenApproval
    """As they saw it: another call may have its id by now."""

    is_approved: bool
    by: str
    is_lasting: bool = False
    """Whether the same tool may run again without being asked for."""


class Finished(msgspec.Struct, frozen=True):
    """The turn has an answer."""

    text: str
    """All the model said, markers and all."""

    delegations: tuple[Delegation, ...] = ()
    """What it handed on by tool; what it handed on by tag is in the text."""

    usage: Usage = Usage()
    rounds: int = 1
    """How often the model answered."""

    spent: tuple[Spent, ...] = ()

    resume: str = ""
    """By which the model may go on with the conversation, if it keeps it itself."""

    heard: str | None = None
    """The question as the history keeps it, where that is not its own words: with
    what its attachments said."""


class Failed(msgspec.Struct, frozen=True):
    """The turn has none."""

    text: str
    """For the person who asked."""

    reason: str
    """One bounded word for metrics."""

    trouble: Trouble = "broken"
    may_retry: bool = False
    """Whether another turn could end better."""

    usage: Usage = Usage()
    rounds: int = 0
    spent: tuple[Spent, ...] = ()
    not_before: float = 0.0
    """Unix seconds before which another turn could not end better."""

    asked: str = ""
    """The provider's name of the model that was asked last; empty: none was."""


class TurnEnded(msgspec.Struct, frozen=True):
    """To a session, and to its agent: the turn is over."""

    turn_id: str
    outcome: Finished | Failed


class Deliver(msgspec.Struct, frozen=True):
    """To a connector, then to the courier of the chat: say this; it is stored."""

    delivery: Delivery
    attempts: int = 0
    """How often the platform was asked before."""

    was_sending: bool = False
    """Whether the last of these attempts may have succeeded."""

    is_put_back: bool = False
    """Whether its platform was too busy for it."""


class ShowDraft(msgspec.Struct, frozen=True):
    """To a connector, then to the courier of the chat: somebody is writing this."""

    draft: Draft


class ShowTyping(msgspec.Struct, frozen=True):
    """To a connector, then to the courier of the chat: somebody begins to write."""

    typing: Typing


class Settled(msgspec.Struct, frozen=True):
    """To a connector, then to the courier: nothing will be said about a message."""

    inbound: Inbound
    reason: str


class Delivered(msgspec.Struct, frozen=True):
    """To a connector: the courier is done with this delivery."""

    delivery_id: str


class Undelivered(msgspec.Struct, frozen=True):
    """To a connector: this was not said yet; hand it over again later."""

    delivery_id: str


class CloseDoor(msgspec.Struct, frozen=True):
    """To a connector: take nothing more in; the runtime is about to end."""


class DrainOutbox(msgspec.Struct, frozen=True):
    """To a connector: look for stored deliveries that nobody is delivering."""
