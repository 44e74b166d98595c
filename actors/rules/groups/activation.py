"""Activation: which of the agents in a group answer a message.

Pure and total. Each agent in the chat is judged separately, by these rules in this
order, and the verdict of each rule can be explained.

1. `own`: no agent answers its own message.
2. `present`: the agent must be in the chat, if the platform reports the members.
3. `bot`: a message of another bot is answered only if `groups.bots` allows it, it
    mentions the agent, and the two have not exchanged too many messages.
4. `never`: `groups.activation` keeps the agent silent.
5. Reasons to answer, of which the first counts: `always` (unless a route gives the chat
    to another agent), `reply` to its message, `mention`, `pattern` (its
    `mention_patterns`), `window` (it answered this person here a short time ago).
6. `deference`: an agent that is neither mentioned nor replied to yields to one that is.
7. `relevance`: for the reason `window`, a model may check whether the message is meant
    for the agent. `broadcast`: without a reason, a model may check whether it is meant
    for everybody. Both only if the settings enable them. The caller runs the check. The
    bound on exchanges between bots never depends on it.

A command that names no agent, in a message that calls none, is answered once: by the
only agent there, or, if it is about no agent in particular (`/help`, `/who`), by the
agent of the matching route, else by the first one there.

If a route matches the chat, `always` and `broadcast` apply only to the agent of the
first matching route. Agents that are called answer all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal, assert_never

import msgspec

from actors.messages.commands import PlainText, parse_command
from actors.messages.inbound import Inbound
from actors.rules.groups.mentions import hailed, mentioned
from actors.rules.groups.routes import (
    NO_GROUP,
    Binding,
    GroupBehaviour,
    Routed,
    RoutingTable,
    Unrouted,
    fitting,
)
from actors.rules.text.similarity import fold, holds

Reason = Literal[
    "always", "reply", "mention", "pattern", "window", "broadcast", "peer", "command"
]
"""Why an agent answers."""

CommandScope = Literal["", "agent", "company"]
"""What a command is about that names no agent: one agent, as `/new`, or none in
particular, as `/help`. Empty: the message is no such command."""

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
    """What is known about the chat beside the message."""

    now: float = 0.0
    """Unix seconds at which the message was accepted."""

    answered_at: dict[str, float] = {}
    """Unix seconds of each agent's last answer to this sender in this chat, by name."""

    barred: frozenset[str] = frozenset()
    """Agents that must not answer this bot now; see `actors/delegation/pairs.py`."""

    checked: dict[str, bool] = {}
    """Results of the models' checks by agent: whether the message is meant for it."""

    command: CommandScope = ""


NOTHING_KNOWN = Situation()


class AgentVerdict(msgspec.Struct, frozen=True):
    """The decision about one agent; exactly one of the three fields is set."""

    agent: str
    reason: Reason | None = None
    """Why it answers."""

    check: CheckKind | None = None
    """The check that a model must do first."""

    silence: Silence | None = None
    """Why it does not answer."""


class GroupVerdict(msgspec.Struct, frozen=True):
    """The decisions about all agents."""

    judged: tuple[AgentVerdict, ...]
    """Mentioned agents first, in the order of the text, then the others in the order of
    the settings.
    """

    route: tuple[int, str] | None = None
    """Number of the matching route, and the agent to which it gives the chat."""

    @property
    def answering(self) -> tuple[str, ...]:
        """Return the names of the agents that answer."""
        return tuple(each.agent for each in self.judged if each.reason is not None)

    @property
    def asking(self) -> tuple[AgentVerdict, ...]:
        """Return the agents for which a model must check first."""
        return tuple(each for each in self.judged if each.check is not None)


class Scene:
    """A group message, and what is common to all its listeners."""

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
        called = (*mentioned(inbound.text, table.called), *by_platform)
        self.mentioned = tuple(
            dict.fromkeys(name for name in called if name and self.is_there(name))
        )
        quoted = inbound.quoted.agent if inbound.quoted is not None else ""
        self.replied_to = everybody.get(quoted.casefold(), "")
        there = None if not inbound.present else self.present
        self.route: tuple[int, Binding] | None = fitting(inbound, table, there)
        self.author = author_of(inbound)

    def is_there(self, agent: str) -> bool:
        """Return whether an agent is in the chat, as far as is known."""
        return not self.inbound.present or agent in self.present

    @cached_property
    def folded(self) -> str:
        """The case-folded text."""
        return fold(self.inbound.text)

    @cached_property
    def called_by_name(self) -> frozenset[str]:
        """The names by which it calls somebody; see `hailed`."""
        groups = self.table.groups.values()
        names = {name for each in groups for name in each.own_names}
        return hailed(self.folded, names)

    @cached_property
    def is_command(self) -> bool:
        """Whether it is a command, which the runtime answers itself."""
        return not isinstance(parse_command(self.inbound.text), PlainText)

    def listeners(self) -> tuple[str, ...]:
        """Return the names of all agents, called ones first."""
        everybody = self.table.agents.values()
        return tuple(dict.fromkeys((*self.mentioned, *everybody)))


