"""The tool calls of all conversations that wait for somebody's leave.

Shared by the actors that hear people: a question of one agent may be answered in
a conversation of another one, in the same chat. Kept in memory alone: a turn that
waited when the process ended asks again. To be used on the kernel thread only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.rules import approvals as rules
from actors.rules import commands

if TYPE_CHECKING:
    from collections.abc import Collection

    from actors.messages import Inbound
    from actors.rules.approvals import OpenApproval, Refused, Ruling
    from runtime.ref import ActorRef

# Chosen: ten times the turns that run at once; each of them waits for at most a few.
MOST_OPEN = 1000


class ApprovalBoard:
    """Open questions, and which session waits for each answer."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[OpenApproval, ActorRef]] = {}

    @property
    def ids(self) -> Collection[str]:
        """The ids in use."""
        return self._open.keys()

    @property
    def is_full(self) -> bool:
        """Whether no more questions are taken."""
        return len(self._open) >= MOST_OPEN

    def put(self, approval: OpenApproval, session: ActorRef) -> None:
        """Put a question up."""
        self._open[approval.id] = (approval, session)

    def take(self, approval: OpenApproval) -> ActorRef | None:
        """Take a question down, and no other that has its id by now.

        Returns:
            Who waited for the answer; None if it had been taken down before.
        """
        known, session = self._open.get(approval.id, (None, None))
        if known != approval:
            return None
        del self._open[approval.id]
        return session

    def hears(
        self, inbound: Inbound, decision: commands.Decision | None
    ) -> OpenApproval | None:
        """Give the question that a message answers, whoever wrote it.

        Args:
            inbound: what was written.
            decision: what its command says; None for plain words.
        """
        if decision is not None and decision.approval_id:
            approval, _ = self._open.get(decision.approval_id, (None, None))
            is_here = approval is not None and rules.is_there(approval, inbound.address)
            return approval if is_here else None
        if decision is None and rules.plain_word(inbound.text) is None:
            return None
        return rules.only_one((a for a, _ in self._open.values()), inbound.address)

    def agent_waiting_for(
        self,
        inbound: Inbound,
        approvers: Collection[str],
        asker_may: Collection[str],
    ) -> str:
        """Name the agent that waits for this very word about a tool; mostly nobody.

        Args:
            inbound: what was written.
            approvers: as for `rule`.
            asker_may: as for `rule`.
        """
        if inbound.chain.agents or not self._open:
            return ""
        command = commands.parse_command(inbound.text)
        if not isinstance(command, commands.Words | commands.Decision):
            return ""
        decision = command if isinstance(command, commands.Decision) else None
        approval = self.hears(inbound, decision)
        # A bystander's "ok" is heard by whoever would hear it otherwise.
        if self.rule(inbound, decision, approvers, asker_may) is None:
            return ""
        return "" if approval is None else approval.agent

    def rule(
        self,
        inbound: Inbound,
        decision: commands.Decision | None,
        approvers: Collection[str],
        asker_may: Collection[str],
    ) -> Ruling | Refused | None:
        """Say what a message decides; None if it is ordinary words.

        Args:
            inbound: what was written.
            decision: what its command says; None for plain words.
            approvers: who may approve anything, each as `connector/sender_id`.
            asker_may: what whoever asked may approve.
        """
        approval = self.hears(inbound, decision)
        if decision is None:
            word = rules.plain_word(inbound.text)
            if approval is None or word is None:
                return None
        elif approval is None:
            which = decision.approval_id or "that this could mean"
            text = f"No request {which} is open in this chat."
            return rules.Refused("unknown", text)
        who = rules.person(inbound)
        if not rules.may_decide(approval, who, approvers, asker_may):
            # A bystander's "ok" is no answer, and none of our business.
            text = f"You may not decide about {approval.id}."
            return rules.Refused("not_allowed", text) if decision else None
        if decision is None:
            return rules.Ruling(approval, bool(rules.plain_word(inbound.text)))
        return rules.Ruling(approval, decision.is_approved, decision.is_lasting)
