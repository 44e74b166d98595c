"""Proves that every setting has its line in the table of what changes while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec
from hypothesis import given, strategies as st

from actors.config.agents import AgentConfig
from actors.config.limits import BudgetConfig, LimitsConfig
from actors.config.routes import RouteConfig
from actors.config.schedule import SchedulerConfig
from connectors.app.reload.rules import (
    TABLE,
    Step,
    hold_cold,
    make_plan,
    replaced,
    written_names,
)
from connectors.config.app import AppConfig, HttpConfig, LogConfig, StoreConfig

AGENTS = {"anna": AgentConfig(prompt="You are Anna."), "ben": AgentConfig()}
BUDGETS = (BudgetConfig(scope="all", hard_tokens=5),)

OTHER: Mapping[str, tuple[object, ...]] = {
    "default_agent": ("anna", "ben"),
    "owners": (("http/zoe",), ("http/zoe", "http/sam")),
    "store": (StoreConfig(path="other.db"), StoreConfig(synchronous="normal")),
    "log": (LogConfig(level="debug"), LogConfig(pace=1.0), LogConfig(format="json")),
    "limits": (LimitsConfig(max_open=7), LimitsConfig(max_in_flight=2)),
    "scheduler": (SchedulerConfig(is_on=False),),
    "budgets": (BUDGETS,),
    "connectors": ({"http": HttpConfig()}, {"http": HttpConfig(port=1)}),
    "agents": (AGENTS, {**AGENTS, "mia": AgentConfig(tools=("http_fetch",))}),
    "routes": ((RouteConfig(agent="anna"),),),
}
"""Values that some settings may have instead of their default."""


def changed(changes: dict[str, Any]) -> AppConfig:
    return msgspec.structs.replace(AppConfig(), **changes)


one_of = {name: st.sampled_from(values) for name, values in OTHER.items()}
configs = st.fixed_dictionaries({}, optional=one_of).map(changed)


def test_every_top_level_setting_has_a_row() -> None:
    rows = {place.partition(".")[0] for place in TABLE}
    missing = set(written_names().values()) - rows
    assert not missing, (
        f"say in connectors/app/reload/rules.py who takes over: {missing}"
    )
    assert rows <= set(written_names().values())


def test_every_row_says_who_is_told_or_why_it_waits() -> None:
    for place, row in TABLE.items():
        assert not (row.steps and row.cold), place
        assert set(row.steps) <= set(get_args(Step)), place
        assert not (row.cold and row.on_page), place


def test_every_field_that_is_told_apart_is_one() -> None:
    own = {written: name for name, written in written_names().items()}
    for place in TABLE:
        section, _, field = place.partition(".")
        if field:
            assert field in getattr(AppConfig(), own[section]).__struct_fields__


@given(configs)
def test_what_is_the_same_comes_to_nothing(config: AppConfig) -> None:
    plan = make_plan(config, config)
    assert (plan.target, plan.applied, plan.waiting) == (config, (), {})
    assert not plan.steps


@given(configs, configs)
def test_a_change_is_applied_or_waits_and_never_both(
    before: AppConfig, after: AppConfig
) -> None:
    plan = make_plan(before, after)
    for name, written in written_names().items():
        old, new = getattr(before, name), getattr(after, name)
        own = getattr(plan.target, name)
        waits = {x for x in plan.waiting if x.partition(".")[0] == written}
        if old == new:
            assert own == old
            assert not waits
        elif not waits:
            assert own == new
        assert (written in plan.applied) == (own != old)
        assert waits or written not in TABLE or own == new


@given(configs, configs)
def test_who_is_concerned_is_asked_and_nobody_else(
    before: AppConfig, after: AppConfig
) -> None:
    plan = make_plan(before, after)
    told = {step for name in plan.applied for step in TABLE[name].steps}
    assert told <= plan.steps
    assert plan.steps - told <= {"tools", "sources"}
    if "agents" not in plan.applied and "hiring" not in plan.applied:
        assert plan.steps == told


@given(configs, configs)
def test_taken_over_twice_the_second_time_changes_nothing(
    before: AppConfig, after: AppConfig
) -> None:
    first = make_plan(before, after)
    again = make_plan(first.target, after)
    assert again.target == first.target
    assert not again.applied
    assert again.waiting == first.waiting


def test_what_waits_is_named_with_its_reason() -> None:
    target, waiting = hold_cold(
        AppConfig(), replaced(AppConfig(), "log", LogConfig(level="debug", pace=1.0))
    )
    assert target.log == LogConfig(level="debug")
    assert set(waiting) == {"log.pace"}
    assert waiting["log.pace"]
