"""Messages between the actors on a message's way.

In the order of the way: connector, router, session, limiter, agent, turn, and
back through session and connector to the courier of the chat.

Also the messages of compaction, which replaces old lines of a conversation by a
summary.

A session orders it from its agent, whose condenser does it. A turn whose prompt is too
long asks its session for it.
"""

from __future__ import annotations

from math import inf
from typing import Literal

import msgspec

from actors.approvals.permissions import OpenApproval
from actors.journal.plan import NOTHING, Carried
from actors.messages.deliveries import Delivery, Draft, Status, Trouble, Typing
from actors.messages.inbound import Address, Image, Inbound, TranscriptLine, Usage
from actors.messages.state import AttemptHistory
from actors.messages.usage import Run, Spent
from actors.rules.markers.actions import Delegation
from actors.rules.markers.descriptions import Mode
from actors.rules.markers.parser import ParsedAnswer, ParserRules, parse
from actors.rules.prompt.brief import NO_FILES, PersonaFiles
from actors.rules.prompt.compaction import Trigger
from actors.transport import RefusedAttempt
from runtime.actor.ref import ActorRef
from runtime.fairness import Owner
from runtime.store.facts import FactChange


class Receive(msgspec.Struct, frozen=True):
    """Ask a connector: store this message. Answer: False if it was known already."""

    inbound: Inbound


class RecordRefusal(msgspec.Struct, frozen=True):
    """To a connector: record that a sender was refused."""

    attempt: RefusedAttempt


class MessageWithdrawn(msgspec.Struct, frozen=True):
    """To a connector: a message was deleted on its platform."""

    inbound: Inbound


class Route(msgspec.Struct, frozen=True):
    """To the router: pass this stored message to the agents that hear it."""

    inbound: Inbound
    number: int = 0
    """Its number in the inbox; 0 if unknown."""

    arrived_at: float = 0.0
    """When it arrived, as `Services.arrival_at` has it; 0: in an earlier process."""


class Replied(msgspec.Struct, frozen=True):
    """To the router: an agent's answer in a group has been stored."""

    inbound: Inbound
    """The message that it answered."""

    agent: str
    at: float
    """Unix seconds."""


class RouteArrived(msgspec.Struct, frozen=True):
    """To the router: others may have stored messages that are this node's to answer."""


class RouteUnanswered(msgspec.Struct, frozen=True):
    """To the router: look for stored messages that no session is working on."""


class Hear(msgspec.Struct, frozen=True):
    """To a session: a message for its conversation."""

    inbound: Inbound
    past: AttemptHistory = AttemptHistory()
    """Attempts by an earlier process or incarnation."""

    arrived_at: float = 0.0
    """When it arrived, as `Services.arrival_at` has it; 0: in an earlier process."""


class CheckHeard(msgspec.Struct, frozen=True):
    """To a session: a message that it was handed is not settled; does it know it?"""

    message_id: str


class NotHeard(msgspec.Struct, frozen=True):
    """To the router: this message, which it checked, is not known to its session."""

    message_id: str


class StopDelegated(msgspec.Struct, frozen=True):
    """To the router and the sessions awake in a chat: stop delegated tasks."""

    by: Inbound
    """The `/stop` message."""

    agent: str
    """The agent that it addresses, whose delegated tasks stop. Empty: all agents in the
    chat.
    """

    correlation_id: str = ""
    """Limits it to tasks caused by this message; empty: by any message of this
    person.
    """

    is_all: bool = False  # what anybody asked in this conversation: an owner says so


