"""Asks people whether a tool call of the running turn may run.

The turn waits for the answer; the session keeps the reply and goes on to take messages.
An approval that was given with `always` holds for the same tool and the same person, as
long as the settings say and while the session is awake.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import suppress
from typing import assert_never

import msgspec

from actors.agents.persona import Persona
from actors.approvals import permissions
from actors.approvals.board import (
    DecideQuestion,
    QuestionAsked,
    QuestionOver,
    ReadQuestions,
)
from actors.journal import answers
from actors.journal.answers import Aside
from actors.messages import commands
from actors.messages.commands import ApprovalDecision
from actors.messages.inbound import Address, Inbound
from actors.messages.keys import account_of
from actors.protocol import (
    ApprovalDecided,
    ApprovalResult,
    Hear,
    RequestApproval,
    ResumeTurn,
    TurnPaused,
    TurnReported,
)
from actors.services import Services
from actors.session.attempt import Attempt
from runtime.actor.actor import Actor
from runtime.actor.ref import UNANSWERED
from runtime.actor.reply import Reply
from runtime.actor.timers import Timer
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog

LOG = EventLog("session")

MOST_LASTING = 32
"""Most `always` approvals of one conversation."""

# Chosen: another conversation's session sends the decision at once.
DECIDED_WITHIN = 5.0
"""Seconds until a decision arrives whose question is no longer on the board."""

GONE = ApprovalResult("unasked", why="nobody waits for this turn any more")
NOBODY = (
    "it needs somebody's leave, and nobody can be asked here; tell people that an owner"
    " has to allow it"
)
NO_ANSWER = "it needs somebody's leave, and nobody answered in time"
REFUSED = "the people here did not allow it; do not try it another way"


def decision_in(
    hear: Hear, command: commands.Command, session: Actor, services: Services
) -> str | Awaitable[str] | None:
    """Pass on the decision about a tool call that a message may be.

    Args:
        command: its command; `PlainText` may be a plain yes or no.
        session: the actor that got it; sends the decision to the session that waits.
        services: the board of open questions, and who may decide.

    Returns:
        The answer to whoever decided, perhaps at another node; None: the message is no
        decision.
    """
    match command:
        case commands.PlainText():
            return _heard(hear, None, session, services)
        case commands.ApprovalDecision():
            return _heard(hear, command, session, services)
        case commands.Stop() | commands.OtherCommand():
            return None
        case _:
            assert_never(command)


def _heard(
    hear: Hear, decision: ApprovalDecision | None, session: Actor, services: Services
) -> str | Awaitable[str] | None:
    inbound = hear.inbound
    if inbound.chain.agents or inbound.occasion or inbound.changed_by:
        return None  # agents, timers and hooks never decide for people
    ruling = services.board.rule(inbound, decision, hear.arrived_at, services.terms)
    if ruling is None:
        return None
    if isinstance(ruling, permissions.ApprovalRefused):
        place = hear.inbound.address
        if (
            decision is not None
            and ruling.reason == "unknown"
            and services.duties.parts is not None
            and services.approvals.approval_chat == f"{place.connector}/{place.chat}"
        ):
            return _look_elsewhere(hear, decision, services)
        services.metrics.approvals.add(1, ruling.reason)
        return ruling.text
    approval = ruling.approval
    if services.board.is_elsewhere(approval):
        return _decide_elsewhere(hear, ruling, services)
    waiting = services.board.take(approval)
    if waiting is not None:
        by = account_of(inbound)
        decided = ApprovalDecided(
            approval, ruling.is_approved, by, is_lasting=ruling.is_lasting
        )
        session.tell(waiting, decided)
    return _confirmed(ruling)


async def _look_elsewhere(
    hear: Hear, decision: ApprovalDecision, services: Services
) -> str:
    """Ask the other nodes for their questions in this chat, and rule once more."""
    board, place = services.board, hear.inbound.address
    said = await services.duties.ask(ReadQuestions(place.connector, place.chat))
    for each in said.answers:
        with suppress(msgspec.MsgspecError, UnicodeDecodeError):
            for found in msgspec.json.decode(each, type=list[QuestionAsked]):
                board.learn(found.approval, found.question)
    ruling = board.rule(hear.inbound, decision, hear.arrived_at, services.terms)
    if isinstance(ruling, permissions.ApprovalRuling):
        return await _decide_elsewhere(hear, ruling, services)
    services.metrics.approvals.add(1, "unknown" if ruling is None else ruling.reason)
    return "\n".join(["" if ruling is None else ruling.text, *said.silent])


async def _decide_elsewhere(
    hear: Hear, ruling: permissions.ApprovalRuling, services: Services
) -> str:
    """Send the decision to the node where the call waits; return what came of it."""
    board, approval = services.board, ruling.approval
    wanted = DecideQuestion(
        question=board.question_of(approval.id),
        by=account_of(hear.inbound),
        is_approved=ruling.is_approved,
        is_lasting=ruling.is_lasting,
        once=f"{hear.inbound.id}/{approval.id}",
    )
    said = await services.duties.ask(wanted)
    if said.answers:
        return _confirmed(ruling)
    if said.silent:
        why = "\n".join(said.silent)
        return f"Not known whether {approval.agent} was told; say it again.\n{why}"
    board.forget(approval)
    return f"Nobody waits for {approval.id} any more."


def answer_node(
    asked: ReadQuestions | DecideQuestion, services: Services
) -> tuple[QuestionAsked, ...] | bool:
    """Answer a question of another node; False: nobody waits here for that decision."""
    board = services.board
    if isinstance(asked, ReadQuestions):
        place = Address(asked.connector, asked.chat)
        open_ = (each for each in board.open if permissions.is_there(each, place))
        return tuple(QuestionAsked(x, board.question_of(x.id)) for x in open_)
    wanted = board.asked_by(asked.question)
    approval = next((each for each in board.open if each.id == wanted), None)
    if approval is None or not services.terms.admits(approval, asked.by):
        return False
    session = board.take(approval)
    decided = ApprovalDecided(
        approval, asked.is_approved, asked.by, is_lasting=asked.is_lasting
    )
    with suppress(*UNANSWERED, KernelError):
        if session is not None:
            session.tell(decided)
            return True
    return False


def _confirmed(ruling: permissions.ApprovalRuling) -> str:
    approval = ruling.approval
    if not ruling.is_approved:
        return f"Denied: {approval.agent} does not run `{approval.tool}`."
    rest = ", and need not ask again for a while" if ruling.is_lasting else ""
    return f"Approved: {approval.agent} may run `{approval.tool}`{rest}."


class ApprovalExpired(msgspec.Struct, frozen=True):
    """Timer of a session: nobody decided in time."""

    approval: permissions.OpenApproval
    is_final: bool = False
    """Whether a decision that was on its way would have arrived by now."""


class OpenRequest(msgspec.Struct, frozen=True):
    """One question to people, and the reply that the turn waits for."""

    approval: permissions.OpenApproval
    inbound: Inbound
    reply: Reply
    timer: Timer


Beside = (
    TurnReported
    | RequestApproval
    | TurnPaused
    | ResumeTurn
    | ApprovalDecided
    | ApprovalExpired
)
"""Messages of a turn that cause notices and questions to people."""


class ApprovalRequests:
    """The open questions of one session about tool calls."""

    __slots__ = ("_agent", "_lasting", "_services", "_waiting")

    def __init__(self, persona: Persona, services: Services) -> None:
        self._agent = persona.name
        self._services = services
        self._waiting: dict[str, OpenRequest] = {}
        self._lasting: dict[tuple[str, str], float] = {}

    def _noted(self, noted: TurnReported, current: Attempt) -> tuple[Aside, ...]:
        """Give a notice of the turn, unless hooks may change the answer.

        The notice may have words of an answer that a hook holds back.
        """
        connector = current.inbound.address.connector
        hooks = self._services.hooks.sending(connector, self._agent)
        return () if hooks and noted.status != "slow" else current.beside(noted)

    def receive(
        self, message: Beside, current: Attempt | None, session: Actor
    ) -> tuple[Aside, ...]:
        """Take a notice or a question of the turn, or a decision about a question.

        Args:
            current: the attempt that runs.
            session: the actor that sets the timers; it is not kept here, which would
                make a reference cycle.

        Returns:
            The notices for people.
        """
        if isinstance(message, TurnReported):
            return () if current is None else self._noted(message, current)
        match message:
            case ApprovalDecided() | ApprovalExpired():
                return self._decided(message, session)
            case TurnPaused(turn_id=turn_id):
                self._rests(turn_id, current)
                return ()
            case RequestApproval() | ResumeTurn():
                pass
        reply = session.defer_reply()
        if reply is None:
            return ()
        if isinstance(message, RequestApproval):
            return self._ask(message, current, reply, session)
        if current is None or current.id != message.turn_id or current.is_over:
            reply.offer(False)  # noqa: FBT003  the answer itself
        else:
            current.resume(reply)
        return ()

    def _rests(self, turn_id: str, current: Attempt | None) -> None:
        if current is None or current.id != turn_id or current.is_over:
            return
        # If not, the question was answered meanwhile, and the turn goes on.
        if any(each.approval.turn_id == turn_id for each in self._waiting.values()):
            current.rest()

    def _ask(
        self,
        wanted: RequestApproval,
        current: Attempt | None,
        reply: Reply,
        session: Actor,
    ) -> tuple[Aside, ...]:
        if current is None or current.id != wanted.turn_id or current.is_over:
            reply.offer(GONE)
            return ()
        inbound = current.inbound
        asker = account_of(inbound)
        if self._holds(wanted.tool, asker):
            self._end(reply, ApprovalResult("approved", by="always"))
            return ()
        address = self._where(inbound, wanted)
        if address is None or self._services.board.is_full:
            self._end(reply, ApprovalResult("unasked", why=NOBODY))
            return ()
        # Also the ids of our own questions whose decision has not arrived yet.
        taken = {*self._services.board.ids, *self._waiting}
        seed, shortest = f"{inbound.id}/{wanted.key}", permissions.SHORTEST
        if self._services.duties.parts is not None and address != inbound.address:
            shortest = permissions.SHORTEST_OF_NODES
        approval = permissions.OpenApproval(
            id=permissions.short_id(seed, taken, shortest),
            turn_id=wanted.turn_id,
            key=wanted.key,
            agent=self._agent,
            asker=asker,
            tool=wanted.tool,
            effect=wanted.effect,
            address=address,
        )
        current.drafts.show_now()
        # With the turn's id: after a restart the same call is a new question.
        key = f"{wanted.key}:{current.id}"
        said = self._questions(wanted, approval, inbound, key)
        timeout = self._services.approvals.timeout
        timer = session.after(timeout, ApprovalExpired(approval))
        self._waiting[approval.id] = OpenRequest(approval, inbound, reply, timer)
        question, *_ = said
        self._services.board.put(approval, session.actor_ref, question.delivery.id)
        asked = QuestionAsked(approval, question.delivery.id)
        self._tell_others(approval, asked)
        return said

    def _decided(
        self, message: ApprovalDecided | ApprovalExpired, session: Actor
    ) -> tuple[Aside, ...]:
        if isinstance(message, ApprovalExpired) and self._is_overtaking(
            message, session
        ):
            return ()
        waiting = self._close(message.approval)
        if waiting is None:
            return ()
        approval = waiting.approval
        if isinstance(message, ApprovalExpired):
            self._end(waiting.reply, ApprovalResult("timeout", why=NO_ANSWER))
            text = f"\N{LOCK} {approval.id}: nobody answered, so it does not run."
            key = f"{approval.id}:{approval.turn_id}:expired"
            return (self._aside(waiting.inbound, key, text, approval.address),)
        if message.is_lasting:
            self._remember(approval.tool, approval.asker)
        if message.is_approved:
            self._end(waiting.reply, ApprovalResult("approved", message.by))
        else:
            self._end(waiting.reply, ApprovalResult("denied", message.by, REFUSED))
        LOG.info(
            "tool call decided",
            correlation_id=waiting.inbound.correlation_id,
            agent=self._agent,
            tool=approval.tool,
            is_approved=message.is_approved,
            by=message.by,
        )
        return ()

    def _is_overtaking(self, expired: ApprovalExpired, session: Actor) -> bool:
        """Wait a little for a decision that was confirmed and has not arrived yet."""
        approval = expired.approval
        is_open = self._services.board.has(approval)
        if is_open or expired.is_final or approval.id not in self._waiting:
            return False
        session.after(DECIDED_WITHIN, ApprovalExpired(approval, is_final=True))
        return True

    def forget(self, turn_id: str) -> None:
        """Close the questions of a turn that has ended."""
        for each in tuple(self._waiting.values()):
            if each.approval.turn_id == turn_id and self._close(each.approval):
                self._end(each.reply, GONE, "stopped")

    def _holds(self, tool: str, asker: str) -> bool:
        until = self._lasting.get((tool, asker), 0.0)
        return self._services.clock.monotonic() < until

    def _remember(self, tool: str, asker: str) -> None:
        lasting = self._lasting
        lasting.pop((tool, asker), None)  # the newest last
        now = self._services.clock.monotonic()
        lasting[tool, asker] = now + self._services.approvals.always_for
        if len(lasting) > MOST_LASTING:
            del lasting[next(iter(lasting))]

    def _where(self, inbound: Inbound, wanted: RequestApproval) -> Address | None:
        """Give where to ask; None if nobody would see the question, or may decide."""
        services = self._services
        settings = services.approvals
        address = inbound.address
        if settings.approval_chat:
            connector, _, chat = settings.approval_chat.partition("/")
            address = Address(connector, chat)
        if not services.approvers and wanted.effect not in settings.asker_may_approve:
            return None
        sees = services.accounts[address.connector].abilities.shows_asides
        return address if sees else None

    def _close(self, approval: permissions.OpenApproval) -> OpenRequest | None:
        waiting = self._waiting.get(approval.id)
        if waiting is None or waiting.approval != approval:
            return None  # decided before; another question may have its id by now
        del self._waiting[approval.id]
        waiting.timer.cancel()
        self._services.board.take(approval)
        over = QuestionOver(approval)
        self._tell_others(approval, over)
        return waiting

    def _tell_others(
        self, approval: permissions.OpenApproval, hint: QuestionAsked | QuestionOver
    ) -> None:
        """Tell the node that works on a question's chat, if that is not this one."""
        duties, place = self._services.duties, approval.address
        if not duties.has_chat(place.connector, place.chat):
            duties.show(place.connector, hint)

    def _end(self, reply: Reply, leave: ApprovalResult, outcome: str = "") -> None:
        self._services.metrics.approvals.add(1, outcome or leave.outcome)
        reply.offer(leave)

    def _questions(
        self,
        wanted: RequestApproval,
        approval: permissions.OpenApproval,
        inbound: Inbound,
        key: str,
    ) -> tuple[Aside, ...]:
        what = f"{self._agent} wants to run `{wanted.tool}`"
        if wanted.summary:
            what = f"{what}: {wanted.summary}"
        is_here = permissions.is_there(approval, inbound.address)
        decide = f"/approve {approval.id} or /deny {approval.id}"
        if is_here and not self._services.terms.admits(approval, approval.asker):
            decide = f"only owners: {decide}"
        seconds = self._services.approvals.timeout
        text = f"\N{CLOSED LOCK WITH KEY} {what} — {decide}, {seconds:g} s"
        question = self._aside(inbound, f"{key}:ask", text, approval.address)
        if is_here:
            return (question,)
        abilities = self._services.accounts[inbound.address.connector].abilities
        if not abilities.shows_asides:
            return (question,)
        wait = f"\N{CLOSED LOCK WITH KEY} {what} — an owner has been asked."
        return question, answers.aside(inbound, f"{key}:wait", wait)

    @staticmethod
    def _aside(inbound: Inbound, key: str, text: str, address: Address) -> Aside:
        aside = answers.aside(inbound, key, text)
        if address == inbound.address:
            return aside
        delivery = msgspec.structs.replace(aside.delivery, address=address, reply_to="")
        return msgspec.structs.replace(aside, delivery=delivery)
