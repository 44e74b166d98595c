"""Proves that `docs/defaults.md` gives the defaults that `config/default.toml` has."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from tests.house.test_house import ROOT

PAGE = ROOT / "docs" / "defaults.md"
ROW = re.compile(
    r"^\| `(?P<setting>[\w.]+)` \|[^|]*\| `(?P<ours>[^`]+)` \|", re.MULTILINE
)
ROWS = [(x["setting"], x["ours"]) for x in ROW.finditer(PAGE.read_text("utf-8"))]


def default_of(setting: str) -> Any:
    found: Any = tomllib.loads((ROOT / "config/default.toml").read_text("utf-8"))
    for key in setting.split("."):
        found = found[key]
    return found


def test_each_row_of_the_page_is_read() -> None:
    lines = [x for x in PAGE.read_text("utf-8").splitlines() if x.startswith("| `")]
    assert len(ROWS) == len(lines) > 20


@pytest.mark.parametrize(("setting", "ours"), ROWS)
def test_a_default_is_what_the_page_says(setting: str, ours: str) -> None:
    assert tomllib.loads(f"x = {ours}")["x"] == default_of(setting)
