"""Proves that the reference says what the code does, and that levels name settings."""

from __future__ import annotations

import re

import pytest

from connectors.settings.schema import COMMON, EXPERT, explained, level_of
from tests.support.reference import (
    OPENAI,
    OPERATORS,
    OTHERS,
    PAGES,
    ROOT,
    SOCKET_EVENTS,
    WRITERS,
    eliza,
    page,
)

WEB = ROOT / "connectors" / "web"
TOLD = re.compile(
    r'''(?:ClientEvent\(\s*sid,|news_of\(|\bevent=|^LINE =|\bevent ==)\s*"(\w+)"''',
    re.MULTILINE,
)
WAY = re.compile(r'(?:Route\(\s*|in \(|, )"(/[^"]*)"')


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_the_reference_is_true(name: str) -> None:
    written = (PAGES / name).read_text(encoding="utf-8")
    assert page(name) == written, "python -m tests.support.reference"


def test_each_event_of_a_socket_is_there() -> None:
    code = "".join(each.read_text() for each in sorted((WEB / "eliza").rglob("*.py")))
    assert set(TOLD.findall(code)) == set(SOCKET_EVENTS)


def test_each_way_of_the_servers_is_there() -> None:
    found: set[str] = set()
    for name in ("operations", "webhooks", "openai/transport"):
        found |= set(WAY.findall((WEB / f"{name}.py").read_text()))
    told = {each.split(" ")[-1] for each in (*OPENAI, *OPERATORS, *OTHERS)}
    found.remove("/{path:path}")  # all that a node passes on to another
    assert {each.replace(":path", "") for each in found} == told


def test_each_way_of_the_elizaos_api_says_what_it_does() -> None:
    ways = eliza()
    assert len(ways) > 100
    assert all(words for _, _, _, words in ways)


@pytest.mark.parametrize("key", [*COMMON, *EXPERT])
def test_each_setting_with_a_level_is_there(key: str) -> None:
    assert explained(key.split("."))


def test_few_settings_are_for_everybody() -> None:
    assert len(COMMON) <= 20
    assert level_of(("agents", "anna", "model")) == "common"
    assert level_of(("limits", "turn_timeout")) == "expert"
    assert level_of(("log", "format")) == "advanced"
