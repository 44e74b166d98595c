"""Whose chats are whose, and who hears what is said to one agent.

Pure and total: every message gets exactly one outcome, and every outcome carries
the verdict of each rule, so that it can be explained later. The rules in order:

1. `addressed`: the edge named an agent (`model` over HTTP).
2. `delegated`: an agent asked another; the chain's last name is the one asked.
3. `mention`: `@name` of known agents, in the order of the text, or `/command@name`.
4. `binding`: the first binding of the settings that fits connector, chat, kind of chat
   and the sender's roles.
5. `default`: the default agent, in direct chats only.

In a group only the first two decide. Of everything else the bindings say whose the chat
is, and `activation.py` asks each agent there by itself whether it answers: routes
choose the candidates, activation decides (F038, F042).
"""

from __future__ import annotations

import re
from fnmatch import translate
from typing import TYPE_CHECKING, Literal

import msgspec

from actors.group_config import GroupConfig, RouteActivation
from actors.rules.classify import fold
from actors.rules.near import did_you_mean, near_misses

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from actors.config import RouteConfig
    from actors.messages import Inbound

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

# A name begins after anything but a word's character, so that the @ of a mail
# address is no mention, and ends where letters, digits, _ and - end.
_MENTION = re.compile(r"(?<!\w)@([\w-]+)")

# As Telegram's clients write a command for one of several bots: `/help@anna`.
_COMMANDED = re.compile(r"/[A-Za-z][\w-]*@([\w-]+)(?=\s|\Z)")


class Binding(msgspec.Struct, frozen=True):
    """One line of the settings: what comes from here goes to this agent."""

    agent: str
    connector: str = "*"
    """Glob over the connector's name, case-sensitive."""

    chat: str = "*"
    """Glob over the platform's id of the chat, case-sensitive."""

    kind: Literal["any", "direct", "group"] = "any"
    """Which chats it is for."""

    roles: tuple[str, ...] = ()
    """What the sender must be there, one of these; empty: anything."""

    activation: RouteActivation = "agent"
    """When the agent answers in such a group; `agent`: as it does elsewhere."""


class CompiledBinding(msgspec.Struct, frozen=True):
    """A binding ready for matching."""

    binding: Binding
    connector: re.Pattern[str]
    chat: re.Pattern[str]


class Group(msgspec.Struct, frozen=True):
    """How one agent behaves in groups; made by `group_of`."""

    config: GroupConfig = GroupConfig()
    about: str = ""
    """One line: what to come to it for."""

    called: tuple[str, ...] = ()
    """Its mention patterns, folded."""


NO_GROUP = Group()


class RoutingTable(msgspec.Struct, frozen=True):
    """All that routing depends on; made by `routing_table`."""

    agents: dict[str, str]
    """Name by case-folded name. Not to be changed."""

    bindings: tuple[CompiledBinding, ...] = ()
    default_agent: str = ""
    """Answers direct chats that no other rule takes; empty: nobody does."""

    groups: dict[str, Group] = {}
    """By the agent's name; one that is missing behaves as by default. Not to be
    changed."""


class Verdict(msgspec.Struct, frozen=True):
    """What one rule said about a message."""

    rule: RuleName
    agents: tuple[str, ...]
    """Whom the rule would choose; empty: it does not apply."""

    why: str


class Routed(msgspec.Struct, frozen=True):
    """These agents hear the message."""

    agents: tuple[str, ...]
    """At least one; each once."""

    rule: RuleName
    verdicts: tuple[Verdict, ...]
    reasons: tuple[str, ...] = ()
    """Why, for each of them, if activation decided."""


class Unrouted(msgspec.Struct, frozen=True):
    """Nobody hears the message."""

    reason: Reason
    text: str
    """For whoever sent it, should they be told."""

    verdicts: tuple[Verdict, ...]
    near: tuple[str, ...] = ()
    """Known agents whose names resemble the one asked for."""


Outcome = Routed | Unrouted


def binding_of(route: RouteConfig) -> Binding:
    """Take a route as the settings have it."""
    return Binding(
        agent=route.agent,
        connector=route.connector,
        chat=route.chat,
        kind=route.kind,
        roles=route.roles,
        activation=route.activation,
    )


