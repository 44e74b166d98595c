"""Proves that `config/default.toml` forgets no setting, in whatever table it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec import Struct

from connectors.chat.platforms import all_retired
from connectors.cli import run
from connectors.config.app import AppConfig
from connectors.config.checks import RETIRED
from connectors.settings.load import load_app, settings_type
from connectors.settings.schema import structs_below
from tests.house.settings.test_config_files import default_text
from tests.house.test_stored_names import keys

HEADER = re.compile(r"^\[\[?([^\]]+)\]\]?")
KEY = re.compile(r"^(?:# )?([A-Za-z_]+) = ")
"""A setting; one that is unset by default stands in a comment."""

SHOWN_ELSEWHERE = {
    "agents.*.": "agent_defaults.",
    "presence.connectors.*.": "presence.",
}
"""Tables that are shown once, where all others inherit from."""

IN_ONE_LINE = re.compile(r"routing\.hints\.(model|words)$")
"""Settings that stand in a table on one line."""


def shown_settings() -> str:
    """Give the path of every setting of default.toml, one a line."""
    table, paths = "", list[str]()
    for line in default_text().splitlines():
        if header := HEADER.match(line):
            table = f"{header[1]}."
            paths.append(header[1])
        elif key := KEY.match(line):
            paths.append(f"{table}{key[1]}")
    return "\n".join(paths)


def pattern_of(setting: str) -> re.Pattern[str]:
    """Find a setting, or something below it; `*` stands for a name of one's own."""
    for place, other in SHOWN_ELSEWHERE.items():
        if setting.startswith(place):
            setting = other + setting.removeprefix(place)
    parts = (
        r'(?:[^.\n"]+|"[^"\n]+")' if part == "*" else re.escape(part)
        for part in setting.split(".")
    )
    return re.compile("^" + r"\.".join(parts) + r"(?:\.|$)", re.MULTILINE)


def test_no_setting_is_forgotten() -> None:
    shown = shown_settings()
    settings = {key.removeprefix("setting ") for key in keys(AppConfig)}
    missing = {
        setting
        for setting in settings
        if not IN_ONE_LINE.search(setting) and not pattern_of(setting).search(shown)
    }
    assert not missing, "add these to config/default.toml, with a sentence each"
    assert len(settings) > 500


def test_a_setting_that_is_not_there_is_found() -> None:
    shown = shown_settings()
    assert pattern_of("agents.*.model").search(shown)
    assert not pattern_of("agents.*.modell").search(shown)
    assert not pattern_of("store.paths").search(shown)


def test_what_is_gone_was_of_a_table_that_is_there_and_says_why() -> None:
    structs: dict[str, type[Struct]] = {}
    structs_below(settings_type(), structs)
    for table, gone in all_retired().items():
        fields = structs[table].__struct_encode_fields__
        assert set(gone).isdisjoint(fields), table
        assert all(gone.values()), table


OLD = """
default_agent = "anna"
[models.scripted]
kind = "scripted"
script = "rules.toml"
[memory]
sweep_every = "never, please"
[agent_defaults.context]
max_facts = 9
[agents.anna]
prompt = "You are Anna."
[agents.ben]
prompt = "You are Ben."
[connectors.page]
kind = "page"
[connectors.ws]
kind = "websocket"
ping_interval = 5
[[budgets]]
scope = "user"
hard_tokens = 9
on_hard = "stop"
"""


def test_a_setting_that_is_gone_is_told_once_and_has_no_effect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rules.toml").write_text("", encoding="utf-8")
    path = tmp_path / "callboard.toml"
    path.write_text(OLD, encoding="utf-8")
    settings = load_app(path, {"CALLBOARD_PRESENCE__TYPING_EVERY": "9"})
    told = {each.text: each for each in settings.warnings}
    assert len(told) == len(settings.warnings) == 5
    why = RETIRED["MemorySettings"]["sweep_every"]
    gone = told[f"memory.sweep_every has no effect any more: {why}"]
    assert (gone.line, gone.hint) == (7, "take it out")
    assert sum("max_facts" in text for text in told) == 1
    assert run(["config", "explain", "connectors.any.ping_interval"]) == 0
    assert "is gone, and has no effect where" in capsys.readouterr().out
    path.write_text(OLD.replace('kind = "websocket"', 'kind = "http"'), "utf-8")
    assert run(["config", "check", "--config", str(path)]) == 1
    assert "unknown key 'ping_interval'" in capsys.readouterr().err
