"""All tool calls that wait for an approval, over all conversations.

Shared by the actors that hear people: a question of one agent may be answered in
a conversation of another one, in the same chat. Kept in memory alone: a turn that
waited when the process ended asks again. To be used on the kernel thread only.

With `approvals.approval_chat`, a call may wait at another node than the one that works
on that chat. This one learns of the question by a hint, which may get lost; so who
names a question that it does not know has all nodes asked for theirs. A decision is
asked of the node at which the call waits.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import msgspec

from actors.approvals import permissions
from actors.approvals.permissions import ApprovalRefused, ApprovalRuling, OpenApproval
from actors.messages import commands
from actors.messages.inbound import Address, Inbound
from actors.messages.keys import account_of
from runtime.actor.ref import ActorRef

# Chosen: ten times the turns that run at once; each of them waits for at most a few.
MOST_OPEN = 1000


class OpenQuestion(msgspec.Struct, frozen=True):
    """An approval question that is open."""

    posted: permissions.PostedApproval
    session: ActorRef | None
    """Who waits; None: a session of another node."""

    question: str
    """The delivery by which people are asked."""


class QuestionAsked(msgspec.Struct, frozen=True):
    """To the node that works on a chat: a question of another node stands there."""

    approval: OpenApproval
    question: str
    """The delivery by which people are asked."""


class QuestionOver(msgspec.Struct, frozen=True):
    """To the same node: somebody has decided, or nobody waits any more."""

    approval: OpenApproval


class ReadQuestions(msgspec.Struct, frozen=True, tag=True):
    """Asks a node for its questions that stand in a chat: a list of `QuestionAsked`."""

    connector: str
    chat: str


class DecideQuestion(msgspec.Struct, frozen=True, tag=True):
    """Asks a node to end a question; it refuses if nobody waits there."""

    question: str
    """The delivery by which people are asked."""

    by: str
    """As `connector/sender_id`."""

    is_approved: bool
    is_lasting: bool
    once: str
    """No other decision has it."""


class ApprovalBoard:
    """All open approval questions, and the session that waits for each answer."""

    def __init__(self) -> None:
        self._open: dict[str, OpenQuestion] = {}

    @property
    def ids(self) -> Collection[str]:
        """The ids in use."""
        return self._open.keys()

    @property
    def open(self) -> tuple[OpenApproval, ...]:
        """The calls that wait in this process, oldest first."""
        own = (each for each in self._open.values() if each.session is not None)
        return tuple(each.posted.approval for each in own)

    @property
    def is_full(self) -> bool:
        """Whether no more questions are taken."""
        return len(self.open) >= MOST_OPEN

    def here(self, address: Address) -> tuple[OpenApproval, ...]:
        """Give the questions that stand in a chat, in whatever thread."""
        open_ = (each.posted.approval for each in self._open.values())
        return tuple(each for each in open_ if permissions.is_there(each, address))

    def put(self, approval: OpenApproval, session: ActorRef, question: str) -> None:
        """Put a question up.

        Args:
            question: the id of the delivery by which people are asked.
        """
        posted = permissions.PostedApproval(approval)
        self._open[approval.id] = OpenQuestion(posted, session, question)

    def learn(self, approval: OpenApproval, question: str) -> None:
        """Learn of a question of another node in a chat of this one.

        No more are kept than may wait here.
        """
        is_full = len(self._open) - len(self.open) >= MOST_OPEN
        if is_full or approval.id in self._open:  # mostly the very same
            return
        posted = permissions.PostedApproval(approval)
        self._open[approval.id] = OpenQuestion(posted, None, question)

    def forget(self, approval: OpenApproval) -> None:
        """Take a question of another node down."""
        if self.is_elsewhere(approval):
            del self._open[approval.id]

    def is_elsewhere(self, approval: OpenApproval) -> bool:
        """Whether a call waits at another node."""
        known = self._open.get(approval.id)
        return (
            known is not None
            and known.session is None
            and known.posted.approval == approval
        )

    def note_shown(self, question: str, at: float) -> None:
        """Learn that a delivery stands in its chat; nothing happens if it asks nothing.

        Args:
            at: see `Services.arrival_at`.
        """
        for approval_id, each in self._open.items():
            if each.question == question and math.isinf(each.posted.shown_at):
                posted = permissions.PostedApproval(each.posted.approval, at)
                self._open[approval_id] = OpenQuestion(posted, each.session, question)
                return

    def asked_by(self, question: str) -> str:
        """Give the id of the approval that a delivery asks for; empty: it asks none."""
        for approval_id, each in self._open.items():
            if each.question == question:
                return approval_id
        return ""

    def question_of(self, approval_id: str) -> str:
        """Give the id of the delivery by which people are asked; empty: nobody is."""
        known = self._open.get(approval_id)
        return "" if known is None else known.question

    def has(self, approval: OpenApproval) -> bool:
        """Whether nobody has decided about a call."""
        known = self._open.get(approval.id)
        return known is not None and known.posted.approval == approval

    def take(self, approval: OpenApproval) -> ActorRef | None:
        """Take a question down, and no other that has its id by now.

        Returns:
            Who waited for the answer; None if it had been taken down before.
        """
        known = self._open.get(approval.id)
        if known is None or known.posted.approval != approval:
            return None
        del self._open[approval.id]
        return known.session

    def agent_waiting_for(
        self, inbound: Inbound, arrived_at: float, terms: permissions.ApprovalTerms
    ) -> str:
        """Name the agent that waits for this very word about a tool; mostly nobody.

        Args:
            arrived_at: as for `rule`.
            terms: as for `rule`.
        """
        is_another = inbound.chain.agents or inbound.occasion or inbound.changed_by
        if is_another or not self._open:
            return ""
        command = commands.parse_command(inbound.text)
        if not isinstance(command, commands.PlainText | commands.ApprovalDecision):
            return ""
        decision = command if isinstance(command, commands.ApprovalDecision) else None
        # A bystander's "ok" is heard by whoever would hear it otherwise.
        ruling = self.rule(inbound, decision, arrived_at, terms)
        if isinstance(ruling, permissions.ApprovalRuling):
            return ruling.approval.agent
        return "" if ruling is None else ruling.agent

    def rule(
        self,
        inbound: Inbound,
        decision: commands.ApprovalDecision | None,
        arrived_at: float,
        terms: permissions.ApprovalTerms,
    ) -> ApprovalRuling | ApprovalRefused | None:
        """Say what a message decides; None if it is ordinary words.

        Args:
            decision: what its command says; None for plain words.
            arrived_at: when it came in, as `Services.arrival_at` has it; 0 if that was
                before this process began.
        """
        if decision is None and not self._open:
            return None  # as most often
        word = permissions.plain_word(inbound.text)
        if decision is None and word is None:
            return None
        who = account_of(inbound)
        about = self._about(inbound, decision, arrived_at, terms)
        if about is None or isinstance(about, permissions.ApprovalRefused):
            return about
        if decision is None:
            return permissions.ApprovalRuling(about, bool(word))
        if not terms.admits(about, who):
            text = f"You may not decide about {about.id}: ask an owner."
            return permissions.ApprovalRefused("not_allowed", text, about.agent)
        return permissions.ApprovalRuling(
            about, decision.is_approved, decision.is_lasting
        )

    def _about(
        self,
        inbound: Inbound,
        decision: commands.ApprovalDecision | None,
        arrived_at: float,
        terms: permissions.ApprovalTerms,
    ) -> OpenApproval | ApprovalRefused | None:
        """Find the question that is answered."""
        if decision is not None and decision.approval_id:
            approval = self._named(decision.approval_id, inbound)
            return approval or _unknown(decision.approval_id)
        here = self._at(inbound.address)
        who = account_of(inbound)
        if decision is None and not any(terms.admits(x.approval, who) for x in here):
            return None  # a bystander's "ok" is no answer, and none of our business
        meant = permissions.one_meant(here, arrived_at, terms.plain_after)
        is_word = decision is None or meant is not None
        return meant if is_word else _unknown("that this could mean")

    def _named(self, approval_id: str, inbound: Inbound) -> OpenApproval | None:
        known = self._open.get(approval_id)
        if known is None or not permissions.is_there(
            known.posted.approval, inbound.address
        ):
            return None
        return known.posted.approval

    def _at(self, address: Address) -> list[permissions.PostedApproval]:
        standing = (each.posted for each in self._open.values())
        return [each for each in standing if each.approval.address == address]


def _unknown(which: str) -> ApprovalRefused:
    return permissions.ApprovalRefused(
        "unknown", f"No request {which} is open in this chat."
    )
