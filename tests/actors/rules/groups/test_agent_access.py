"""Proves that people reach the agents that they may use, and by no other way."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from actors.config.access import AgentAccessConfig
from actors.messages.inbound import Address, DelegationChain, Inbound
from actors.rules.groups.access import agent_access, may_use, permitted
from actors.rules.groups.routes import Routed, Unrouted, route, routing_table

TABLE = routing_table(("anna", "ops"), default_agent="anna")
WORDS = st.sampled_from(["*", "anna", "ops", "chat", "room", "sam", "admin"])
RULES = st.lists(
    st.builds(
        AgentAccessConfig,
        may_use=st.booleans(),
        agent=WORDS,
        connector=WORDS,
        chat=WORDS,
        sender=WORDS,
        role=WORDS,
    ),
    max_size=4,
)


def message(text: str = "hi", **fields: Any) -> Inbound:
    given_: dict[str, Any] = {
        "id": "m1",
        "platform": "fake",
        "platform_id": "p1",
        "address": Address("chat", "room"),
        "sender_id": "sam",
        "sender_name": "Sam",
        "text": text,
        "received_at": 1.0,
    }
    return Inbound(**{**given_, **fields})


def fits(rule: AgentAccessConfig, agent: str, inbound: Inbound) -> bool:
    """Say the same by hand."""
    pairs = (
        (rule.agent, agent),
        (rule.connector, "chat"),
        (rule.chat, "room"),
        (rule.sender, inbound.sender_id),
    )
    is_role = rule.role == "*" or rule.role in inbound.roles
    return is_role and all(pattern in ("*", text) for pattern, text in pairs)


@given(rules=RULES, agent=st.sampled_from(["anna", "ops"]), is_admin=st.booleans())
def test_the_first_rule_that_fits_counts(
    rules: list[AgentAccessConfig], agent: str, *, is_admin: bool
) -> None:
    inbound = message(roles=("admin",) if is_admin else ())
    fitting = [rule.may_use for rule in rules if fits(rule, agent, inbound)]
    use = may_use(agent, inbound, agent_access(rules, ()))
    assert use.may == (fitting[0] if fitting else True)
    assert use.why


@given(RULES)
def test_owners_may_use_all(rules: list[AgentAccessConfig]) -> None:
    access = agent_access(rules, ("chat/sam",))
    assert may_use("ops", message(), access).may


def test_who_may_use_one_of_two_is_heard_by_that_one() -> None:
    access = agent_access([AgentAccessConfig(may_use=False, agent="ops")], ())
    found = permitted(
        route(message("@anna @ops hi"), TABLE), message("@anna @ops hi"), access
    )
    assert isinstance(found, Routed)
    assert found.agents == ("anna",)
    alone = permitted(route(message("@ops hi"), TABLE), message("@ops hi"), access)
    assert isinstance(alone, Unrouted)
    assert alone.reason == "not_permitted"
    assert "ops" in alone.text


def test_no_agent_is_a_way_round_to_another() -> None:
    access = agent_access([AgentAccessConfig(may_use=False, agent="ops")], ())
    handed_on = message(agent="ops", chain=DelegationChain(agents=("anna", "ops")))
    found = permitted(route(handed_on, TABLE), handed_on, access)
    assert isinstance(found, Unrouted)


def test_what_nobody_wrote_is_let_through() -> None:
    access = agent_access([AgentAccessConfig(may_use=False)], ())
    assert may_use("ops", message(sender_id="", occasion="heartbeat"), access).may
    assert not may_use("ops", message(occasion="task"), access).may


def test_a_role_lets_in_whom_the_next_rule_shuts_out() -> None:
    rules = [
        AgentAccessConfig(may_use=True, agent="ops", role="adm*"),
        AgentAccessConfig(may_use=False, agent="ops"),
    ]
    access = agent_access(rules, ())
    assert may_use("ops", message(roles=("admin",)), access).may
    assert not may_use("ops", message(), access).may
    assert may_use("anna", message(), access).may