def group_of(config: GroupConfig, about: str = "") -> Group:
    """Make ready how an agent behaves in groups."""
    return Group(config, about, tuple(fold(each) for each in config.mention_patterns))


def with_groups(table: RoutingTable, groups: Mapping[str, Group]) -> RoutingTable:
    """Give a table that knows how its agents behave in groups."""
    return msgspec.structs.replace(table, groups=dict(groups))


def routing_table(
    agents: Iterable[str], bindings: Iterable[Binding] = (), default_agent: str = ""
) -> RoutingTable:
    """Make the table of a set of agents.

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
    return RoutingTable(by_name, compiled, default_agent)


def is_for_activation(inbound: Inbound) -> bool:
    """Whether several may hear it, each by a reason of its own."""
    return not (inbound.is_direct or inbound.agent or inbound.chain.agents)


def route(inbound: Inbound, table: RoutingTable) -> Outcome:
    """Decide who hears a message that is for one agent, or in a direct chat."""
    delegate = inbound.chain.agents[-1] if inbound.chain.agents else ""
    target = inbound.agent or delegate
    verdicts = (
        _by_name("addressed", inbound.agent, table),
        _by_name("delegated", delegate, table),
        _by_mention(inbound.text, table),
        _by_binding(inbound, table),
        _by_default(inbound, table),
    )
    # Why: a message sent to a name must never reach somebody else instead.
    asked = verdicts[:1] if inbound.agent else verdicts[:2] if target else verdicts
    for verdict in asked:
        if verdict.agents:
            return Routed(verdict.agents, verdict.rule, verdicts)
    if target:
        near = near_misses(target, table.agents.values())
        return Unrouted("unknown_agent", _unknown(target, near), verdicts, near)
    if inbound.is_direct:
        text = "No agent answers here: no route fits and there is no default agent."
        return Unrouted("no_default_agent", text, verdicts)
    text = "No agent is mentioned and no route fits this group."
    return Unrouted("not_addressed", text, verdicts)


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
) -> Verdict:
    if not name:
        return Verdict(rule, (), "no agent is named")
    agent = table.agents.get(name.casefold())
    if agent is None:
        return Verdict(rule, (), f"there is no agent {name!r}")
    return Verdict(rule, (agent,), f"{agent!r} is named")


def mentioned(text: str, table: RoutingTable) -> tuple[str, ...]:
    """Name the known agents that a text mentions, in its order, each once."""
    found: dict[str, None] = {}
    if "@" not in text:
        return ()
    commanded = _COMMANDED.match(text)
    for match in [commanded] if commanded else _MENTION.finditer(text):
        word = match[1].casefold()
        # A dash after a name ends a clause more often than it belongs to a name.
        agent = table.agents.get(word) or table.agents.get(word.rstrip("-"))
        if agent is not None:
            found[agent] = None
    return tuple(found)


def _by_mention(text: str, table: RoutingTable) -> Verdict:
    agents = mentioned(text, table)
    why = f"mentions {', '.join(agents)}" if agents else "mentions no known agent"
    return Verdict("mention", agents, why)


def fitting(
    inbound: Inbound, table: RoutingTable, there: Iterable[str] | None = None
) -> tuple[int, Binding] | None:
    """Give the first route that fits a message, with its number from 1.

    Args:
        inbound: the message.
        table: its routes.
        there: only routes to these agents; None: to any.
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
    """Tell whether a route is for such a chat, and for such a sender."""
    if binding.kind != "any" and (binding.kind == "direct") != inbound.is_direct:
        return False
    return not binding.roles or not set(binding.roles).isdisjoint(inbound.roles)


def told_of(number: int, binding: Binding) -> str:
    """Name a route for people."""
    return f"route {number} fits ({binding.connector}, {binding.chat})"


def _by_binding(inbound: Inbound, table: RoutingTable) -> Verdict:
    found = fitting(inbound, table)
    if found is not None:
        return Verdict("binding", (found[1].agent,), told_of(*found))
    return Verdict("binding", (), f"none of {len(table.bindings)} routes fits")


def _by_default(inbound: Inbound, table: RoutingTable) -> Verdict:
    if not inbound.is_direct:
        return Verdict("default", (), "only for direct chats")
    if not table.default_agent:
        return Verdict("default", (), "there is no default agent")
    return Verdict("default", (table.default_agent,), "direct chat")
