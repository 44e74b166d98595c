"""Routes: which agent a chat belongs to, and who hears a message to one agent.

Pure and total: every message gets exactly one outcome. `verdicts` explains it: what
each rule says, also those after the one that decides. The rules in order:

1. `addressed`: the connector named an agent (`model` over HTTP).
2. `delegated`: an agent asked another one, the last name of the chain.
3. `mention`: `@name` of known agents, in the order of the text, or `/command@name`.
4. `binding`: the first binding of the settings that fits connector, chat, kind of chat
   and the sender's roles.
5. `default`: the default agent, in direct chats only.

In a group only the first two decide. Otherwise the bindings say to which agent the chat
belongs, and `activation.py` decides for each agent there whether it answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import translate
from itertools import islice
from typing import Literal

import msgspec

from actors.config.routes import GroupConfig, RouteActivation, RouteConfig
from actors.messages.inbound import Inbound
from actors.rules.groups.mentions import mentioned
from actors.rules.text.similarity import did_you_mean, fold, near_misses

RuleName = Literal[
    "addressed", "delegated", "mention", "binding", "default", "activation"
]
Reason = Literal[
    "unknown_agent",
    "not_addressed",
    "no_default_agent",
    "not_permitted",
    "bot",
    "bot_rounds",
]


class Binding(msgspec.Struct, frozen=True):
    """One route of the settings: messages from matching chats go to this agent."""

    agent: str
    connector: str = "*"
    """Glob over the connector's name, case-sensitive."""

    chat: str = "*"
    """Glob over the platform's id of the chat, case-sensitive."""

    kind: Literal["any", "direct", "group"] = "any"
    """Kind of chats that it matches."""

    roles: tuple[str, ...] = ()
    """The sender must have one of these roles; empty matches every sender."""

    activation: RouteActivation = "agent"
    """Activation of the agent in such a group; `agent`: as in its own settings."""


class CompiledBinding(msgspec.Struct, frozen=True):
    """A binding with compiled patterns."""

    binding: Binding
    connector: re.Pattern[str]
    chat: re.Pattern[str]


class GroupBehaviour(msgspec.Struct, frozen=True):
    """Group settings of one agent; made by `group_of`."""

    config: GroupConfig = GroupConfig()
    about: str = ""
    """One line that says what the agent is for."""

    called: tuple[str, ...] = ()
    """Its mention patterns, case-folded."""

    own_names: tuple[str, ...] = ()
    """Its name and its display name, case-folded, if they call it."""

    shown: str = ""
    """Its display name; empty: its name."""


NO_GROUP = GroupBehaviour()


class RoutingTable(msgspec.Struct, frozen=True):
    """Everything that routing depends on; made by `routing_table`."""

    agents: dict[str, str]
    """Names by case-folded name. Must not be changed."""

    bindings: tuple[CompiledBinding, ...] = ()
    default_agent: str = ""
    """Agent for direct chats that no other rule takes; empty for none."""

    groups: dict[str, GroupBehaviour] = {}
    """Group settings by agent name; a missing agent has the defaults. Must not be
    changed.
    """

    called: dict[str, str] = {}
    """Names by all that people call agents, case-folded. Must not be changed."""

    def shown(self, agent: str) -> str:
        """Return what people and clients call an agent; of nobody, the text itself."""
        return self.groups.get(agent, NO_GROUP).shown or agent


class RuleVerdict(msgspec.Struct, frozen=True):
    """Verdict of one rule about a message."""

    rule: RuleName
    agents: tuple[str, ...]
    """The agents that the rule chooses; empty if it does not apply."""

    why: str


class Routed(msgspec.Struct, frozen=True):
    """The message goes to these agents."""

    agents: tuple[str, ...]
    """At least one agent; each once."""

    rule: RuleName
    reasons: tuple[str, ...] = ()
    """Reason for each agent, if activation decided."""


class Unrouted(msgspec.Struct, frozen=True):
    """The message goes to no agent."""

    reason: Reason
    text: str
    """Explanation for the sender, if the sender gets one."""

    near: tuple[str, ...] = ()
    """Known agents with names similar to the requested one."""


Outcome = Routed | Unrouted


def binding_of(route: RouteConfig) -> Binding:
    """Make a binding of a route in the settings."""
    return Binding(
        agent=route.agent,
        connector=route.connector,
        chat=route.chat,
        kind=route.kind,
        roles=route.roles,
        activation=route.activation,
    )


def group_of(
    config: GroupConfig, about: str = "", name: str = "", shown: str = ""
) -> GroupBehaviour:
    """Compile the group settings of an agent."""
    names = [each for each in (name, shown) if each and config.own_name]
    return GroupBehaviour(
        config,
        about,
        tuple(fold(each) for each in config.mention_patterns),
        tuple(dict.fromkeys(map(fold, names))),
        shown,
    )


def with_groups(
    table: RoutingTable, groups: Mapping[str, GroupBehaviour]
) -> RoutingTable:
    """Return the table with the group settings of its agents."""
    shown = {fold(x.shown): name for name, x in groups.items() if x.shown}
    called = shown | table.agents
    return msgspec.structs.replace(table, groups=dict(groups), called=called)