class AcquirePermit(msgspec.Struct, frozen=True):
    """To the limiter: a session requests a permit for a turn."""

    holder: str
    """Name of the session, which holds a permit for each of its turns."""

    turn_id: str
    session: ActorRef
    priority: int = 5
    """1 to 10, lower is more urgent."""

    is_under_way: bool = False
    """Whether the turn has begun already; it continues before turns that have not."""

    model: str = ""
    """The model that the turn will ask; each has permits of its own."""

    sender: tuple[str, str] = ("", "")
    """Connector and person of the message; empty for work that nobody waits for."""

    caller: str = ""
    """See `Inbound.caller`."""

    is_suspect: bool = False
    """Whether the message may have ended the process; one such turn runs at a time."""

    @property
    def permit(self) -> tuple[str, str]:
        """Names the permit: who holds it, and for which turn."""
        return self.holder, self.turn_id

    @property
    def owner(self) -> Owner:
        """Whose share of the permits it takes: connector, caller, person."""
        connector, person = self.sender
        return connector, self.caller, person


class PermitGranted(msgspec.Struct, frozen=True):
    """To a session: its turn may run."""

    turn_id: str


class ReleasePermit(msgspec.Struct, frozen=True):
    """To the limiter: the session neither runs nor awaits this turn."""

    holder: str
    turn_id: str = ""
    """Empty: it runs and awaits none."""


class StartTurn(msgspec.Struct, frozen=True, kw_only=True):
    """To an agent: run a turn for this message."""

    turn_id: str
    generation: int
    session: ActorRef
    inbound: Inbound
    history: tuple[TranscriptLine, ...]
    """Earlier lines of the conversation, oldest first."""

    earlier: int = 0
    """Number of lines before these."""

    summaries: tuple[str, ...] = ()
    """Summaries of earlier parts of the conversation, oldest first."""

    steps: str = ""
    """Journal stream of this message's rounds and tool calls."""

    attempt: int = 1
    """Number of the attempt."""

    reported: int = 0
    """The last attempt whose rounds are in the ledger already."""

    may_have_steps: bool = False
    """Whether an earlier attempt may have recorded steps."""

    conversation: str = ""
    """The session's key."""

    answered: tuple[str, ...] = ()
    """Ids of recently answered messages of the conversation."""

    is_steered: bool = False  # it asks, before each further round, what came meanwhile
    injected: tuple[Inbound, ...] = ()  # put into an earlier attempt, and into this
    resume: str = ""
    """The `resume` value of the last answer."""

    images: tuple[Image, ...] = ()
    """Pictures of the question; the turn itself finds them in the attachments."""

    mode: Mode = "conversation"


class RunTurn(msgspec.Struct, frozen=True):
    """To a turn: start with this question."""

    start: StartTurn
    files: PersonaFiles = NO_FILES
    """The persona's present files."""


class ReplaceFiles(msgspec.Struct, frozen=True):
    """To an agent: use these persona files from the next turn on."""

    files: PersonaFiles


class CancelTurn(msgspec.Struct, frozen=True):
    """To an agent: cancel this turn."""

    turn_id: str


class TurnStreamed(msgspec.Struct, frozen=True):
    """To a session: the model streamed more text, including markers."""

    turn_id: str
    text: str
    starts_over: bool = False
    """Whether this replaces all text before it."""


class TurnSpent(msgspec.Struct, frozen=True):
    """To a session: usage of the turn so far, in case that it ends without a result."""

    turn_id: str
    spent: tuple[Spent, ...]
    """Usage of all calls; the running one is estimated without its answer."""


class TurnReported(msgspec.Struct, frozen=True):
    """To a session: send people this progress message, once."""

    turn_id: str
    key: str
    """Identifies the progress message, also over repeated attempts, so that it is sent
    once.
    """

    text: str
    status: Status = "note"
    """Kind of the progress message; settings may disable it."""


class RequestApproval(msgspec.Struct, frozen=True, kw_only=True):
    """Ask a session, by a turn: may this tool call run? Answer: `ApprovalResult`."""

    turn_id: str
    call_id: str
    key: str
    """Identifies the call in the message; the same when it is asked again."""

    tool: str
    effect: Literal["read", "write", "run"]
    summary: str
    """One line for people about what the call does."""