class GroupListener:
    """One agent that may answer."""

    __slots__ = ("agent", "group", "scene")

    def __init__(self, agent: str, scene: Scene) -> None:
        self.agent = agent
        self.scene = scene
        self.group: GroupBehaviour = scene.table.groups.get(agent, NO_GROUP)

    @property
    def activation(self) -> str:
        """Its activation in this chat, from a route or else from its own settings."""
        route = self.scene.route
        if route is not None and route[1].agent == self.agent:
            binding = route[1]
            if binding.activation != "agent":
                return binding.activation
        return self.group.config.activation

    @property
    def may_be_anybody(self) -> bool:
        """Whether a message that calls nobody may be for it."""
        route = self.scene.route
        return route is None or route[1].agent == self.agent

    @property
    def is_called(self) -> bool:
        """Whether the message mentions it or replies to it."""
        scene = self.scene
        return self.agent in scene.mentioned or self.agent == scene.replied_to

    @property
    def yields_to(self) -> str:
        """Return an agent that is called instead; empty if there is none."""
        if self.is_called:
            return ""
        scene = self.scene
        others = (*scene.mentioned, scene.replied_to)
        return next((each for each in others if each and scene.is_there(each)), "")

    def holds(self, reason: Reason) -> bool:
        """Return whether this reason to answer holds."""
        match reason:
            case "always":
                return self.activation == "always" and self.may_be_anybody
            case "reply":
                return self.agent == self.scene.replied_to
            case "mention":
                return self.agent in self.scene.mentioned
            case "pattern":
                words, text = self.group.called, self.scene.folded
                is_hailed = not self.scene.called_by_name.isdisjoint(
                    self.group.own_names
                )
                return is_hailed or any(holds(text, word) for word in words)
            case "window":
                return self.has_window
            case "broadcast" | "peer" | "command":
                return False  # these are reasons for other rules
            case _:
                assert_never(reason)

    @property
    def has_window(self) -> bool:
        """Return whether it answered this person here a short time ago."""
        at = self.scene.situation.answered_at.get(self.agent)
        length = self.group.config.reply_window
        if at is None or length == 0:
            return False
        # Also not longer ago by a clock that was ahead then.
        return abs(self.scene.situation.now - at) <= length * MINUTE

    def gate(self) -> Silence | None:
        """Return why the agent must stay silent; None if it may answer."""
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

    def judge(self) -> AgentVerdict:
        """Decide."""
        silence = self.gate()
        if silence is not None:
            return AgentVerdict(self.agent, silence=silence)
        if self.scene.inbound.is_bot:
            return AgentVerdict(self.agent, "peer")
        reason = self.first_reason()
        if self.yields_to:
            return AgentVerdict(self.agent, silence="yields" if reason else "uncalled")
        return self._weigh(reason)

    def first_reason(self) -> Reason | None:
        """Return the first reason to answer."""
        for reason in REASONS:
            if self.holds(reason):
                return reason
        return None

    def _weigh(self, reason: Reason | None) -> AgentVerdict:
        """Request a model's check, or apply its result."""
        check = self.check_for(reason)
        if check is not None:
            meant = self.scene.situation.checked.get(self.agent)
            if meant is None:
                return AgentVerdict(self.agent, check=check)
            if not meant:
                silence: Silence = "irrelevant" if reason else "uncalled"
                return AgentVerdict(self.agent, silence=silence)
            reason = reason or "broadcast"
        if reason is None:
            return AgentVerdict(self.agent, silence="uncalled")
        return AgentVerdict(self.agent, reason)

    def check_for(self, reason: Reason | None) -> CheckKind | None:
        """Return the check that a model should do, if the settings enable it."""
        config = self.group.config
        if self.scene.is_command:
            return None
        if reason == "window" and config.relevance_check:
            return "relevance"
        if reason is None and config.broadcast_check and self.may_be_anybody:
            return "broadcast"
        return None


def author_of(inbound: Inbound) -> str:
    """Return the name of our agent that wrote a message; empty if none did."""
    agents = inbound.chain.agents
    writers = (
        agents[:-1] if inbound.agent and agents[-1:] == (inbound.agent,) else agents
    )
    return writers[-1] if writers else ""


def speaker_of(listeners: Sequence[GroupListener], scene: Scene) -> str:
    """Name the agent that answers a command for all; empty: it is no such command."""
    scope = scene.situation.command
    if not scope or scene.mentioned or scene.replied_to:
        return ""
    able = [each.agent for each in listeners if each.gate() is None]
    if scope == "agent" and len([x for x in listeners if scene.is_there(x.agent)]) > 1:
        return ""
    whose = "" if scene.route is None else scene.route[1].agent
    return whose if whose in able else next(iter(able), "")


def judge(
    inbound: Inbound, table: RoutingTable, situation: Situation = NOTHING_KNOWN
) -> GroupVerdict:
    """Decide for every agent whether it answers a group message."""
    scene = Scene(inbound, table, situation)
    listeners = [GroupListener(name, scene) for name in scene.listeners()]
    speaker = speaker_of(listeners, scene)
    judged = tuple(
        each.judge()
        if not speaker
        else AgentVerdict(each.agent, "command")
        if each.agent == speaker
        else AgentVerdict(each.agent, silence=each.gate() or "uncalled")
        for each in listeners
    )
    route = None if scene.route is None else (scene.route[0], scene.route[1].agent)
    return GroupVerdict(judged, route)


def outcome_of(heard: GroupVerdict) -> Routed | Unrouted:
    """Return who hears the message, once all checks are done."""
    answering = heard.answering
    reasons = tuple(each.reason for each in heard.judged if each.reason is not None)
    if answering:
        return Routed(answering, "activation", reasons)
    silences = {each.silence for each in heard.judged}
    if "rounds" in silences:
        return Unrouted("bot_rounds", BOT_ROUNDS)
    if "bot" in silences:
        return Unrouted("bot", BOT)
    return Unrouted("not_addressed", NOT_ADDRESSED)