def routing_table(
    agents: Iterable[str], bindings: Iterable[Binding] = (), default_agent: str = ""
) -> RoutingTable:
    """Make the routing table of a set of agents.

    Raises:
        ValueError: an agent's name is empty, two differ only in upper and lower
            case, or a binding or the default names an agent that does not exist.
    """
    by_name: dict[str, str] = {}
    for name in agents:
        if not name:
            raise ValueError("an agent needs a name; this one is empty")
        if by_name.setdefault(name.casefold(), name) != name:
            raise ValueError(f"agents {by_name[name.casefold()]!r} and {name!r} clash")
    compiled = tuple(map(_compile, bindings))
    named = [each.binding.agent for each in compiled]
    for name in [*named, default_agent] if default_agent else named:
        if name not in by_name.values():
            raise ValueError(_unknown(name, near_misses(name, by_name.values())))
    return RoutingTable(by_name, compiled, default_agent, called=by_name)


def is_for_activation(inbound: Inbound) -> bool:
    """Return whether activation decides, so that several agents may hear it."""
    return not (inbound.is_direct or inbound.agent or inbound.chain.agents)


def verdicts(inbound: Inbound, table: RoutingTable) -> Iterator[RuleVerdict]:
    """Give the verdict of each rule, in the order in which they decide."""
    yield _by_name("addressed", inbound.agent, table)
    yield _by_name("delegated", _delegate(inbound), table)
    yield _by_mention(inbound.text, table)
    yield _by_binding(inbound, table)
    yield _by_default(inbound, table)


def route(inbound: Inbound, table: RoutingTable) -> Outcome:
    """Decide who hears a message to one agent or in a direct chat."""
    target = inbound.agent or _delegate(inbound)
    # Why: a message to a named agent must never reach another one instead.
    most = 1 if inbound.agent else 2 if target else None
    for verdict in islice(verdicts(inbound, table), most):
        if verdict.agents:
            return Routed(verdict.agents, verdict.rule)
    if target:
        near = near_misses(target, table.agents.values())
        return Unrouted("unknown_agent", _unknown(target, near), near)
    if inbound.is_direct:
        text = "No agent answers here: no route fits and there is no default agent."
        return Unrouted("no_default_agent", text)
    text = "No agent is mentioned and no route fits this group."
    return Unrouted("not_addressed", text)


def _delegate(inbound: Inbound) -> str:
    """Name the agent that a message was handed on to; empty: it was not."""
    return inbound.chain.agents[-1] if inbound.chain.agents else ""


def _compile(binding: Binding) -> CompiledBinding:
    return CompiledBinding(
        binding,
        re.compile(translate(binding.connector)),
        re.compile(translate(binding.chat)),
    )


def _unknown(name: str, near: tuple[str, ...]) -> str:
    return f"There is no agent {name!r}.{did_you_mean(near)}"


def _by_name(
    rule: Literal["addressed", "delegated"], name: str, table: RoutingTable
) -> RuleVerdict:
    if not name:
        return RuleVerdict(rule, (), "no agent is named")
    called = table.called
    agent = called.get(name.casefold()) or called.get(fold(name))
    if agent is None:
        return RuleVerdict(rule, (), f"there is no agent {name!r}")
    return RuleVerdict(rule, (agent,), f"{agent!r} is named")


def _by_mention(text: str, table: RoutingTable) -> RuleVerdict:
    agents = mentioned(text, table.called)
    why = f"mentions {', '.join(agents)}" if agents else "mentions no known agent"
    return RuleVerdict("mention", agents, why)


def fitting(
    inbound: Inbound, table: RoutingTable, there: Iterable[str] | None = None
) -> tuple[int, Binding] | None:
    """Return the first matching route with its number, from 1.

    Args:
        there: only routes to these agents; None for all.
    """
    address = inbound.address
    for number, rule in enumerate(table.bindings, start=1):
        binding = rule.binding
        is_there = there is None or binding.agent in there
        if (
            is_there
            and rule.connector.match(address.connector)
            and rule.chat.match(address.chat)
            and _fits_people(binding, inbound)
        ):
            return number, binding
    return None


def _fits_people(binding: Binding, inbound: Inbound) -> bool:
    """Return whether a route matches the kind of chat and the sender."""
    if binding.kind != "any" and (binding.kind == "direct") != inbound.is_direct:
        return False
    return not binding.roles or not set(binding.roles).isdisjoint(inbound.roles)


def told_of(number: int, binding: Binding) -> str:
    """Describe a route for people."""
    return f"route {number} fits ({binding.connector}, {binding.chat})"


def _by_binding(inbound: Inbound, table: RoutingTable) -> RuleVerdict:
    found = fitting(inbound, table)
    if found is not None:
        return RuleVerdict("binding", (found[1].agent,), told_of(*found))
    return RuleVerdict("binding", (), f"none of {len(table.bindings)} routes fits")


def _by_default(inbound: Inbound, table: RoutingTable) -> RuleVerdict:
    if not inbound.is_direct:
        return RuleVerdict("default", (), "only for direct chats")
    if not table.default_agent:
        return RuleVerdict("default", (), "there is no default agent")
    return RuleVerdict("default", (table.default_agent,), "direct chat")
