"""Proves that settings of busy conversations that mean nothing, or harm, are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.config.sessions import (
    BufferingConfig,
    BusyPolicyConfig,
    WatchdogConfig,
    buffering_of,
)
from actors.messages.busy_policies import BusySettings
from actors.messages.keys import SessionKey
from connectors.config.app import AppConfig
from connectors.settings.load import load_app
from runtime.config.loader import Settings
from runtime.errors import SettingsError

BASE = """\
default_agent = "anna"
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.terminal]
kind = "terminal"
[connectors.http]
kind = "http"
"""
FIRST = BASE.count("\n") + 1


def loaded(folder: Path, text: str) -> Settings[AppConfig]:
    (folder / "rules.toml").write_text("", encoding="utf-8")
    path = folder / "callboard.toml"
    path.write_text(BASE + text, encoding="utf-8")
    return load_app(path, {})


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (
            "[[busy_policies]]\nagent = 'an'\npolicy = 'steer'",
            1,
            "no agent fits 'an'; did you mean 'anna'?",
        ),
        ("[[busy_policies]]\nconnector = 'x*'", 1, "no connector fits 'x*'"),
        ("[buffering]\npolicy = 'followup'\ndebounce = 20", 0, "is below debounce"),
        (
            "[[busy_policies]]\npolicy = 'steer'\ndebounce = 20",
            0,
            "is below debounce, 20 s",
        ),
        ("[watchdog]\nstuck_after = 20", 1, "is below stalled_after, 120 s"),
    ],
)
def test_a_slip_is_refused_at_its_place(
    text: str, line: int, what: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, text)
    error = caught.value
    told = f"{error.problems[0]}; {error.problems[0].hint}"
    assert what in told
    assert error.problems[0].line - FIRST == line


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[buffering]\ndebounce = 2", "debounce: means nothing with the policy"),
        (
            "[buffering]\nnote = true\npolicy = 'followup'",
            "note: means nothing with the policy 'followup'",
        ),
        ("[buffering]\noverflow = 'summarise'", "overflow: means nothing"),
        (
            "[[busy_policies]]\nconnector = 'http'\npolicy = 'steer'",
            "over HTTP each request waits for its own answer",
        ),
        (
            "[[busy_policies]]\nnote = true\n[[busy_policies]]\nagent = 'anna'",
            "busy_policies[1]: never counts: busy_policies[0] comes first",
        ),
        (
            "[[busy_policies]]\nchat = 'x'\nnote = true\n[[busy_policies]]\nchat = 'x'",
            "busy_policies[1]: never counts",
        ),
        (
            "[buffering]\npolicy = 'steer'\n[limits]\nmax_waiting = 0",
            "refuses all that comes during a turn",
        ),
        (
            "[watchdog]\nstalled_after = 60\nstuck_after = 100",
            "a tool may take 150 s",
        ),
    ],
)
def test_what_means_nothing_is_warned_of(text: str, what: str, tmp_path: Path) -> None:
    (warning,) = loaded(tmp_path, text).warnings
    assert what in str(warning)


@pytest.mark.parametrize("first", ["agent = 'a*'", "connector = 'http'", "chat = '?'"])
def test_tables_that_leave_something_over_are_fine(first: str, tmp_path: Path) -> None:
    text = f"[[busy_policies]]\n{first}\n[[busy_policies]]\nnote = true"
    assert loaded(tmp_path, text).warnings == ()


KEY = SessionKey("anna", "slack", "team-1")
USUAL = BufferingConfig(policy="followup", debounce=2.0)


@pytest.mark.parametrize(
    ("tables", "policy", "debounce"),
    [
        ((), "followup", 2.0),
        ((BusyPolicyConfig(agent="ben", policy="steer"),), "followup", 2.0),
        ((BusyPolicyConfig(chat="team-*", policy="steer"),), "steer", 2.0),
        (
            (
                BusyPolicyConfig(connector="sl?ck", debounce=0.0),
                BusyPolicyConfig(policy="steer"),
            ),
            "followup",
            0.0,
        ),
    ],
)
def test_the_first_table_that_fits_counts(
    tables: tuple[BusyPolicyConfig, ...], policy: str, debounce: float
) -> None:
    found = buffering_of(USUAL, tables, KEY, 9)
    assert (found.policy, found.debounce, found.most_chars) == (policy, debounce, 9)


def test_equal_policies_are_one_object() -> None:
    first = buffering_of(USUAL, (), KEY, 9)
    assert first is buffering_of(USUAL, (), SessionKey("ben", "x", "y"), 9)


def test_unset_is_as_the_rules_have_it() -> None:
    found = buffering_of(BufferingConfig(), (), KEY, BusySettings().most_chars)
    assert found == BusySettings()
    assert WatchdogConfig().patience.stuck_after > 0
