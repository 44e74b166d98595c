"""Proves that a running server tells its figures, and how it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.processes.running import PATIENCE, served

if TYPE_CHECKING:
    from pathlib import Path

NEEDED = {
    "callboard_messages": {"connector", "outcome"},
    "callboard_turns": {"agent", "outcome"},
    "callboard_stage_seconds": {"stage"},
    "callboard_model_call_seconds": {"model", "outcome"},
    "callboard_tool_call_seconds": {"tool", "outcome"},
    "callboard_mailbox_depth": {"kind"},
    "callboard_restarts": {"kind", "reason"},
    "callboard_dead_letters": {"reason"},
    "callboard_commit_seconds": set[str](),
    "callboard_loop_lag_seconds": set[str](),
    "process_resident_memory_bytes": set[str](),
    "process_cpu_seconds": set[str](),
}
"""By metric: its labels."""

READY_MEMORY = 60e6


async def test_a_scraper_finds_what_it_needs(tmp_path: Path) -> None:
    body = {"model": "anna", "messages": [{"role": "user", "content": "sum 6 * 7"}]}
    with served(tmp_path) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
            await client.post("/v1/chat/completions", json=body)
            scraped = await client.get("/metrics")
    assert scraped.headers["content-type"].startswith("text/plain; version=")
    families = {each.name: each for each in text_string_to_metric_families(scraped.text)}
    for name, labels in NEEDED.items():
        family = families[name]
        assert family.documentation, name
        found = {key for sample in family.samples for key in sample.labels}
        assert found - {"le"} <= labels, name
    values = {(s.name, *s.labels.values()): s.value for f in families.values() for s in f.samples}
    assert values["callboard_messages_total", "http", "accepted"] == 1
    assert values["callboard_turns_total", "anna", "ok"] == 1
    assert values["callboard_turns_total", "ben", "ok"] == 1
