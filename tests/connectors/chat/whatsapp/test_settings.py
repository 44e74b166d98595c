"""What does not go together in the settings of WhatsApp is told at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.chat.platforms import serving
from connectors.settings.load import load_app
from runtime.errors import SettingsError

BASE = """\
owners = ["whatsapp/US.13491208655302741918"]
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.http]
kind = "http"
[connectors.whatsapp]
kind = "whatsapp"
app_secret = { env = "APP" }
verify_token = { env = "VERIFY" }
[connectors.whatsapp.access]
people = "anyone"
[connectors.whatsapp.accounts.anna]
phone_number_id = "106540352242922"
access_token = { env = "TOKEN" }
"""
SECRETS = {
    "APP": "0123456789abcdef0123456789ABCDEF",
    "VERIFY": "a-word-made-up",
    "TOKEN": "EAAJB-a-long-enough-token",
}


def load(folder: Path, text: str, **changed: str) -> tuple[str, ...]:
    """Load settings; gives the warnings."""
    (folder / "rules.toml").write_text("", encoding="utf-8")
    path = folder / "callboard.toml"
    path.write_text(text, encoding="utf-8")
    settings = load_app(path, {**SECRETS, **changed})
    assert [*serving(settings.value)] == ["http", "whatsapp"]
    for secret in SECRETS.values():
        assert secret not in repr(settings.value)
    return tuple(map(str, settings.warnings))


def test_the_base_of_these_tests_is_right(tmp_path: Path) -> None:
    assert load(tmp_path, BASE) == ()


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ('kind = "http"', 'kind = "terminal"', "there is none"),
        ("accounts.anna", "accounts.bob", "there is no agent 'bob'"),
        ('"106540352242922"', '"+1 555 0001"', "it has digits only"),
        ('app_secret = { env = "APP" }', "", "app_secret"),
        ('app_secret = { env = "APP" }', 'app_secret = "x"', "secret"),
        ('verify_token = { env = "VERIFY" }', "", "verify_token"),
        ('access_token = { env = "TOKEN" }', "", "access_token"),
        ('kind = "whatsapp"', 'kind = "whatsapp"\ngraph_url = "x"', "no http or https"),
        ('kind = "whatsapp"', 'kind = "whatsapp"\npace = -1', "pace"),
        (
            'kind = "whatsapp"',
            'kind = "whatsapp"\noutside_window = "shout"',
            "outside_window",
        ),
    ],
)
def test_a_mistake_is_told(tmp_path: Path, before: str, after: str, told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, BASE.replace(before, after))
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "secret", ["", "   ", "changeme", "your-app-secret", "0" * 31, "g" * 32]
)
def test_what_is_no_app_secret_is_refused(tmp_path: Path, secret: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, BASE, APP=secret)
    assert not secret.strip() or secret not in str(caught.value)


def test_one_number_is_one_agents(tmp_path: Path) -> None:
    more = BASE.replace(
        "[connectors.http]", '[agents.ben]\nprompt = "x"\n[connectors.http]'
    )
    more += '[connectors.whatsapp.accounts.ben]\nphone_number_id = "106540352242922"\n'
    more += 'access_token = { env = "TOKEN" }\n'
    with pytest.raises(SettingsError, match="is the number of 'anna' already"):
        load(tmp_path, more)
