"""What must hold in rooms, and wherever else agents hear what is not theirs alone.

R1   no chain of agents is longer than its limit, in the open neither, and none hands
     on more than it may
R2   whoever is meant answers, or it is refused with a reason
R3   what is meant for nobody is settled as dropped, with a reason
I4   no history holds a word that belongs to another conversation

Who is meant is worked out here once more, from the words and the settings alone.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from actors.commands.registry import COMMANDS
from actors.messages import keys
from actors.messages.inbound import Inbound
from runtime.store.rows import Append, Commit
from tests.simulation.checks.ledger import Ledger
from tests.simulation.trace import Trace
from tests.simulation.workload import CANARY, Plan, canary

FIELDS = 5
"""Parts of the name of a conversation."""

ASIDE = "←"
"""How the thread of a consultation begins: behind it, who asks."""

UNMEANT = ("dropped", "not_addressed")
COPIED = ("dropped", "copied")
"""All that answer it have copies of their own from before a restart."""


class Meant(msgspec.Struct, frozen=True):
    """Whom a message in a room is for."""

    surely: tuple[str, ...]
    """In the order in which they hear it."""

    maybe: frozenset[str] = frozenset()
    """Those who answered this person a short time ago, should it still be."""


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
        self._open: Counter[str] = Counter()

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
        if not agents or inbound.occasion == "told":
            return
        turns, most = inbound.chain.turns, self._plan.collaboration.visible_max_turns
        self._open[root] += turns > 0
        if self._open[root] > most or len(agents) - 1 - turns > limits.max_hops:
            text = f"{inbound.id} came by {agents}, {turns} turns of it in the open,"
            text += f" {self._open[root]} of its message"
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
        # A consultation is always for one person, whoever else is in the room.
        is_shared = key.thread.startswith(ASIDE) and key.chat.startswith("g")
        owner = canary(
            key.connector,
            key.chat,
            key.sender,
            is_direct=not is_shared,
            scope=self._plan.sessions.session_scope,
        )
        bodies = (event.body.decode("utf-8", "replace") for event in append.events)
        found = {word for body in bodies for word in CANARY.findall(body)}
        if foreign := found - {owner}:
            words = ", ".join(sorted(foreign))
            text = f"{words} in the history of {append.stream}"
            self._trace.violate("I4", text, append.stream)

    # --- who is meant ---------------------------------------------------------------

    def meant(self, inbound: Inbound) -> Meant:
        """Say whom a person's message in a room is for."""
        agents = self._plan.agents
        there = inbound.present or tuple(agents)
        quoted = inbound.quoted.agent if inbound.quoted is not None else ""
        named = [each for each in (*_named(inbound.text), quoted) if each in there]
        called = dict.fromkeys(each for each in named if each in agents)
        configs = {each: agents[each].groups for each in (*called, *agents)}
        if called:
            heard = [x for x in configs if x in called]
            return Meant(tuple(x for x in heard if configs[x].activation != "never"))
        scope = _scope(inbound.text)
        if scope == "company" or (
            scope and len([x for x in agents if x in there]) == 1
        ):
            able = [x for x in agents if x in there]
            able = [x for x in able if configs[x].activation != "never"]
            return Meant(tuple(able[:1]))
        return Meant(
            tuple(x for x in configs if x in there and _always(self._plan, x)),
            frozenset(
                name
                for name, config in configs.items()
                if name in there
                and config.activation == "mention"
                and config.reply_window
                and self._was_answered_before(inbound)
            ),
        )

    def first_of(self, inbound: Inbound) -> str:
        """Name who answers the message itself, and no copy; empty: nobody can tell."""
        meant = self.meant(inbound)
        return meant.surely[0] if meant.surely and not meant.maybe else ""

    def _was_answered_before(self, inbound: Inbound) -> bool:
        """Whether anything that the same person said in the same room was answered."""
        return any(
            message.inbound.sender_id == inbound.sender_id
            and message.inbound.address == inbound.address
            and any(state == "replied" for state, _ in message.ends)
            for message in self._ledger.messages.values()
        )

    # --- the end --------------------------------------------------------------------

    def judge(self) -> None:
        """Judge R2 and R3."""
        ledger = self._ledger
        copies = Counter(
            message.inbound.correlation_id
            for message in ledger.messages.values()
            if not message.inbound.chain.agents
        )
        for inbox_id, message in ledger.messages.items():
            inbound = message.inbound
            is_own = not inbound.chain.agents and inbox_id == inbound.correlation_id
            if is_own and not inbound.is_direct and inbox_id not in ledger.by_hand:
                end = message.ends[-1] if message.ends else ("", "")
                unheard = end in {UNMEANT, COPIED}
                self._judge_meant(inbound, end, copies[inbox_id] - unheard)

    def _judge_meant(self, inbound: Inbound, end: tuple[str, str], heard: int) -> None:
        """Judge one message by how it ended, and how many heard it."""
        meant = self.meant(inbound)
        surely, most = len(meant.surely), len({*meant.surely, *meant.maybe})
        if heard < surely:
            text = (
                f"{inbound.id} was for {meant.surely}, {heard} heard it; it ended {end}"
            )
            self._trace.violate("R2", text, inbound.id)
        elif heard > most:
            who = f"{most} at most" if most else "nobody"
            text = f"{inbound.id} was for {who}, {heard} heard it; it ended as {end}"
            self._trace.violate("R3", text, inbound.id)


def _named(text: str) -> list[str]:
    """Give the names in a text, each behind an @."""
    words = text.split()
    command, _, name = words[0].partition("@")
    if name and command.startswith("/"):
        return [name]
    return [word[1:] for word in words if word.startswith("@")]


def _scope(text: str) -> str:
    """Say what a command without a name is about: a company, an agent, or neither."""
    word = text.split(maxsplit=1)[0].casefold()
    known = COMMANDS.get(word.removeprefix("/")) if word.startswith("/") else None
    if known is None or known.answer is None:
        return ""
    return "company" if known.is_general else "agent"


def _always(plan: Plan, name: str) -> bool:
    return plan.agents[name].groups.activation == "always"
