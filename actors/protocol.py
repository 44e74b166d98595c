"""What the actors on a message's way say to each other.

In the order of the way: connector, router, session, limiter, agent, turn, and
back through session and connector to the courier of the chat.
"""

from __future__ import annotations

from math import inf
from typing import Literal

import msgspec

from actors.carried import NOTHING, Carried
from actors.deliveries import Delivery, Draft, Status, Trouble, Typing
from actors.ingress import RefusedAttempt
from actors.ledger import Spent
from actors.messages import Address, Image, Inbound, Line, Usage
from actors.rules.actions import Delegation
from actors.rules.approvals import OpenApproval
from actors.rules.briefing import NO_FILES, Mode, PersonaFiles
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

    arrived_at: float = 0.0
    """Monotonic seconds when it came in; 0 if this process does not know."""


class Replied(msgspec.Struct, frozen=True):
    """To the router: an agent answered somebody in a group; that is stored."""

    inbound: Inbound
    """What it answered."""

    agent: str
    at: float
    """Unix seconds."""


class TakeUp(msgspec.Struct, frozen=True):
    """To the router: look for stored messages that nobody answers."""


class Hear(msgspec.Struct, frozen=True):
    """To a session: somebody said this."""

    inbound: Inbound
    past: Past = Past()
    """What an earlier process, or incarnation, did about it."""

    arrived_at: float = 0.0
    """Monotonic seconds when it came in; 0 if this process does not know."""


class StopCaused(msgspec.Struct, frozen=True):
    """To the router, then to who is awake in a chat: stop what an agent handed on."""

    by: Inbound
    """The `/stop`: where it was said, and by whom."""

    agent: str
    """Whom it was said to; what it gave others to do is stopped. Empty: all there."""

    correlation_id: str = ""
    """Only what goes back to this message; empty: to any of this person's."""

    is_scoped: bool = False  # only what has the same interruption scope
    is_all: bool = False  # what anybody asked in this conversation: an owner says so


class Acquire(msgspec.Struct, frozen=True):
    """To the limiter: this session wants to run a turn."""

    holder: str
    """The session's name; it holds at most one permit."""

    turn_id: str
    session: ActorRef
    priority: int = 5
    """1 to 10, lower is more urgent."""

    is_under_way: bool = False
    """Whether the turn had begun, and goes on before those that have not."""


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

    earlier: int = 0
    """How many lines it had before these."""

    summaries: tuple[str, ...] = ()
    """What earlier parts of it were about, oldest first (F132)."""

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

    answered: tuple[str, ...] = ()
    """Ids of the messages that the conversation has answered lately."""

    is_steered: bool = False  # it asks, before each further round, what came meanwhile
    injected: tuple[Inbound, ...] = ()  # put into an earlier attempt, and into this
    resume: str = ""
    """What the last answer gave as its `resume`."""

    images: tuple[Image, ...] = ()
    """What the question shows; found by the turn itself in its attachments."""

    mode: Mode = "conversation"


class RunTurn(msgspec.Struct, frozen=True):
    """To a turn: this is your question."""

    start: StartTurn
    files: PersonaFiles = NO_FILES
    """The persona's texts as they are now."""


class ReplaceFiles(msgspec.Struct, frozen=True):
    """To an agent: the texts of its persona have changed; for the next turn."""

    files: PersonaFiles


class CancelTurn(msgspec.Struct, frozen=True):
    """To an agent: nobody waits for this turn any more."""

    turn_id: str


class TurnSpoke(msgspec.Struct, frozen=True):
    """To a session: the model said some more; markers and all."""

    turn_id: str
    text: str
    starts_over: bool = False
    """Whether all that was said before is void: this takes its place."""


class TurnSpent(msgspec.Struct, frozen=True):
    """To a session: what the turn has taken so far, should it end without a word."""

    turn_id: str
    spent: tuple[Spent, ...]
    """Of all calls, the one that has just begun reckoned without its answer."""


class TurnNoted(msgspec.Struct, frozen=True):
    """To a session: tell people this in the course of the turn, once."""

    turn_id: str
    key: str
    """Says which note of the message it is: the same again, when the turn is begun
    again; told once."""

    text: str
    status: Status = "note"
    """What it is about; people may be spared it."""


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


class TurnRests(msgspec.Struct, frozen=True):
    """To a session: the turn does nothing but wait for people's leave."""

    turn_id: str


class TurnGoesOn(msgspec.Struct, frozen=True):
    """To a session, asked by a turn that rested; answered when it holds a permit.

    The answer is False if nobody waits for the turn any more.
    """

    turn_id: str


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

    used: tuple[str, ...] = ()
    """Names of the tools that were called, in order, each once."""

    heard: str | None = None
    """The question as the history keeps it, where that is not its own words: with
    what its attachments said."""

    consulted: int = 0
    """How many questions it asked other agents meanwhile."""

    kept_apart: tuple[str, ...] = ()
    """Agents that it may not reach now: they have spoken to each other enough."""

    carried: Carried = NOTHING
    """What comes of the marks in the text, and is stored with the answer."""
    joined: tuple[str, ...] = ()  # ids of messages that were put into it, and read


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

    asked: str = ""  # the provider's name of the model that was asked last, if any was
    joined: tuple[str, ...] = ()  # as in `Finished`


class TurnEnded(msgspec.Struct, frozen=True):
    """To a session, and to its agent: the turn is over."""

    turn_id: str
    outcome: Finished | Failed


class Deliver(msgspec.Struct, frozen=True):
    """To a connector, then to the courier of the chat: say this; it is stored."""

    delivery: Delivery
    attempts: int = 0  # how often the platform was asked before
    was_sending: bool = False  # the last of these attempts may have succeeded
    is_by_hand: bool = False  # a person wants it said once more
    is_again: bool = False
    """Whether it comes out of the outbox, in a round of all that are left there."""
    handed_at: float = inf  # monotonic seconds; set by the connector


class ShowDraft(msgspec.Struct, frozen=True):
    """To a connector, then to the courier of the chat: somebody is writing this."""

    draft: Draft


class ShowTyping(msgspec.Struct, frozen=True):
    """To a connector, then to the courier of the chat: somebody begins to write."""

    typing: Typing


Stage = Literal["received", "answered", "failed", "silent"]
"""How it stands with a message; `silent`: the agent chose to say nothing."""


class Acknowledge(msgspec.Struct, frozen=True, kw_only=True):
    """To the acknowledgement of a message: have people see how it stands with it."""

    correlation_id: str
    address: Address
    message: str
    """The platform's id of it."""

    agent: str
    """Whose account shows it."""

    stage: Stage


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
    """To connectors and the scheduler: take, and begin, nothing more; it is to end."""


class DrainOutbox(msgspec.Struct, frozen=True):
    """To a connector: look for stored deliveries that nobody is delivering."""
