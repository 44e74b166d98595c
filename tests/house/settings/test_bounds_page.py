"""Proves that docs/bounds.md names settings and metrics that exist, for all bounds."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "bounds.md").read_text(encoding="utf-8")
KNOWN = (ROOT / "tests/house/stored_names.txt").read_text(encoding="utf-8").split("\n")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ")
][1:]

WANTED = (
    *("commits", "bridge", "log lines", "tool server", "sandbox", "embed"),
    *("attachments", "fetched", "outgoing webhook", "tabs", "HTTP server"),
    *("lines of the router", "open messages", "dead letters", "memory"),
)


def test_each_shared_bound_has_a_row() -> None:
    rows = "\n".join(row[0] for row in ROWS)
    assert [each for each in WANTED if each not in rows] == []
    assert {len(row) for row in ROWS} == {5}


def test_each_setting_exists() -> None:
    named = set(re.findall(r"`([\w.*]+\.[\w.*]+)`", "\n".join(map(str, ROWS))))
    assert len(named) > 10
    assert [each for each in named if f"setting {each}" not in KNOWN] == []


def test_each_row_says_how_it_is_seen_by_metrics_that_exist() -> None:
    for row in ROWS:
        metrics = re.findall(r"`(callboard_\w+)`", row[4])
        assert metrics or "log" in row[4], row[0]
        assert [each for each in metrics if f"metric {each}" not in KNOWN] == []


def test_every_limit_of_the_settings_that_people_share_has_a_row() -> None:
    wanted = {"max_in_flight", "max_open", "max_waiting", "max_at_once", "max_calls"}
    shared = [
        name.removeprefix("setting ")
        for name in KNOWN
        if name.startswith("setting ") and name.rpartition(".")[2] in wanted
    ]
    assert len(shared) > len(wanted)
    assert [each for each in shared if f"`{each}`" not in PAGE] == []