class ApprovalResult(msgspec.Struct, frozen=True):
    """Decision whether a tool call may run."""

    outcome: Literal["approved", "denied", "timeout", "unasked"]
    """`unasked`: nobody can be asked."""

    by: str = ""
    """Account that decided, as `connector/sender_id`; empty if nobody did."""

    why: str = ""
    """Reason of a refusal, for the model."""


class TurnPaused(msgspec.Struct, frozen=True):
    """To a session: the turn only waits for approvals."""

    turn_id: str


class ResumeTurn(msgspec.Struct, frozen=True):
    """Ask a session, by a turn after a wait; answered when it holds a permit again.

    The answer is False if the turn has been cancelled.
    """

    turn_id: str


class ApprovalDecided(msgspec.Struct, frozen=True):
    """To the session of a waiting turn: a person decided about a tool call."""

    approval: OpenApproval
    """The request as the person saw it, since its id may have been reused."""

    is_approved: bool
    by: str
    is_lasting: bool = False
    """Whether the same tool may run again without approval."""


class Finished(msgspec.Struct, frozen=True):
    """The turn has an answer."""

    text: str
    """The model's whole text, including markers; see `parsed`."""

    delegations: tuple[Delegation, ...] = ()
    """Delegations by tool; delegations by tag are in the text."""

    usage: Usage = Usage()
    rounds: int = 1
    """Number of model answers."""

    spent: tuple[Spent, ...] = ()

    resume: str = ""
    """Token to continue with, for models that keep the conversation themselves."""

    used: tuple[str, ...] = ()
    """Names of the called tools, in order, each once."""

    heard: str | None = None
    """The question for the history, if it differs from its text: with the text of its
    attachments.
    """

    consulted: int = 0
    """Number of questions to other agents."""

    kept_apart: tuple[str, ...] = ()
    """Agents that it may not reach now, because of the loop guard."""

    carried: Carried = NOTHING
    """Effects of the inline directives, stored with the answer."""
    joined: tuple[str, ...] = ()  # ids of messages that were put into it, and read

    said: ParsedAnswer | None = None
    """The answer as hooks left it, taken apart; `text` is empty then. None: no hook was
    asked."""

    is_withheld: bool = False
    """Whether a hook holds the answer back; then nothing of it is left."""

    def parsed(self, egress: ParserRules) -> ParsedAnswer:
        """Give the answer taken apart."""
        return self.said or parse(self.text, "assistant", egress)


class Failed(msgspec.Struct, frozen=True):
    """The turn has none."""

    text: str
    """Text for the person who asked."""

    reason: str
    """Reason from a fixed set, for metrics."""

    trouble: Trouble = "broken"
    advice: str = ""
    """What to do about it; said if no further attempt follows by itself."""

    may_retry: bool = False
    """Whether another attempt could succeed."""

    usage: Usage = Usage()
    rounds: int = 0
    spent: tuple[Spent, ...] = ()
    not_before: float = 0.0
    """Earliest time at which another attempt could succeed, in Unix seconds."""

    asked: str = ""  # the provider's name of the model that was asked last, if any was
    joined: tuple[str, ...] = ()  # as in `Finished`


class TurnEnded(msgspec.Struct, frozen=True):
    """To a session and its agent: the turn has ended."""

    turn_id: str
    outcome: Finished | Failed
    prepared: float = 0.0
    """Seconds until the prompt could be made: memories, attachments, what was said."""


class Deliver(msgspec.Struct, frozen=True):
    """To a connector, then to the courier of the chat: send this stored message."""

    delivery: Delivery
    attempts: int = 0  # how often the platform was asked before
    was_sending: bool = False  # the last of these attempts may have succeeded
    is_by_hand: bool = False  # a person wants it said once more
    is_again: bool = False
    """Whether it was read back from the outbox."""
    handed_at: float = inf  # monotonic seconds; set by the connector


class ShowDraft(msgspec.Struct, frozen=True):
    """To a connector, then to the courier of the chat: show this draft."""

    draft: Draft


