"""Which of the agents in a group answer what is said there.

Pure and total: for one message, each agent that is there is judged by itself, by these
rules in this order, and each rule's verdict can be told.

1. `own`: nobody answers its own words (F045).
2. `present`: it must be in the chat, if the platform says who is (F043, F049).
3. `bot`: another program's words count only if `groups.bots` lets them, they mention
   the agent, and the two have not gone on for too long; then they are answered
   (F055-F058).
4. `never`: `groups.activation` keeps it silent.
5. The reasons to answer, of which the first that holds is the reason (F059-F064):
   `always` (if the chat is nobody's or its own by a route), `reply` to its words,
   `mention`, `pattern` (its `mention_patterns`), `window` (it answered this person here
   a short time ago).
6. `deference`: unless it is mentioned or replied to itself, it yields to another agent
   there that is (F065).
7. `relevance`: where the reason is the window, a model may be asked if the words are
   meant for it (F066); `broadcast`: where there is no reason, if they are meant for
   everybody (F067). Both only if its settings want it. The answer is put in by whoever
   asks; what keeps programs from answering each other for ever never hangs on it.

Routes say whose the chat is: `always` and `broadcast` are only for the agent of the
first route that fits, where one does. Whoever is called answers all the same.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal, assert_never

import msgspec

from actors.rules.classify import fold, holds
from actors.rules.commands import Words, parse_command
from actors.rules.routes import (
    NO_GROUP,
    Group,
    Routed,
    Unrouted,
    Verdict,
    fitting,
    mentioned,
)

if TYPE_CHECKING:
    from actors.messages import Inbound
    from actors.rules.routes import Binding, RoutingTable

Reason = Literal["always", "reply", "mention", "pattern", "window", "broadcast", "peer"]
"""Why an agent answers."""

Silence = Literal[
    "own", "absent", "bot", "rounds", "never", "uncalled", "yields", "irrelevant"
]
"""Why it does not."""

CheckKind = Literal["relevance", "broadcast"]
"""What a model is asked: is it meant for this agent, or for everybody?"""

REASONS: tuple[Reason, ...] = ("always", "reply", "mention", "pattern", "window")
MINUTE = 60.0
NOT_ADDRESSED = "No agent here answers this: none is called, and none has a reason."
BOT = "No agent here answers other programs, or this one called none."
BOT_ROUNDS = "Answered too often by now: this program has to be quiet for a while."


class Situation(msgspec.Struct, frozen=True):
    """What is known beside the message."""

    now: float = 0.0
    """Unix seconds at which it was taken in."""

    answered_at: dict[str, float] = {}
    """When each agent last answered this sender in this chat: Unix seconds, by name."""

    barred: frozenset[str] = frozenset()
    """Agents that must not answer this program now; see `peers.py`."""

    checked: dict[str, bool] = {}
    """What came of the models' checks, by agent: whether it is meant."""


NOTHING_KNOWN = Situation()


class Judged(msgspec.Struct, frozen=True):
    """What came out for one agent: one of the three is set."""

    agent: str
    reason: Reason | None = None
    """Why it answers."""

    check: CheckKind | None = None
    """What a model is to be asked first."""

    silence: Silence | None = None
    """Why it does not answer."""


class Heard(msgspec.Struct, frozen=True):
    """What came out for all agents that there are."""

    judged: tuple[Judged, ...]
    """Those that are mentioned first, in the order of the text; then the others, as the
    settings have them."""

    route: tuple[int, str] | None = None
    """Number of the route that fits, and whose the chat is by it."""

    @property
    def answering(self) -> tuple[str, ...]:
        """Name those that answer."""
        return tuple(each.agent for each in self.judged if each.reason is not None)

    @property
    def asking(self) -> tuple[Judged, ...]:
        """Give those of which a model is to be asked first."""
        return tuple(each for each in self.judged if each.check is not None)


class Scene:
    """A message in a group, and what all its listeners have in common.

    Args:
        inbound: what was said.
        table: who there is, and whose chats are whose.
        situation: what else is known.
    """

    def __init__(
        self,
        inbound: Inbound,
        table: RoutingTable,
        situation: Situation = NOTHING_KNOWN,
    ) -> None:
        self.inbound = inbound
        self.table = table
        self.situation = situation
        everybody = table.agents
        self.present = frozenset(
            everybody[name.casefold()]
            for name in inbound.present
            if name.casefold() in everybody
        )
        """Those of ours that are here; empty as in the message: nobody knows."""

        by_platform = (everybody.get(each.casefold()) for each in inbound.mentions)
        called = (*mentioned(inbound.text, table), *by_platform)
        self.mentioned = tuple(
            dict.fromkeys(name for name in called if name and self.is_there(name))
        )
        quoted = inbound.quoted.agent if inbound.quoted is not None else ""
        self.replied_to = everybody.get(quoted.casefold(), "")
        there = None if not inbound.present else self.present
        self.route: tuple[int, Binding] | None = fitting(inbound, table, there)
        self.author = author_of(inbound)

    def is_there(self, agent: str) -> bool:
        """Whether an agent is in the chat, as far as anybody knows."""
        return not self.inbound.present or agent in self.present

    @cached_property
    def folded(self) -> str:
        """The text, so that words are found in any case."""
        return fold(self.inbound.text)

    @cached_property
    def is_command(self) -> bool:
        """Whether the runtime answers it itself, so that nobody need be asked."""
        return not isinstance(parse_command(self.inbound.text), Words)

    def listeners(self) -> tuple[str, ...]:
        """Name all agents, those that are called first."""
        everybody = self.table.agents.values()
        return tuple(dict.fromkeys((*self.mentioned, *everybody)))


