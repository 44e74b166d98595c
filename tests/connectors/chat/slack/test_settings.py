"""What does not go together in the settings of Slack is told at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.chat.platforms import serving
from connectors.settings.load import load_app
from runtime.errors import SettingsError

BASE = """\
owners = ["slack/U012AB3CD"]
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.slack]
kind = "slack"
[connectors.slack.accounts.anna]
bot_token = { env = "BOT" }
app_token = { env = "APP" }
"""
ACCESS = '[connectors.slack.access]\npeople = "anyone"\n'
TOKENS = {
    "BOT": "xoxb-a-long-enough-token",
    "APP": "xapp-a-long-enough-token",
    "SIGNING": "0123456789abcdef0123456789abcdef",
    "SHORT": "qwertz-7",
}


def load(folder: Path, text: str) -> tuple[str, ...]:
    """Load settings; gives the warnings."""
    (folder / "rules.toml").write_text("", encoding="utf-8")
    path = folder / "callboard.toml"
    path.write_text(text + ACCESS, encoding="utf-8")
    settings = load_app(path, TOKENS)
    assert "slack" in serving(settings.value)
    assert not any(token in repr(settings.value) for token in TOKENS.values())
    return tuple(map(str, settings.warnings))


def test_the_base_of_these_tests_is_right(tmp_path: Path) -> None:
    assert load(tmp_path, BASE) == ()


def test_with_a_signing_secret_and_a_server_it_is_called(tmp_path: Path) -> None:
    text = BASE.replace('app_token = { env = "APP" }', SIGNING)
    assert load(tmp_path, text + '[connectors.http]\nkind = "http"\n') == ()


SIGNING = 'signing_secret = { env = "SIGNING" }'


@pytest.mark.parametrize(
    ("before", "after", "line", "told"),
    [
        ("accounts.anna", "accounts.bob", 9, "there is no agent 'bob'"),
        ('app_token = { env = "APP" }', "", 9, "neither app_token nor"),
        ('app_token = { env = "APP" }', SIGNING, 11, "nobody takes Slack's calls"),
        (
            'app_token = { env = "APP" }',
            f'app_token = {{ env = "APP" }}\n{SIGNING}',
            9,
            "it hears by one of them",
        ),
        ('env = "BOT"', 'env = "APP"', 10, "does not begin with xoxb-"),
        ('env = "APP"', 'env = "BOT"', 11, "does not begin with xapp-"),
        ('{ env = "BOT" }', '"xoxb-open"', 10, "secret"),
        ('kind = "slack"', 'kind = "slack"\nslash_command = "x"', 9, "slash_command"),
        ('kind = "slack"', 'kind = "slack"\nbase_url = "slack"', 9, "no http or https"),
        ('kind = "slack"', 'kind = "slack"\nrequest_timeout = 0', 9, "request_timeout"),
    ],
)
def test_a_mistake_is_told_with_its_line(
    tmp_path: Path, before: str, after: str, line: int, told: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, BASE.replace(before, after))
    problem = caught.value.problems[0]
    assert told in f"{problem} {problem.hint}"
    assert problem.line == line


def test_a_short_signing_secret_is_refused(tmp_path: Path) -> None:
    text = BASE.replace('app_token = { env = "APP" }', SIGNING)
    text = text.replace('"SIGNING"', '"SHORT"')
    with pytest.raises(SettingsError, match="fewer than 16 characters"):
        load(tmp_path, text + '[connectors.http]\nkind = "http"\n')


def test_one_app_is_one_agents(tmp_path: Path) -> None:
    more = BASE.replace(
        'prompt = "You are Anna."',
        'prompt = "You are Anna."\n[agents.ben]\nprompt = "x"',
    )
    more += "[connectors.slack.accounts.ben]\n"
    more += 'bot_token = { env = "BOT" }\napp_token = { env = "APP" }\n'
    with pytest.raises(SettingsError, match="bot_token of 'anna' already"):
        load(tmp_path, more)
