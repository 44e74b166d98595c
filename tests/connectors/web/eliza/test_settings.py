"""What does not go together in the settings of web channels is told at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.admin.settings import written
from connectors.chat.platforms import serving
from connectors.settings.load import load_app
from runtime.errors import SettingsError

BASE = """\
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.web]
kind = "web"
"""
KEYS = {"ONE": "the first of two keys", "TWO": "the other one of both"}
PAGE = '[connectors.web.keys.page]\nkey = { env = "TWO" }\n'


def load(folder: Path, text: str) -> tuple[str, ...]:
    """Load settings; gives the warnings."""
    (folder / "rules.toml").write_text("", encoding="utf-8")
    path = folder / "callboard.toml"
    path.write_text(text, encoding="utf-8")
    settings = load_app(path, KEYS)
    assert [*serving(settings.value)] == ["web"]
    assert KEYS["ONE"] not in repr(settings.value)
    return tuple(map(str, settings.warnings))


def test_few_words_are_enough(tmp_path: Path) -> None:
    assert load(tmp_path, BASE) == ()
    assert load(tmp_path, BASE + 'api_key = { env = "ONE" }\n' + PAGE) == ()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('host = "0.0.0.0"\n', "may use the agents"),
        ('origins = ["*"]\n', "every web page"),
        ('origins = ["chat.example.org/"]\n', "no origin"),
        ('api_key = { env = "TWO" }\n' + PAGE, "is the api_key"),
        (PAGE + PAGE.replace("page", "other"), "that of 'page'"),
        (PAGE + "scopes = []\n", "may do nothing"),
        (PAGE + 'entity = "zoe"\n', "no UUID"),
        (PAGE + 'scopes = ["operate"]\nchannels = ["a*"]\n', "tell of everybody"),
        ('[connectors.web.access]\npeople = "pairing"\n', "over HTTP"),
    ],
)
def test_what_does_not_go_together_is_told(
    more: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=told):
        load(tmp_path, BASE + more)


def test_what_is_shown_of_settings_holds_no_secret(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text("", encoding="utf-8")
    path = tmp_path / "callboard.toml"
    path.write_text(BASE + 'api_key = { env = "ONE" }\n' + PAGE, encoding="utf-8")
    shown = written(load_app(path, KEYS).value)
    assert shown["connectors.web.api_key"] == "***"
    assert shown["connectors.web.keys.page.key"] == "***"
    assert shown["connectors.web.keys.page.scopes"] == '["read", "write"]'
    assert shown["models.scripted.kind"] == "scripted"
    assert not set(KEYS.values()) & set(shown.values())
    assert not any(secret in str(shown) for secret in KEYS.values())
