"""Proves that every message gets exactly one outcome, by the first rule that fits."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.messages.inbound import Address, DelegationChain, Inbound
from actors.rules.groups.routes import (
    Binding,
    Outcome,
    Routed,
    RoutingTable,
    RuleName,
    Unrouted,
    route,
    routing_table,
    verdicts,
)

AGENTS = ("anna", "ben", "Carl-2", "under_score")
TABLE = routing_table(
    AGENTS,
    [Binding("ben", chat="ops-*"), Binding("Carl-2", "http", "*")],
    default_agent="anna",
)
ORDER: tuple[RuleName, ...] = (
    "addressed",
    "delegated",
    "mention",
    "binding",
    "default",
)


def heard(
    text: str = "hi",
    *,
    agent: str = "",
    chain: tuple[str, ...] = (),
    connector: str = "terminal",
    chat: str = "c",
    is_direct: bool = True,
) -> Inbound:
    return Inbound(
        id="1",
        correlation_id="1",
        platform="test",
        platform_id="1",
        address=Address(connector, chat),
        sender_id="u",
        sender_name="Uma",
        text=text,
        received_at=0,
        is_direct=is_direct,
        agent=agent,
        chain=DelegationChain(chain),
    )


names = st.sampled_from(["", "anna", "BEN", "carl-2", "nobody", "@anna"]) | st.text()
messages = st.builds(
    heard,
    text=st.lists(names.map("@{}".format) | st.text(), max_size=4).map(" ".join),
    agent=names,
    chain=st.lists(names, max_size=3).map(tuple),
    connector=st.sampled_from(["http", "terminal"]),
    chat=st.sampled_from(["ops-1", "c"]) | st.text(),
    is_direct=st.booleans(),
)
tables = st.sampled_from([TABLE, routing_table(AGENTS), routing_table(())])


@given(messages, tables)
def test_every_message_gets_one_outcome_with_each_rules_verdict(
    inbound: Inbound, table: RoutingTable
) -> None:
    outcome: Outcome = route(inbound, table)
    found = tuple(verdicts(inbound, table))
    assert tuple(verdict.rule for verdict in found) == ORDER
    assert all(verdict.why for verdict in found)
    match outcome:
        case Routed(agents=agents, rule=rule):
            chosen = next(each for each in found if each.rule == rule)
            assert agents == chosen.agents
            assert agents
            assert len(set(agents)) == len(agents)
            assert set(agents) <= set(table.agents.values())
        case Unrouted(text=text):
            assert text


@given(messages, tables)
def test_a_message_to_a_name_never_reaches_somebody_else(
    inbound: Inbound, table: RoutingTable
) -> None:
    target = inbound.agent or (inbound.chain.agents or ("",))[-1]
    outcome = route(inbound, table)
    if target and isinstance(outcome, Routed):
        assert [agent.casefold() for agent in outcome.agents] == [target.casefold()]


@pytest.mark.parametrize(
    ("inbound", "rule", "agents"),
    [
        (heard("@anna", agent="Ben", chain=("anna",)), "addressed", ("ben",)),
        (heard("@carl-2", chain=("anna", "ben")), "delegated", ("ben",)),
        (heard("@BEN and @anna, @ben", chat="ops-1"), "mention", ("ben", "anna")),
        (heard("hello", chat="ops-1", is_direct=False), "binding", ("ben",)),
        (heard("hello", chat="ops-1", connector="http"), "binding", ("ben",)),
        (heard("hello", connector="http"), "binding", ("Carl-2",)),
        (heard("hello"), "default", ("anna",)),
    ],
)
def test_the_first_rule_that_fits_decides(
    inbound: Inbound, rule: RuleName, agents: tuple[str, ...]
) -> None:
    outcome = route(inbound, TABLE)
    assert isinstance(outcome, Routed)
    assert (outcome.rule, outcome.agents) == (rule, agents)


@pytest.mark.parametrize(
    ("text", "agents"),
    [
        ("@anna", ("anna",)),
        ("(@anna's turn)", ("anna",)),
        ("ask @Anna.", ("anna",)),
        ("ask @anna- now", ("anna",)),
        ("@carl-2: go", ("Carl-2",)),
        ("@under_score", ("under_score",)),
        ("@anna:example.org", ("anna",)),
        ("@annabel", ()),
        ("@anna2", ()),
        ("@anna-b", ()),
        ("uma@anna", ()),
        ("anna", ()),
        ("@ anna", ()),
        ("@", ()),
        ("@---", ()),
    ],
)
def test_a_mention_is_a_whole_word(text: str, agents: tuple[str, ...]) -> None:
    found = tuple(verdicts(heard(text, is_direct=False), TABLE))
    assert found[2].agents == agents


def test_an_unknown_name_is_answered_with_near_misses() -> None:
    outcome = route(heard(agent="bem"), TABLE)
    assert isinstance(outcome, Unrouted)
    assert (outcome.reason, outcome.near) == ("unknown_agent", ("ben",))
    assert outcome.text == "There is no agent 'bem'. Did you mean ben?"


def test_a_delegation_to_nobody_does_not_fall_to_the_default() -> None:
    outcome = route(heard("@ben", chain=("anna", "gone")), TABLE)
    assert isinstance(outcome, Unrouted)
    assert outcome.reason == "unknown_agent"


def test_a_group_is_left_alone_unless_addressed() -> None:
    outcome = route(heard("hello all", is_direct=False), TABLE)
    assert isinstance(outcome, Unrouted)
    assert outcome.reason == "not_addressed"


def test_a_direct_chat_without_default_agent_says_so() -> None:
    outcome = route(heard(), routing_table(AGENTS))
    assert isinstance(outcome, Unrouted)
    assert outcome.reason == "no_default_agent"


@pytest.mark.parametrize("chat", ["ops-1x", "xops-1", "OPS-1", "ops"])
def test_a_glob_fits_the_whole_name_in_its_case(chat: str) -> None:
    table = routing_table(AGENTS, [Binding("ben", chat="ops-?")])
    found = tuple(verdicts(heard(chat=chat, is_direct=False), table))
    assert found[3].agents == ()


@pytest.mark.parametrize(
    ("agents", "bindings", "default", "words"),
    [
        (["anna", ""], [], "", "empty"),
        (["anna", "Anna"], [], "", "'anna' and 'Anna' clash"),
        (["anna"], [Binding("ana")], "", "no agent 'ana'. Did you mean anna?"),
        (["anna"], [], "ben", "no agent 'ben'"),
    ],
)
def test_a_table_of_unclear_names_is_refused(
    agents: list[str], bindings: list[Binding], default: str, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        routing_table(agents, bindings, default)
