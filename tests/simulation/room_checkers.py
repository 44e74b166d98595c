"""What must hold in rooms, and wherever else agents hear what is not theirs alone.

R1   no chain of agents is longer than its limit, and none hands on more than that
R2   whoever is meant answers, or it is refused with a reason
R3   what is meant for nobody is settled as dropped, with a reason
I4   no history holds a word that belongs to another conversation
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from actors.rules import keys
from tests.simulation.workload import CANARY, canary

if TYPE_CHECKING:
    from actors.messages import Inbound
    from runtime.rows import Append, Commit
    from tests.simulation.ledger import Ledger
    from tests.simulation.trace import Trace
    from tests.simulation.workload import Plan

FIELDS = 5
"""Parts of the name of a conversation."""

UNMEANT = ("dropped", "not_addressed")


class RoomCheckers:
    """The judges of what happens in rooms.

    Args:
        plan: says who is there, and what may be handed on.
        ledger: what was committed so far.
        trace: where violations go.
    """

    def __init__(self, plan: Plan, ledger: Ledger, trace: Trace) -> None:
        self._plan = plan
        self._ledger = ledger
        self._trace = trace
        self._roots: dict[str, str] = {}
        self._handed: Counter[str] = Counter()

    def committed(self, commit: Commit) -> None:
        """Judge a commit that became durable."""
        for row in commit.accepts:
            self._check_chain(self._ledger.messages[row.id].inbound)
        for append in commit.appends:
            self._check_history(append)

    def _check_chain(self, inbound: Inbound) -> None:
        """Judge R1."""
        agents, limits = inbound.chain.agents, self._plan.limits
        parent = inbound.platform_id.rpartition(">")[0]
        root = self._roots.get(parent, inbound.id) if agents else inbound.id
        self._roots[inbound.id] = root
        if not agents:
            return
        if len(agents) - 1 > limits.max_hops:
            text = f"{inbound.id} came by {agents}, with {limits.max_hops} hops"
            self._trace.violate("R1", text, inbound.id)
        self._handed[root] += 1
        if self._handed[root] > limits.max_delegations:
            text = f"{root} had {self._handed[root]} tasks handed on"
            self._trace.violate("R1", text, root, inbound.id)

    def _check_history(self, append: Append) -> None:
        """Judge I4 by what is written down."""
        parts = append.stream.split("/")
        if len(parts) < FIELDS:
            return
        key = keys.parse_key("/".join(parts[:FIELDS]))
        # Only what the name of the conversation says: it is by this that it is read.
        owner = canary(
            key.connector, key.chat, key.sender, is_direct=True, scope="sender"
        )
        bodies = (event.body.decode("utf-8", "replace") for event in append.events)
        found = {word for body in bodies for word in CANARY.findall(body)}
        if foreign := found - {owner}:
            words = ", ".join(sorted(foreign))
            text = f"{words} in the history of {append.stream}"
            self._trace.violate("I4", text, append.stream)

    # --- the end --------------------------------------------------------------------

    def judge(self) -> None:
        """Judge R2 and R3."""
        copies = Counter(
            message.inbound.correlation_id
            for message in self._ledger.messages.values()
            if not message.inbound.chain.agents
        )
        for inbox_id, message in self._ledger.messages.items():
            inbound = message.inbound
            is_own = not inbound.chain.agents and inbox_id == inbound.correlation_id
            if is_own and not inbound.is_direct and inbox_id not in self._by_hand:
                self._judge_meant(inbound, message.ends[-1:], copies[inbox_id])

    @property
    def _by_hand(self) -> set[str]:
        return self._ledger.by_hand

    def _judge_meant(
        self, inbound: Inbound, ends: list[tuple[str, str]], copies: int
    ) -> None:
        meant = self._meant(inbound)
        if meant is None:
            return
        if not meant and ends != [UNMEANT]:
            text = f"{inbound.id} was for nobody and ended as {ends}"
            self._trace.violate("R3", text, inbound.id)
        elif meant and ends == [UNMEANT]:
            text = f"{inbound.id} was for {meant} and nobody heard it"
            self._trace.violate("R2", text, inbound.id)
        elif meant and copies != len(meant):
            text = f"{inbound.id} was for {meant} and {copies} heard it"
            self._trace.violate("R2", text, inbound.id)

    def _meant(self, inbound: Inbound) -> tuple[str, ...] | None:
        """Say who is meant, by the words alone; None: other rules may say so, too."""
        words = inbound.text.split()
        if words[0].startswith("/"):
            name = words[0].partition("@")[2]
            return (name,) if name else None
        if inbound.reply_to:
            return None
        names = [word[1:] for word in words if word.startswith("@")]
        return tuple(name for name in names if name in self._plan.agents)
