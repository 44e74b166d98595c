"""Proves who may be killed by hand, and that no restart limit is reached so."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from actors.operations.warden import MOST, MOST_OF_ONE, PERIOD, KillLimit, refusal
from actors.tree import PATIENT
from runtime.supervision.keyed import KeyedConfig
from runtime.supervision.restarts import RestartWindow

ROOT = "callboard"

MAY = (
    "agents/anna",
    "agents/anna/agent",
    "agents/anna/sessions/anna/cli/kitchen//sam",
    "agents/anna/sessions/anna/web/../../store//x",
    "connectors/http",
    "connectors/http/connector",
    "connectors/http/listener",
    "connectors/bots/listeners/anna",
    "connectors/bots/listeners/anna/listener",
)
MAY_NOT = (
    "",
    "/",
    "store",
    "store/agents/anna",
    "limiter",
    "models",
    "router",
    "scheduler",
    "warden",
    "edges",
    "people",
    "agents",
    "agents/",
    "connectors",
    "agents/anna/",
    "agents/anna/sessions",
    "agents/anna/sessions/",
    "agents/anna/turns",
    "agents/anna/turns/01K",
    "agents/anna/memory",
    "connectors/http/couriers",
    "connectors/http/couriers/room",
    "connectors/bots/listeners",
    "connectors/bots/listeners/",
)

names = st.sampled_from([f"{ROOT}/{each}" for each in MAY])
gaps = st.lists(st.tuples(st.floats(0, PERIOD), names), max_size=60)


@pytest.mark.parametrize("name", MAY)
def test_conversations_agents_and_connectors_may_be_killed(name: str) -> None:
    assert refusal(f"{ROOT}/{name}", ROOT) == ""


@pytest.mark.parametrize("name", MAY_NOT)
def test_nobody_else_may(name: str) -> None:
    assert "not killed" in (why := refusal(f"{ROOT}/{name}", ROOT)) or "only" in why


def test_the_root_and_a_stranger_may_not() -> None:
    assert refusal(ROOT, ROOT).startswith("the root is not killed")
    assert refusal("somebody", ROOT)
    assert refusal("somebody/agents/anna", ROOT)


@given(st.text())
def test_every_name_has_an_answer(name: str) -> None:
    refusal(name, ROOT)
    refusal(f"{ROOT}/{name}", ROOT)


@given(gaps)
def test_counted_by_hand_it_is_the_same(kills: list[tuple[float, str]]) -> None:
    window, now = KillLimit(), 0.0
    past: list[tuple[float, str]] = []
    for gap, name in kills:
        now += gap
        recent = [each for at, each in past if at > now - PERIOD]
        may = len(recent) < MOST and recent.count(name) < MOST_OF_ONE
        assert (window.refusal(name, now) == "") == may
        if may:
            window.count(name, now)
            past.append((now, name))


@given(gaps)
def test_no_supervisor_ever_gives_up_by_that(kills: list[tuple[float, str]]) -> None:
    window, now = KillLimit(), 0.0
    keyed = KeyedConfig()
    branch = RestartWindow(PATIENT.intensity, PATIENT.period)
    alone: dict[str, RestartWindow] = {}
    for gap, name in kills:
        now += gap
        if window.refusal(name, now):
            continue
        window.count(name, now)
        one = alone.setdefault(name, RestartWindow(keyed.intensity, keyed.period))
        assert one.allow(now)
        assert branch.allow(now)
