"""Proves that a slip in who may write is told at its place, before anybody writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.config.access import AccessConfig
from connectors.config.app import AppConfig
from connectors.settings.checks.access import check_nobody
from connectors.settings.load import load_app
from runtime.config.loader import Settings
from runtime.errors import SettingsError

BASE = """\
default_agent = "anna"
owners = ["http/boss"]
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.http]
kind = "http"
[connectors.http.access]
"""
FIRST = BASE.count("\n") + 1


def loaded(folder: Path, text: str) -> Settings[AppConfig]:
    (folder / "rules.toml").write_text("", encoding="utf-8")
    path = folder / "callboard.toml"
    path.write_text(text, encoding="utf-8")
    return load_app(path, {})


MISTAKES = [
    ('allowed = ["sam", " "]', 19, "' ' fits nobody", "without blanks"),
    ('allowed = ["http/sam"]', 12, "names the connector", "write 'sam'"),
    ('allowed = ["sam", "sam"]', 19, "stands here twice", "take one out"),
    (f'allowed = ["{"x" * 300}"]', 12, "300 characters", "256"),
    (
        'denied = ["sam"]\nallowed = ["sam"]',
        11,
        "both allowed and denied",
        "take it out",
    ),
    ('allowed = ["sam"]\ndenied = ["*"]', 11, "everybody is denied", "listed"),
    (
        'allowed = ["sam"]\ndenied = ["b*"]',
        11,
        "denies 'boss', an owner",
        "the owner",
    ),
    ('people = "anyone"\nallowed = ["sam"]', 11, "allowed means nothing", "listed"),
    ('people = "pairing"', 10, "nobody can be told a code", "key of its own"),
    (
        'allowed = ["sam"]\ngroups = "drop"\nallowed_chats = ["den"]',
        17,
        "allowed_chats means nothing",
        "handle",
    ),
    (
        'allowed = ["sam"]\ngroups = "drop"\ngroup_people = "everyone"',
        16,
        "group_people means nothing",
        "handle",
    ),
    (
        'allowed = ["sam"]\nallowed_chats = []',
        17,
        "no group is allowed",
        'groups = "drop"',
    ),
    (
        'allowed = ["sam"]\ncode_again_after = 700',
        20,
        "ceased to hold",
        "at most 600",
    ),
]


@pytest.mark.parametrize(("text", "column", "says", "hint"), MISTAKES)
def test_what_contradicts_itself_is_refused(
    tmp_path: Path, text: str, column: int, says: str, hint: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, BASE + text)
    [problem] = caught.value.problems
    lines = range(FIRST, FIRST + text.count("\n") + 1)
    assert problem.line in lines
    assert problem.column == column
    assert says in problem.text
    assert hint in problem.hint


RULES = [
    ('agent = "ana"', "'ana'", "did you mean 'anna'"),
    ('agent = "b*"', "no agent fits 'b*'", ""),
    ('connector = "htp"', "'htp'", "did you mean 'http'"),
    ('sender = ""', "an empty sender fits nothing", 'write "*"'),
]


@pytest.mark.parametrize(("text", "says", "hint"), RULES)
def test_a_rule_that_fits_nothing_is_refused(
    tmp_path: Path, text: str, says: str, hint: str
) -> None:
    access = 'allowed = ["sam"]\n[[access]]\nmay_use = false\n'
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, f"{BASE}{access}{text}\n")
    [problem] = caught.value.problems
    assert (problem.line, says in problem.text) == (FIRST + 3, True)
    assert hint in problem.hint


def test_a_rule_behind_one_that_fits_everything_is_refused(tmp_path: Path) -> None:
    rules = "[[access]]\nmay_use = true\n[[access]]\nmay_use = false\nagent = 'anna'\n"
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, f'{BASE}allowed = ["sam"]\n{rules}')
    [problem] = caught.value.problems
    assert problem.line == FIRST + 3
    assert "never asked: rule 1 fits everything" in problem.text


@pytest.mark.parametrize("owners", ['owners = ["http/boss"]\n', ""])
def test_where_nobody_may_write_that_is_warned_of(tmp_path: Path, owners: str) -> None:
    text = BASE.replace('owners = ["http/boss"]\n', owners)
    [warning] = loaded(tmp_path, text + 'people = "listed"\n').warnings
    assert ("nobody but owners" in warning.text) == bool(owners)
    assert warning.hint == 'set allowed = ["…"], or people = "anyone"'
    assert (warning.line, warning.column) == (FIRST - (not owners), 10)


@pytest.mark.parametrize(
    "text", ['allowed = ["sam"]', 'allowed_roles = ["admin"]', 'people = "anyone"']
)
def test_where_somebody_may_write_nothing_is_said(tmp_path: Path, text: str) -> None:
    assert loaded(tmp_path, BASE + text).warnings == ()


def test_where_people_can_be_told_a_code_that_is_proposed() -> None:
    found = check_nobody((), AccessConfig(), frozenset(), can_pair=True)
    [warning] = found
    assert warning.is_warning
    assert 'people = "pairing"' in warning.hint
    pairing = AccessConfig(people="pairing")
    assert not [*check_nobody((), pairing, frozenset(), can_pair=True)]
    in_groups = AccessConfig(group_people="everyone")
    assert not [*check_nobody((), in_groups, frozenset(), can_pair=True)]