class Listener:
    """One agent that may answer.

    Args:
        agent: its name.
        scene: what it hears, and where.
    """

    __slots__ = ("agent", "group", "scene")

    def __init__(self, agent: str, scene: Scene) -> None:
        self.agent = agent
        self.scene = scene
        self.group: Group = scene.table.groups.get(agent, NO_GROUP)

    @property
    def activation(self) -> str:
        """When it answers here: as a route says, or else its own settings."""
        route = self.scene.route
        if route is not None and route[1].agent == self.agent:
            binding = route[1]
            if binding.activation != "agent":
                return binding.activation
        return self.group.config.activation

    @property
    def may_be_anybody(self) -> bool:
        """Whether words that call nobody may be for it."""
        route = self.scene.route
        return route is None or route[1].agent == self.agent

    @property
    def is_called(self) -> bool:
        """Whether it is mentioned or replied to."""
        scene = self.scene
        return self.agent in scene.mentioned or self.agent == scene.replied_to

    @property
    def yields_to(self) -> str:
        """Name an agent that is called in its stead; empty: there is none."""
        if self.is_called:
            return ""
        scene = self.scene
        others = (*scene.mentioned, scene.replied_to)
        return next((each for each in others if each and scene.is_there(each)), "")

    def holds(self, reason: Reason) -> bool:
        """Whether there is this reason to answer."""
        match reason:
            case "always":
                return self.activation == "always" and self.may_be_anybody
            case "reply":
                return self.agent == self.scene.replied_to
            case "mention":
                return self.agent in self.scene.mentioned
            case "pattern":
                words = self.group.called
                return any(holds(self.scene.folded, word) for word in words)
            case "window":
                return self.has_window
            case "broadcast" | "peer":
                return False  # these are no reasons before somebody has looked
            case _:
                assert_never(reason)

    @property
    def has_window(self) -> bool:
        """Whether it answered this person here a short time ago."""
        at = self.scene.situation.answered_at.get(self.agent)
        length = self.group.config.reply_window
        if at is None or length == 0:
            return False
        return self.scene.situation.now - at <= length * MINUTE

    def gate(self) -> Silence | None:
        """Say why nothing else is looked at; None: it is."""
        scene = self.scene
        if self.agent == scene.author:
            return "own"
        if not scene.is_there(self.agent):
            return "absent"
        if scene.inbound.is_bot:
            if self.group.config.bots == "never" or self.agent not in scene.mentioned:
                return "bot"
            if self.agent in scene.situation.barred:
                return "rounds"
        return "never" if self.activation == "never" else None

    def judge(self) -> Judged:
        """Decide."""
        silence = self.gate()
        if silence is not None:
            return Judged(self.agent, silence=silence)
        if self.scene.inbound.is_bot:
            return Judged(self.agent, "peer")
        reason = self.first_reason()
        if self.yields_to:
            return Judged(self.agent, silence="yields" if reason else "uncalled")
        return self._weigh(reason)

    def first_reason(self) -> Reason | None:
        """Give the first reason to answer that there is."""
        for reason in REASONS:
            if self.holds(reason):
                return reason
        return None

    def _weigh(self, reason: Reason | None) -> Judged:
        """Have a model asked, or take into account what it said."""
        check = self.check_for(reason)
        if check is not None:
            meant = self.scene.situation.checked.get(self.agent)
            if meant is None:
                return Judged(self.agent, check=check)
            if not meant:
                silence: Silence = "irrelevant" if reason else "uncalled"
                return Judged(self.agent, silence=silence)
            reason = reason or "broadcast"
        if reason is None:
            return Judged(self.agent, silence="uncalled")
        return Judged(self.agent, reason)

    def check_for(self, reason: Reason | None) -> CheckKind | None:
        """Say what a model is to be asked, if its settings want that."""
        config = self.group.config
        if self.scene.is_command:
            return None
        if reason == "window" and config.relevance_check:
            return "relevance"
        if reason is None and config.broadcast_check and self.may_be_anybody:
            return "broadcast"
        return None


def author_of(inbound: Inbound) -> str:
    """Name the agent of ours that wrote something; empty: none did."""
    agents = inbound.chain.agents
    writers = (
        agents[:-1] if inbound.agent and agents[-1:] == (inbound.agent,) else agents
    )
    return writers[-1] if writers else ""


def judge(
    inbound: Inbound, table: RoutingTable, situation: Situation = NOTHING_KNOWN
) -> Heard:
    """Decide for every agent whether it answers what was said in a group."""
    scene = Scene(inbound, table, situation)
    judged = tuple(Listener(name, scene).judge() for name in scene.listeners())
    route = None if scene.route is None else (scene.route[0], scene.route[1].agent)
    return Heard(judged, route)


def outcome_of(heard: Heard) -> Routed | Unrouted:
    """Say who hears it, once nobody has to be asked any more."""
    answering = heard.answering
    reasons = tuple(each.reason for each in heard.judged if each.reason is not None)
    found = ", ".join(map(": ".join, zip(answering, reasons, strict=True)))
    why = found or "none of the agents here has a reason to answer"
    verdicts = (Verdict("activation", answering, why),)
    if answering:
        return Routed(answering, "activation", verdicts, reasons)
    silences = {each.silence for each in heard.judged}
    if "rounds" in silences:
        return Unrouted("bot_rounds", BOT_ROUNDS, verdicts)
    if "bot" in silences:
        return Unrouted("bot", BOT, verdicts)
    return Unrouted("not_addressed", NOT_ADDRESSED, verdicts)
