"""Proves that nobody writes who was not let in, whatever else is set, and why."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from actors.config.access import AccessConfig
from actors.messages.inbound import Address, Inbound
from actors.people.access import (
    AccessPolicy,
    Admit,
    Decision,
    OfferPairing,
    RefuseSender,
    admit,
    may_pair,
    policy,
)

IDS = st.sampled_from(["sam", "eve", "[x] sam", "@sam:b.org", "", "9"])
PATTERNS = st.lists(
    st.sampled_from(["*", "s*", "?ve", "sam", "@*:b.org", "[x] sam"]), max_size=3
).map(tuple)
ROLES = st.lists(st.sampled_from(["admin", "guest"]), max_size=2).map(tuple)
CONFIGS = st.builds(
    AccessConfig,
    people=st.sampled_from(["listed", "pairing", "anyone"]),
    allowed=PATTERNS,
    allowed_roles=ROLES,
    denied=PATTERNS,
    groups=st.sampled_from(["handle", "drop"]),
    allowed_chats=st.sampled_from([("*",), ("room",), ("den",), ()]),
    group_people=st.sampled_from(["admitted", "everyone"]),
)
OWNERS = st.sampled_from([frozenset[str](), frozenset({"chat/sam"})])
POLICIES = st.builds(policy, CONFIGS, OWNERS)


def message(**fields: Any) -> Inbound:
    given_: dict[str, Any] = {
        "id": "m1",
        "platform": "fake",
        "platform_id": "p1",
        "address": Address("chat", "room"),
        "sender_id": "sam",
        "sender_name": "Sam",
        "text": "hello",
        "received_at": 1.0,
    }
    return Inbound(**{**given_, **fields})


INBOUNDS = st.builds(
    message,
    sender_id=IDS,
    text=st.sampled_from(["hi", "/stop", "/pair approve X", "/approve 3F"]),
    is_direct=st.booleans(),
    is_bot=st.booleans(),
    roles=ROLES,
)


def decide(config: AccessConfig, owners: tuple[str, ...] = (), **fields: Any) -> str:
    decision = admit(message(**fields), policy(config, owners))
    return "pair" if isinstance(decision, OfferPairing) else decision.reason


@given(inbound=INBOUNDS, rules=POLICIES, is_paired=st.booleans(), waits=st.booleans())
def test_every_message_gets_one_decision_that_is_explained(
    inbound: Inbound, rules: AccessPolicy, *, is_paired: bool, waits: bool
) -> None:
    decision = admit(inbound, rules, is_paired=is_paired, waits=waits)
    *passed, last = decision.verdicts
    assert all(each.outcome == "pass" for each in passed)
    expected: dict[type[Decision], str] = {Admit: "admit", OfferPairing: "pass"}
    if isinstance(decision, RefuseSender):
        assert decision.is_told == waits
        assert last.outcome == "refuse" or decision.reason == "unknown_sender"
    else:
        assert last.outcome == expected[type(decision)]


@given(INBOUNDS, POLICIES)
def test_the_words_change_nothing(inbound: Inbound, rules: AccessPolicy) -> None:
    other = message(
        sender_id=inbound.sender_id,
        is_direct=inbound.is_direct,
        is_bot=inbound.is_bot,
        roles=inbound.roles,
        text="something else",
    )
    assert admit(inbound, rules) == admit(other, rules)


@given(inbound=INBOUNDS, waits=st.booleans())
def test_without_a_setting_nobody_but_owners_may_write(
    inbound: Inbound, *, waits: bool
) -> None:
    rules = policy(AccessConfig(), ("chat/sam",))
    is_in = isinstance(admit(inbound, rules, waits=waits), Admit)
    assert is_in == (inbound.sender_id == "sam")


@given(INBOUNDS, POLICIES)
def test_owners_may_write_wherever_anybody_is_heard(
    inbound: Inbound, rules: AccessPolicy
) -> None:
    config = rules.config
    chats = config.allowed_chats
    is_heard = config.groups == "handle" and bool({"*", "room"}.intersection(chats))
    if f"chat/{inbound.sender_id}" in rules.owners:
        decision = admit(inbound, rules)
        assert isinstance(decision, Admit) == (inbound.is_direct or is_heard)


@given(inbound=INBOUNDS, rules=POLICIES, is_paired=st.booleans())
def test_who_is_denied_never_writes_however_known(
    inbound: Inbound, rules: AccessPolicy, *, is_paired: bool
) -> None:
    decision = admit(inbound, rules, is_paired=is_paired)
    if rules.denied.fit(inbound.sender_id) and isinstance(decision, Admit):
        assert decision.reason == "owner"


@given(INBOUNDS, POLICIES)
def test_only_a_person_in_a_direct_chat_is_told_a_code(
    inbound: Inbound, rules: AccessPolicy
) -> None:
    if isinstance(admit(inbound, rules), OfferPairing):
        assert may_pair(inbound, rules)
        assert inbound.is_direct
        assert inbound.sender_id
        assert not inbound.is_bot
        assert rules.config.people == "pairing"


@given(INBOUNDS, POLICIES)
def test_more_is_never_let_in_by_denying_more(
    inbound: Inbound, rules: AccessPolicy
) -> None:
    stricter = policy(AccessConfig(denied=("*",)), ())
    assert not isinstance(admit(inbound, stricter), Admit)
    if isinstance(admit(inbound, rules), Admit):
        assert isinstance(admit(inbound, rules, is_paired=True), Admit)


def test_without_a_policy_the_edge_decides() -> None:
    assert admit(message(), None) == Admit("edge")


CASES: list[tuple[AccessConfig, dict[str, Any], str]] = [
    (AccessConfig(allowed=("s*",)), {}, "listed"),
    (AccessConfig(allowed=("[x] sam",)), {"sender_id": "[x] sam"}, "listed"),
    (AccessConfig(allowed=("*",)), {"sender_id": ""}, "unknown_sender"),
    (AccessConfig(allowed_roles=("adm*",)), {"roles": ("admin",)}, "role"),
    (AccessConfig(people="anyone"), {"sender_id": ""}, "anyone"),
    (AccessConfig(people="pairing"), {}, "pair"),
    (AccessConfig(people="pairing"), {"is_direct": False}, "unknown_sender"),
    (AccessConfig(people="pairing", denied=("sam",)), {}, "denied_sender"),
    (AccessConfig(groups="drop"), {"is_direct": False}, "group_dropped"),
    (AccessConfig(groups="drop", people="anyone"), {}, "anyone"),
    (AccessConfig(allowed_chats=("den",)), {"is_direct": False}, "unknown_chat"),
    (AccessConfig(group_people="everyone"), {"is_direct": False}, "group"),
    (AccessConfig(group_people="everyone"), {}, "unknown_sender"),
    (AccessConfig(allowed=("sam",)), {"is_direct": False}, "listed"),
]


@pytest.mark.parametrize(("config", "fields", "outcome"), CASES)
def test_each_rule_says_what_it_is_for(
    config: AccessConfig, fields: dict[str, Any], outcome: str
) -> None:
    assert decide(config, **fields) == outcome


def test_groups_that_are_dropped_are_dropped_for_owners_too() -> None:
    config = AccessConfig(groups="drop")
    assert decide(config, ("chat/sam",), is_direct=False) == "group_dropped"
    assert decide(config, ("chat/sam",)) == "owner"
