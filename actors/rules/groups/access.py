"""Access rules: which people may use which agents. Pure.

Applied after routing. Owners and generated messages (heartbeats) may use all agents.
For everybody else the first matching rule decides; without a match access is granted.
An agent that asks another agent on behalf of a person has that person's rights, so
nobody reaches a forbidden agent through another one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from actors.config.access import AgentAccessConfig
from actors.messages.inbound import Inbound
from actors.messages.keys import account_of
from actors.rules.groups.routes import Outcome, Routed, Unrouted
from actors.rules.text.globs import Globs, globs

TEXT = "You may not use {agents} here. Please ask whoever runs this."


class AccessRule(msgspec.Struct, frozen=True):
    """One access rule of the settings, compiled."""

    may_use: bool
    agent: Globs
    connector: Globs
    chat: Globs
    sender: Globs
    role: Globs
    is_for_all_roles: bool

    def fits(self, agent: str, inbound: Inbound) -> bool:
        """Return whether the rule matches an agent, and a message's sender and chat."""
        address = inbound.address
        return bool(
            self.agent.fit(agent)
            and self.connector.fit(address.connector)
            and self.chat.fit(address.chat)
            and self.sender.fit(inbound.sender_id)
            and (self.is_for_all_roles or any(map(self.role.fit, inbound.roles)))
        )


class AgentAccess(msgspec.Struct, frozen=True):
    """All access rules; made by `agent_access`."""

    rules: tuple[AccessRule, ...] = ()
    owners: frozenset[str] = frozenset()
    """Each as `connector/sender_id`."""


EVERYBODY = AgentAccess()


class AccessDecision(msgspec.Struct, frozen=True):
    """Whether a person may use an agent, and why."""

    may: bool
    why: str


def agent_access(
    rules: Iterable[AgentAccessConfig], owners: Collection[str]
) -> AgentAccess:
    """Compile the access rules of the settings.

    Args:
        rules: in the order of the settings.
        owners: accounts of the owners, each as `connector/sender_id`.
    """
    return AgentAccess(tuple(map(_compile, rules)), frozenset(owners))


def may_use(agent: str, inbound: Inbound, access: AgentAccess) -> AccessDecision:
    """Decide whether the sender of a message may use an agent."""
    if inbound.occasion and not inbound.sender_id:
        return AccessDecision(may=True, why="nobody wrote it")
    if inbound.occasion == "webhook":
        return AccessDecision(may=True, why="the webhook's own settings name it")
    if account_of(inbound) in access.owners:
        return AccessDecision(may=True, why="an owner")
    for number, rule in enumerate(access.rules, start=1):
        if rule.fits(agent, inbound):
            return AccessDecision(rule.may_use, f"access rule {number} fits")
    return AccessDecision(
        may=True, why=f"none of {len(access.rules)} access rules fits"
    )


def permitted(outcome: Outcome, inbound: Inbound, access: AgentAccess) -> Outcome:
    """Remove the agents that the sender of a message may not use.

    Returns:
        The remaining agents; `not_permitted` if none remain.
    """
    if not access.rules or not isinstance(outcome, Routed):
        return outcome
    left = tuple(x for x in outcome.agents if may_use(x, inbound, access).may)
    if left:
        return msgspec.structs.replace(outcome, agents=left)
    text = TEXT.format(agents=", ".join(outcome.agents))
    return Unrouted("not_permitted", text)


def _compile(rule: AgentAccessConfig) -> AccessRule:
    return AccessRule(
        rule.may_use,
        agent=globs((rule.agent,)),
        connector=globs((rule.connector,)),
        chat=globs((rule.chat,)),
        sender=globs((rule.sender,)),
        role=globs((rule.role,)),
        is_for_all_roles=rule.role == "*",
    )
