"""What does not go together in the settings of Matrix is told at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.chat.platforms import serving
from connectors.settings.load import load_app
from runtime.errors import SettingsError

BASE = """\
owners = ["matrix/@you:hs.test"]
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.matrix]
kind = "matrix"
homeserver = "https://hs.test"
[connectors.matrix.access]
people = "anyone"
[connectors.matrix.accounts.anna]
user = "@anna:hs.test"
access_token = { env = "TOKEN" }
"""
SECRET = "syt_a-long-enough-token"  # noqa: S105  nobody's


def load(folder: Path, text: str) -> tuple[str, ...]:
    """Load settings; gives the warnings."""
    (folder / "rules.toml").write_text("", encoding="utf-8")
    path = folder / "callboard.toml"
    path.write_text(text, encoding="utf-8")
    settings = load_app(path, {"TOKEN": SECRET})
    assert [*serving(settings.value)] == ["matrix"]
    assert SECRET not in repr(settings.value)
    return tuple(map(str, settings.warnings))


def test_the_base_of_these_tests_is_right(tmp_path: Path) -> None:
    assert load(tmp_path, BASE) == ()


@pytest.mark.parametrize(
    ("before", "after", "line", "told"),
    [
        ("https://hs.test", "hs.test", 9, "no http or https address"),
        ("https://hs.test", "hs.test", 9, 'for example: homeserver = "https:'),
        ("@anna:hs.test", "anna", 13, "'anna' is no Matrix id"),
        ("accounts.anna", "accounts.bob", 12, "there is no agent 'bob'"),
        ('access_token = { env = "TOKEN" }', "", 12, "has no access_token"),
        (
            'access_token = { env = "TOKEN" }',
            'access_token = { env = "TOKEN" }\npassword = { env = "TOKEN" }',
            12,
            "an access_token and a password",
        ),
        ('access_token = { env = "TOKEN" }', 'access_token = "x"', 14, "secret"),
        ('kind = "matrix"', 'kind = "matrix"\ninvites = "some"', 9, "some"),
        ('kind = "matrix"', 'kind = "matrix"\npoll_timeout = 0', 9, "poll_timeout"),
        (
            'kind = "matrix"',
            'kind = "matrix"\ninvites = "listed"\ninvite_from = ["zoe"]',
            10,
            "'zoe' is no Matrix id",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(
    tmp_path: Path, before: str, after: str, line: int, told: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, BASE.replace(before, after))
    (problem,) = caught.value.problems
    assert told in f"{problem} {problem.hint}"
    assert problem.line == line


def test_one_account_is_one_agents(tmp_path: Path) -> None:
    more = BASE.replace(
        'prompt = "You are Anna."',
        'prompt = "You are Anna."\n[agents.ben]\nprompt = "x"',
    )
    more += '[connectors.matrix.accounts.ben]\nuser = "@anna:hs.test"\n'
    more += 'password = { env = "TOKEN" }\n'
    with pytest.raises(SettingsError, match="is the account of 'anna' already"):
        load(tmp_path, more)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("matrix/@you", "other/@you", "nobody can invite"),
        (
            'kind = "matrix"',
            'kind = "matrix"\ninvite_from = ["*:hs.test"]',
            "invite_from counts for nothing",
        ),
        ("https://hs.test", "http://hs.test", "unencrypted"),
    ],
)
def test_what_is_doubtful_is_warned_of(
    tmp_path: Path, before: str, after: str, told: str
) -> None:
    text = BASE.replace(before, after)
    if "other/" in text:
        text = text.replace('owners = ["other/@you:hs.test"]\n', "")
    assert any(told in each for each in load(tmp_path, text))
