"""What does not go together in the settings of plain WebSockets is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.chat.platforms import serving
from connectors.settings.load import load_app
from runtime.errors import SettingsError

BASE = """\
default_agent = "anna"
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.plain]
kind = "websocket"
"""


def load(folder: Path, text: str) -> tuple[str, ...]:
    """Load settings; gives the warnings."""
    (folder / "rules.toml").write_text("", encoding="utf-8")
    path = folder / "callboard.toml"
    path.write_text(text, encoding="utf-8")
    settings = load_app(path, {"KEY": "a-key-that-nobody-guesses"})
    assert [*serving(settings.value)] == ["plain"]
    return tuple(map(str, settings.warnings))


def test_few_words_are_enough(tmp_path: Path) -> None:
    assert load(tmp_path, BASE) == ()
    keyed = BASE + 'api_key = { env = "KEY" }\nhost = "0.0.0.0"\norigins = ["*"]\n'
    assert load(tmp_path, keyed) == ()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('host = "0.0.0.0"\n', "may use the agents"),
        ('origins = ["*"]\n', "every web page"),
        ('origins = ["chat.example.org"]\n', "no origin"),
        ('origins = ["https://chat.example.org/"]\n', "no origin"),
        ('origins = ["null"]\n', "no origin"),
        ('origins = ["https://*.example.org"]\n', "no origin"),
        ("max_frame_bytes = 10\n", "256"),
        ("port = 70000\n", "65_535"),
    ],
)
def test_what_does_not_go_together_is_told(
    more: str, told: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=told):
        load(tmp_path, BASE + more)


def test_a_server_that_nobody_answers_at_is_warned_of(tmp_path: Path) -> None:
    text = BASE.replace('default_agent = "anna"\n', "")
    assert "nobody answers here" in load(tmp_path, text)[0]
