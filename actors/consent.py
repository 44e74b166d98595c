"""A session's questions to people: may this tool run? Asked, answered, or given up.

The turn waits for the answer, the session does not: it keeps the reply, and goes on
hearing people. What was approved `always` holds for the same tool and the same asker,
for as long as the settings say and the conversation is awake.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

import msgspec

from actors import answers
from actors.messages import Address
from actors.protocol import (
    AskLeave,
    Decide,
    Hear,
    Leave,
    TurnGoesOn,
    TurnNoted,
    TurnRests,
)
from actors.rules import approvals as rules
from actors.rules import commands
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.answers import Aside
    from actors.attempt import Attempt
    from actors.messages import Inbound
    from actors.persona import Persona
    from actors.rules.commands import Decision
    from actors.services import Services
    from runtime.actor import Actor
    from runtime.reply import Reply
    from runtime.timers import Timer

LOG = EventLog("session")

MOST_LASTING = 32
"""Approvals of one conversation that hold for more than one call."""

# Chosen: it is told by another conversation's session, at once.
DECIDED_WITHIN = 5.0
"""Seconds until a decision arrives that was taken off the board."""

GONE = Leave("unasked", why="nobody waits for this turn any more")
NOBODY = (
    "it needs somebody's leave, and nobody can be asked here; tell people that an owner"
    " has to allow it"
)
NO_ANSWER = "it needs somebody's leave, and nobody answered in time"
REFUSED = "the people here did not allow it; do not try it another way"


def told(
    hear: Hear, command: commands.Command, session: Actor, services: Services
) -> str | None:
    """Take what somebody wrote for a decision, if it is one.

    Args:
        hear: what was written, and when it came in.
        command: what it says; `Words` may be a plain yes or no.
        session: who heard it; tells the session whose turn waits.
        services: the board of open questions, and who may decide.

    Returns:
        What to tell whoever wrote; None: it is no decision.
    """
    match command:
        case commands.Words():
            return _heard(hear, None, session, services)
        case commands.Decision():
            return _heard(hear, command, session, services)
        case commands.Stop() | commands.Asked():
            return None
        case _:
            assert_never(command)


def _heard(
    hear: Hear, decision: Decision | None, session: Actor, services: Services
) -> str | None:
    inbound = hear.inbound
    if inbound.chain.agents or inbound.occasion or inbound.changed_by:
        return None  # no agent decides for people, no clock, and no hook
    ruling = services.board.rule(inbound, decision, hear.arrived_at, services.terms)
    if ruling is None:
        return None
    if isinstance(ruling, rules.Refused):
        services.metrics.approval(ruling.reason)
        return ruling.text
    approval = ruling.approval
    waiting = services.board.take(approval)
    if waiting is not None:
        by = rules.person(inbound)
        decided = Decide(approval, ruling.is_approved, by, is_lasting=ruling.is_lasting)
        session.tell(waiting, decided)
    return _confirmed(ruling)


def _confirmed(ruling: rules.Ruling) -> str:
    approval = ruling.approval
    if not ruling.is_approved:
        return f"Denied: {approval.agent} does not run `{approval.tool}`."
    rest = ", and need not ask again for a while" if ruling.is_lasting else ""
    return f"Approved: {approval.agent} may run `{approval.tool}`{rest}."


class LeaveExpired(msgspec.Struct, frozen=True):
    """A note to the session: nobody decided in time."""

    approval: rules.OpenApproval
    is_final: bool = False
    """Whether a decision that is on its way would be here by now."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """One question, and who waits for the answer."""

    approval: rules.OpenApproval
    inbound: Inbound
    reply: Reply
    timer: Timer


Beside = TurnNoted | AskLeave | TurnRests | TurnGoesOn | Decide | LeaveExpired
"""What a session hears of things that are said beside its answer."""


class Consent:
    """The open questions of one session.

    Args:
        persona: who wants to run tools.
        services: the board, the settings, counts.
    """

    __slots__ = ("_agent", "_lasting", "_services", "_waiting")

    def __init__(self, persona: Persona, services: Services) -> None:
        self._agent = persona.name
        self._services = services
        self._waiting: dict[str, Waiting] = {}
        self._lasting: dict[tuple[str, str], float] = {}

    def _noted(self, noted: TurnNoted, current: Attempt) -> tuple[Aside, ...]:
        """Say a note, unless it has words of an answer that a hook may hold back."""
        connector = current.inbound.address.connector
        hooks = self._services.hooks.sending(connector, self._agent)
        return () if hooks and noted.status != "slow" else current.beside(noted)

    def receive(
        self, message: Beside, current: Attempt | None, session: Actor
    ) -> tuple[Aside, ...]:
        """Pass on a note, ask people, or give the turn that waits its answer.

        Args:
            message: what the session is told or asked.
            current: the attempt that runs.
            session: on whose behalf things are timed; not kept, it keeps this.

        Returns:
            What is to be said.
        """
        if isinstance(message, TurnNoted):
            return () if current is None else self._noted(message, current)
        match message:
            case Decide() | LeaveExpired():
                return self._decided(message, session)
            case TurnRests(turn_id=turn_id):
                self._rests(turn_id, current)
                return ()
            case AskLeave() | TurnGoesOn():
                pass
        reply = session.defer_reply()
        if reply is None:
            return ()
        if isinstance(message, AskLeave):
            return self._ask(message, current, reply, session)
        if current is None or current.id != message.turn_id or current.is_over:
            reply.offer(False)  # noqa: FBT003  the answer itself
        else:
            current.go_on(reply)
        return ()

    def _rests(self, turn_id: str, current: Attempt | None) -> None:
        if current is None or current.id != turn_id or current.is_over:
            return
        # Else it was answered meanwhile, and goes on.
        if any(each.approval.turn_id == turn_id for each in self._waiting.values()):
            current.rest()

    def _ask(
        self,
        wanted: AskLeave,
        current: Attempt | None,
        reply: Reply,
        session: Actor,
    ) -> tuple[Aside, ...]:
        if current is None or current.id != wanted.turn_id or current.is_over:
            reply.offer(GONE)
            return ()
        inbound = current.inbound
        asker = rules.person(inbound)
        if self._holds(wanted.tool, asker):
            self._end(reply, Leave("approved", by="always"))
            return ()
        address = self._where(inbound, wanted)
        if address is None or self._services.board.is_full:
            self._end(reply, Leave("unasked", why=NOBODY))
            return ()
        # Those of our own that are decided, too, until we have heard of it.
        taken = {*self._services.board.ids, *self._waiting}
        approval = rules.OpenApproval(
            id=rules.short_id(f"{inbound.id}/{wanted.key}", taken),
            turn_id=wanted.turn_id,
            key=wanted.key,
            agent=self._agent,
            asker=asker,
            tool=wanted.tool,
            effect=wanted.effect,
            address=address,
        )
        current.showing.show_now()
        # With the turn's id: asked again after a restart, it is another question.
        key = f"{wanted.key}:{current.id}"
        said = self._questions(wanted, approval, inbound, key)
        timeout = self._services.approvals.timeout
        timer = session.after(timeout, LeaveExpired(approval))
        self._waiting[approval.id] = Waiting(approval, inbound, reply, timer)
        question, *_ = said
        self._services.board.put(approval, session.actor_ref, question.delivery.id)
        return said

    def _decided(
        self, message: Decide | LeaveExpired, session: Actor
    ) -> tuple[Aside, ...]:
        if isinstance(message, LeaveExpired) and self._is_overtaking(message, session):
            return ()
        waiting = self._close(message.approval)
        if waiting is None:
            return ()
        approval = waiting.approval
        if isinstance(message, LeaveExpired):
            self._end(waiting.reply, Leave("timeout", why=NO_ANSWER))
            text = f"\N{LOCK} {approval.id}: nobody answered, so it does not run."
            key = f"{approval.id}:{approval.turn_id}:expired"
            return (self._aside(waiting.inbound, key, text, approval.address),)
        if message.is_lasting:
            self._remember(approval.tool, approval.asker)
        if message.is_approved:
            self._end(waiting.reply, Leave("approved", message.by))
        else:
            self._end(waiting.reply, Leave("denied", message.by, REFUSED))
        LOG.info(
            "tool call decided",
            correlation_id=waiting.inbound.correlation_id,
            agent=self._agent,
            tool=approval.tool,
            is_approved=message.is_approved,
            by=message.by,
        )
        return ()

    def _is_overtaking(self, expired: LeaveExpired, session: Actor) -> bool:
        """Wait a little for a decision that somebody was told has been made."""
        approval = expired.approval
        is_open = self._services.board.has(approval)
        if is_open or expired.is_final or approval.id not in self._waiting:
            return False
        session.after(DECIDED_WITHIN, LeaveExpired(approval, is_final=True))
        return True

    def forget(self, turn_id: str) -> None:
        """Take down the questions of a turn that has ended."""
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

    def _where(self, inbound: Inbound, wanted: AskLeave) -> Address | None:
        """Say where to ask; None if nobody would see it, or could decide."""
        services = self._services
        settings = services.approvals
        address = inbound.address
        if settings.approval_chat:
            connector, _, chat = settings.approval_chat.partition("/")
            address = Address(connector, chat)
        if not services.approvers and wanted.effect not in settings.asker_may_approve:
            return None
        sees = services.account(address.connector).abilities.shows_asides
        return address if sees else None

    def _close(self, approval: rules.OpenApproval) -> Waiting | None:
        waiting = self._waiting.get(approval.id)
        if waiting is None or waiting.approval != approval:
            return None  # decided before; another call may have its id by now
        del self._waiting[approval.id]
        waiting.timer.cancel()
        self._services.board.take(approval)
        return waiting

    def _end(self, reply: Reply, leave: Leave, outcome: str = "") -> None:
        self._services.metrics.approval(outcome or leave.outcome)
        reply.offer(leave)

    def _questions(
        self,
        wanted: AskLeave,
        approval: rules.OpenApproval,
        inbound: Inbound,
        key: str,
    ) -> tuple[Aside, ...]:
        what = f"{self._agent} wants to run `{wanted.tool}`"
        if wanted.summary:
            what = f"{what}: {wanted.summary}"
        seconds = self._services.approvals.timeout
        text = (
            f"\N{CLOSED LOCK WITH KEY} {what} — /approve {approval.id} or"
            f" /deny {approval.id}, {seconds:g} s"
        )
        question = self._aside(inbound, f"{key}:ask", text, approval.address)
        if rules.is_there(approval, inbound.address):
            return (question,)
        abilities = self._services.account(inbound.address.connector).abilities
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
