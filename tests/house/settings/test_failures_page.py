"""Proves that docs/failures.md has a row for each failure, and names real metrics."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from actors.errors import ModelFault
from actors.messages.deliveries import Trouble
from actors.messages.state import (
    AttemptHistory,
    MessageState,
    Postpone,
    RetryPolicy,
    TurnDue,
    TurnFailed,
)
from connectors.web.server import TROUBLE_STATUS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "failures.md").read_text(encoding="utf-8")
# The name of a fault and of a trouble, `timeout`, has two rows; the later one counts.
ROWS = dict(re.findall(r"^\| `(\w+)` \|(.*)$", PAGE, re.MULTILINE))


def test_each_fault_of_a_model_and_each_trouble_has_a_row() -> None:
    wanted = {*get_args(ModelFault), *get_args(Trouble)} - {""}
    assert set(ROWS) == wanted


def test_each_status_over_http_is_the_one_that_clients_get() -> None:
    for trouble, (_, status, wait) in TROUBLE_STATUS.items():
        assert f" {status}" in ROWS[trouble], trouble
        assert ("retry-after" in ROWS[trouble]) is (wait is not None), trouble


def test_the_metrics_are_those_that_there_are() -> None:
    known = (ROOT / "tests/house/stored_names.txt").read_text(encoding="utf-8")
    for name in re.findall(r"`(callboard_\w+?)(?:_total)?[{`]", PAGE):
        assert f"metric {name}" in known, name


def test_the_waits_that_texts_name_are_those_of_the_defaults() -> None:
    state, waits = MessageState(RetryPolicy(), AttemptHistory()), list[str]()
    failed = TurnFailed("unavailable", may_retry=True, now=0.0)
    state.on(TurnDue(0.0))
    while isinstance(effect := state.on(failed), Postpone):
        waits.append(f"{effect.due_at / 60:g}")
        state.on(TurnDue(effect.due_at))
    said = f"{' and '.join(waits)} minutes"
    docs = (
        "docs/failures.md",
        "docs/defaults.md",
        "docs/guarantees.md",
        "config/default.toml",
    )
    for name in docs:
        assert said in (ROOT / name).read_text(encoding="utf-8"), name
