"""Proves that the reference says what the code does, and that levels name settings."""

from __future__ import annotations

import pytest

from connectors.settings.schema import COMMON, EXPERT, explained, level_of
from tests.support.reference import PAGES, pages


@pytest.mark.parametrize("name", ["settings.md", "commands.md", "metrics.md"])
def test_the_reference_is_true(name: str) -> None:
    written = (PAGES / name).read_text(encoding="utf-8")
    assert pages()[name] == written, "python -m tests.support.reference"


@pytest.mark.parametrize("key", [*COMMON, *EXPERT])
def test_each_setting_with_a_level_is_there(key: str) -> None:
    assert explained(key.split("."))


def test_few_settings_are_for_everybody() -> None:
    assert len(COMMON) <= 20
    assert level_of(("agents", "anna", "model")) == "common"
    assert level_of(("limits", "turn_timeout")) == "expert"
    assert level_of(("log", "format")) == "advanced"
