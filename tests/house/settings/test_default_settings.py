"""Proves that `config/default.toml` forgets no setting, in whatever table it stands."""

from __future__ import annotations

import re

from connectors.config.app import AppConfig
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