class AsideShown(msgspec.Struct, frozen=True):
    """To the node that works on a chat: what it said there beside an answer stands."""

    delivery: str
    at: float
    """See `Services.arrival_at`."""


class ShowTyping(msgspec.Struct, frozen=True):
    """To a connector, then to the courier of the chat: show a typing indicator."""

    typing: Typing


Stage = Literal["received", "answered", "failed", "silent"]
"""Stage of a message; `silent`: the agent chose not to answer."""


class ShowReaction(msgspec.Struct, frozen=True, kw_only=True):
    """To the reactions of a message: show its stage."""

    correlation_id: str
    address: Address
    message: str
    """The platform's id of the message."""

    agent: str
    """The agent whose account reacts."""

    stage: Stage


class MessageSettled(msgspec.Struct, frozen=True):
    """To a connector and the courier: no further answer to a message will come."""

    inbound: Inbound
    reason: str


class Delivered(msgspec.Struct, frozen=True):
    """To a connector: the courier has finished this delivery."""

    delivery_id: str


class Undelivered(msgspec.Struct, frozen=True):
    """To a connector: this delivery was not sent; hand it over again later."""

    delivery_id: str


class StopAccepting(msgspec.Struct, frozen=True):
    """To connectors and the scheduler: accept and start nothing more."""


class DrainOutbox(msgspec.Struct, frozen=True):
    """To a connector: look for stored deliveries that no courier has."""


Outcome = Literal["summarised", "truncated", "kept", "ok", "failed"]
"""Outcome of a compaction: lines were replaced by a summary (`summarised`), cut
(`truncated`) or left (`kept`). Outcome of a flush or reset: `ok`. Any of them may have
`failed`.
"""


class Condense(msgspec.Struct, frozen=True, kw_only=True):
    """To an agent, then a condenser: summarise lines, or extract what to remember."""

    id: str
    """Id of the event that will record it."""

    session: ActorRef
    conversation: str
    """The session's key."""

    sender_id: str
    """The person whose budget it counts against; empty: no person's."""

    correlation_id: str
    is_group: bool = False
    """Whether the conversation is a group chat."""

    lines: tuple[TranscriptLine, ...]
    newer: int = 0
    """Number of lines after these."""

    version: int = 0
    """Number of the journal's last event when these lines were read."""

    wants_facts: bool
    wants_summary: bool
    within: float
    """Time limit in seconds."""

    has_permit: bool
    """Whether it runs under the permit of a waiting turn."""


class CancelCondense(msgspec.Struct, frozen=True):
    """To an agent: cancel this compaction."""

    id: str


class Condensed(msgspec.Struct, frozen=True, kw_only=True):
    """To a session and its agent: the result of a compaction."""

    id: str
    summary: str = ""
    """The summary; empty if none was wanted or it failed."""

    remembered: tuple[FactChange, ...] = ()
    """Rows to store with the event."""

    run: Run | None = None
    """Usage and cost; None if no model was called."""

    failure: str = ""
    """Reason of a failure from a fixed set; empty on success."""


class ShortenPrompt(msgspec.Struct, frozen=True):
    """Ask a session, by a turn: the prompt is too long."""

    turn_id: str
    trigger: Trigger
    must: bool
    """Whether the model would certainly refuse the present prompt."""


class PromptShortened(msgspec.Struct, frozen=True):
    """Answer to `ShortenPrompt`: how the turn continues."""

    outcome: Outcome
    history: tuple[TranscriptLine, ...]
    earlier: int
    summaries: tuple[str, ...]


class EndIfExpired(msgspec.Struct, frozen=True):
    """To a session: end the conversation if it has expired."""


class DropConversation(msgspec.Struct, frozen=True):
    """To a session: forget the conversation as soon as no turn runs.

    Like `/forget`, but without an answer, because the messages were deleted on their
    platform.
    """


class TurnProgressed(msgspec.Struct, frozen=True):
    """To a session: the turn has made progress that no other message reports."""

    turn_id: str
