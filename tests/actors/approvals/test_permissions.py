"""Proves what a tool call needs: by table, by delegation, by agent, by level."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from actors.approvals.permissions import (
    LEVELS,
    REACH,
    Autonomy,
    Caller,
    Delegated,
    Effect,
    Freedom,
    Need,
    judge,
)
from actors.config.limits import PermissionConfig
from actors.messages.inbound import ToolSpec

CALLER = Caller(agent="anna", connector="fake", chat="room", sender="zoe")
WORK = replace(CALLER, is_delegated=True)

names = st.sampled_from(["shell", "web_get", "web_put", "clock"])
patterns = st.lists(
    st.sampled_from(["*", "web_*", "shell", "clock", "nothing"]), max_size=2
).map(tuple)
effects = st.sampled_from(["read", "write", "run"])
needs = st.sampled_from(["allow", "ask", "deny"])
tools = st.builds(ToolSpec, names, st.just(""), st.just(b"{}"), effect=effects)
tables = st.builds(
    PermissionConfig,
    agent=st.sampled_from(["*", "anna", "ben"]),
    chat=st.sampled_from(["*", "r*", "other"]),
    sender=st.sampled_from(["*", "zoe", "sam"]),
    delegated=st.booleans(),
    deny=patterns,
    ask=patterns,
    allow=patterns,
)
freedoms = st.builds(
    Freedom,
    autonomy=st.sampled_from(list(LEVELS)),
    tools=st.dictionaries(st.sampled_from(["*", "web_*", "shell"]), needs, max_size=2),
    delegated=st.sampled_from(list(REACH)),
)
callers = st.sampled_from([CALLER, WORK])


def tool(name: str = "shell", effect: Effect = "run") -> ToolSpec:
    return ToolSpec(name, "", b"{}", effect=effect)


def need(
    spec: ToolSpec, caller: Caller, freedom: Freedom, *given: PermissionConfig
) -> Need:
    return judge(spec, caller, freedom, given).need


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (PermissionConfig(ask=("shell",)), "ask"),
        (PermissionConfig(ask=("sh*",), allow=("shell",)), "ask"),
        (PermissionConfig(deny=("shell",), ask=("shell",)), "deny"),
        (PermissionConfig(ask=("other",)), "allow"),
        (PermissionConfig(ask=("shell",), agent="nobody"), "allow"),
        (PermissionConfig(ask=("shell",), delegated=True), "allow"),
    ],
)
def test_the_strictest_list_of_a_table_counts(
    table: PermissionConfig, expected: Need
) -> None:
    assert need(tool(), CALLER, Freedom(autonomy="full"), table) == expected


@pytest.mark.parametrize(
    ("autonomy", "expected"),
    [
        ("read-only", ("allow", "deny", "deny")),
        ("supervised", ("allow", "ask", "ask")),
        ("full", ("allow", "allow", "allow")),
    ],
)
def test_the_level_decides_where_nothing_else_does(
    autonomy: Autonomy, expected: tuple[Need, ...]
) -> None:
    effects: tuple[Effect, ...] = ("read", "write", "run")
    found = [need(tool("x", e), CALLER, Freedom(autonomy=autonomy)) for e in effects]
    assert tuple(found) == expected


@pytest.mark.parametrize(
    ("delegated", "allowed"),
    [("none", 0), ("read", 1), ("write", 2), ("all", 3)],
)
def test_work_handed_on_reaches_so_far(delegated: Delegated, allowed: int) -> None:
    freedom = Freedom(autonomy="full", delegated=delegated)
    effects: tuple[Effect, ...] = ("read", "write", "run")
    found = [need(tool("x", each), WORK, freedom) for each in effects]
    assert found == ["allow"] * allowed + ["deny"] * (3 - allowed)


def test_the_agent_s_own_word_is_no_way_round_delegation() -> None:
    freedom = Freedom(tools={"*": "allow"})
    assert need(tool(), CALLER, freedom) == "allow"
    assert need(tool(), WORK, freedom) == "deny"
    for_people = PermissionConfig(allow=("*",))
    assert need(tool(), WORK, freedom, for_people) == "deny"
    for_work = PermissionConfig(allow=("shell",), delegated=True)
    assert need(tool(), WORK, freedom, for_work) == "allow"


def test_memory_only_can_be_said() -> None:
    rules = (
        PermissionConfig(allow=("memory_*",), delegated=True),
        PermissionConfig(deny=("*",), delegated=True, sender="zoe"),
    )
    full = Freedom(autonomy="full", delegated="all")
    assert need(tool("memory_put"), WORK, full, *rules) == "allow"
    assert need(tool("clock", "read"), WORK, full, *rules) == "deny"


@given(tools, callers, freedoms, st.lists(tables, max_size=4))
def test_there_is_always_a_verdict_and_a_reason_to_deny(
    spec: ToolSpec, caller: Caller, freedom: Freedom, rules: list[PermissionConfig]
) -> None:
    verdict = judge(spec, caller, freedom, rules)
    assert verdict.need != "deny" or verdict.why


@given(tools, callers, freedoms, st.lists(tables, max_size=4))
def test_a_table_for_all_that_denies_comes_first_or_never(
    spec: ToolSpec, caller: Caller, freedom: Freedom, rules: list[PermissionConfig]
) -> None:
    forbid = PermissionConfig(deny=("*",))
    assert need(spec, caller, freedom, forbid, *rules) == "deny"
    behind = need(spec, caller, freedom, *rules, forbid)
    assert behind in {"deny", need(spec, caller, freedom, *rules)}


@given(tools, callers, freedoms, tables)
def test_a_table_for_somebody_else_changes_nothing(
    spec: ToolSpec, caller: Caller, freedom: Freedom, table: PermissionConfig
) -> None:
    other = replace(table, sender="nobody")
    assert need(spec, caller, freedom, other) == need(spec, caller, freedom)


@given(tools, freedoms, st.lists(tables, max_size=4))
def test_handed_on_work_never_needs_less_unless_a_table_says_so(
    spec: ToolSpec, freedom: Freedom, rules: list[PermissionConfig]
) -> None:
    plain = [each for each in rules if not each.delegated]
    order = ("deny", "ask", "allow")
    own = judge(spec, CALLER, replace(freedom, tools={}), ()).need
    work = judge(spec, WORK, replace(freedom, tools={}), plain).need
    assert order.index(work) <= order.index(own)
