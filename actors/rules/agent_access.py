"""Who may use which agent, after routing has found whom a message is for (F040); pure.

Owners may use all; so may what nobody wrote (a heartbeat). For everybody else the
first rule that fits counts, and without one they may. Whom an agent asks on behalf of
a person it asks as that person: nobody reaches through one agent another that they may
not use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules.approvals import person
from actors.rules.globs import Globs, globs
from actors.rules.routes import Routed, Unrouted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from actors.access_config import AgentAccessConfig
    from actors.messages import Inbound
    from actors.rules.routes import Outcome

TEXT = "You may not use {agents} here. Please ask whoever runs this."


class Rule(msgspec.Struct, frozen=True):
    """One rule of the settings, ready for matching."""

    may_use: bool
    agent: Globs
    connector: Globs
    chat: Globs
    sender: Globs
    role: Globs
    is_for_all_roles: bool

    def fits(self, agent: str, inbound: Inbound) -> bool:
        """Whether it is about this person, there, and that agent."""
        address = inbound.address
        return bool(
            self.agent.fit(agent)
            and self.connector.fit(address.connector)
            and self.chat.fit(address.chat)
            and self.sender.fit(inbound.sender_id)
            and (self.is_for_all_roles or any(map(self.role.fit, inbound.roles)))
        )


class AgentAccess(msgspec.Struct, frozen=True):
    """All rules; made by `agent_access`."""

    rules: tuple[Rule, ...] = ()
    owners: frozenset[str] = frozenset()
    """Each as `connector/sender_id`."""


EVERYBODY = AgentAccess()


class Use(msgspec.Struct, frozen=True):
    """Whether somebody may use an agent, and why."""

    may: bool
    why: str


def agent_access(
    rules: Iterable[AgentAccessConfig], owners: Collection[str]
) -> AgentAccess:
    """Make the rules of the settings ready for matching.

    Args:
        rules: in their order.
        owners: who runs this company, each as `connector/sender_id`.
    """
    return AgentAccess(tuple(map(_compile, rules)), frozenset(owners))


def may_use(agent: str, inbound: Inbound, access: AgentAccess) -> Use:
    """Decide whether whoever wrote a message may use an agent."""
    if inbound.occasion and not inbound.sender_id:
        return Use(may=True, why="nobody wrote it")
    if inbound.occasion == "webhook":
        return Use(may=True, why="the webhook's own settings name it")
    if person(inbound) in access.owners:
        return Use(may=True, why="an owner")
    for number, rule in enumerate(access.rules, start=1):
        if rule.fits(agent, inbound):
            return Use(rule.may_use, f"access rule {number} fits")
    return Use(may=True, why=f"none of {len(access.rules)} access rules fits")


def permitted(outcome: Outcome, inbound: Inbound, access: AgentAccess) -> Outcome:
    """Leave out the agents that whoever wrote a message may not use.

    Returns:
        What is left; `not_permitted` if nobody is.
    """
    if not access.rules or not isinstance(outcome, Routed):
        return outcome
    left = tuple(x for x in outcome.agents if may_use(x, inbound, access).may)
    if left:
        return msgspec.structs.replace(outcome, agents=left)
    text = TEXT.format(agents=", ".join(outcome.agents))
    return Unrouted("not_permitted", text, outcome.verdicts)


def _compile(rule: AgentAccessConfig) -> Rule:
    return Rule(
        rule.may_use,
        agent=globs((rule.agent,)),
        connector=globs((rule.connector,)),
        chat=globs((rule.chat,)),
        sender=globs((rule.sender,)),
        role=globs((rule.role,)),
        is_for_all_roles=rule.role == "*",
    )
