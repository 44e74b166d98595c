"""What does not go together in the settings of Discord is told at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.chat.platforms import serving
from connectors.settings.load import load_app
from runtime.errors import SettingsError

BASE = """\
owners = ["discord/123456789012345678"]
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[agents.ben]
prompt = "You are Ben."
[connectors.discord]
kind = "discord"
api = "https://discord.com/api/v10"
gateway = "wss://gateway.discord.gg"
[connectors.discord.access]
people = "anyone"
[connectors.discord.accounts.anna]
token = { env = "ANNA" }
[connectors.discord.accounts.ben]
token = { env = "BEN" }
"""
SECRETS = {"ANNA": "a-long-enough-token", "BEN": "another-long-token"}


def load(folder: Path, text: str) -> tuple[str, ...]:
    """Load settings; gives the warnings."""
    (folder / "rules.toml").write_text("", encoding="utf-8")
    path = folder / "callboard.toml"
    path.write_text(text, encoding="utf-8")
    settings = load_app(path, SECRETS)
    assert [*serving(settings.value)] == ["discord"]
    assert SECRETS["ANNA"] not in repr(settings.value)
    return tuple(map(str, settings.warnings))


def test_the_base_of_these_tests_is_right(tmp_path: Path) -> None:
    assert load(tmp_path, BASE) == ()


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("accounts.anna", "accounts.bob", "there is no agent 'bob'"),
        ('token = { env = "ANNA" }', "", "the bot has no token"),
        ('env = "BEN"', 'env = "ANNA"', "this is the token of 'anna' already"),
        ("https://discord.com", "discord.com", "no http or https address"),
        ("wss://gateway", "https://gateway", "no ws or wss address"),
    ],
)
def test_mistakes_are_refused(
    tmp_path: Path, before: str, after: str, told: str
) -> None:
    with pytest.raises(SettingsError, match=told):
        load(tmp_path, BASE.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("discord/123456789012345678", "discord/zoe", "'zoe' is no Discord id"),
        ("wss://gateway.discord.gg", "ws://far.example", "unencrypted"),
    ],
)
def test_what_is_odd_is_warned_of(
    tmp_path: Path, before: str, after: str, told: str
) -> None:
    warnings = load(tmp_path, BASE.replace(before, after))
    assert any(told in each for each in warnings)
