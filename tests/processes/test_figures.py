"""Proves that a running server tells its figures, and how it is."""

from __future__ import annotations

from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.processes.running import PATIENCE, served

NEEDED = {
    "callboard_messages": {"connector", "outcome"},
    "callboard_turns": {"agent", "outcome"},
    "callboard_stage_seconds": {"stage"},
    "callboard_model_call_seconds": {"model", "outcome"},
    "callboard_tool_call_seconds": {"tool", "outcome"},
    "callboard_mailbox_depth": {"kind"},
    "callboard_actor_restarts": {"kind", "reason"},
    "callboard_dead_letters": {"reason"},
    "callboard_commit_seconds": set[str](),
    "callboard_loop_lag_seconds": set[str](),
    "process_resident_memory_bytes": set[str](),
    "process_cpu_seconds": set[str](),
}
"""By metric: its labels."""

MOST_SERIES = 600
"""Of two agents, one tool and one connector; no label holds what people send."""


async def test_a_scraper_finds_what_it_needs(tmp_path: Path) -> None:
    body = {"model": "anna", "messages": [{"role": "user", "content": "sum 6 * 7"}]}
    with served(tmp_path) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
            await client.post("/v1/chat/completions", json=body)
            scraped = await client.get("/metrics")
    assert scraped.headers["content-type"].startswith("text/plain; version=")
    families = {
        each.name: each for each in text_string_to_metric_families(scraped.text)
    }
    for name, labels in NEEDED.items():
        family = families[name]
        assert family.documentation, name
        found = {key for sample in family.samples for key in sample.labels}
        assert found - {"le"} <= labels, name
    values = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families.values()
        for sample in family.samples
    }
    assert values["callboard_messages_total", "accepted", "http"] == 1
    assert values["callboard_turns_total", "anna", "ok"] == 1
    assert values["callboard_turns_total", "ben", "ok"] == 1
    assert values["callboard_tool_call_seconds_count", "calculate", "ok"] == 1
    assert len(values) < MOST_SERIES


async def test_a_server_that_runs_is_healthy_and_ready(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
            healthy = await client.get("/healthz")
            ready = await client.get("/readyz")
    assert (healthy.status_code, healthy.text) == (200, "ok\n")
    assert (ready.status_code, ready.json()) == (200, {"ready": True, "reasons": []})
