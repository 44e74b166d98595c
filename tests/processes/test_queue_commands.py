"""Proves that an operator's commands work on the database of a running server."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import trio
import trio.testing

from tests.processes.running import PATIENCE, Server, rows, run, run_here, served

# The first attempt asks the model three times; a fourth time it answers.
SCRIPT = r"""
[default]
reply = "you said {0}"

[[rule]]
pattern = '\Astumble'
fail = "busy"
fail_times = 3
retry_after = 0.01
reply = "up again"
"""

SETTINGS = """
[retries]
attempts = 1

[models.moody]
kind = "scripted"
script = "moody.toml"

[agents.cora]
model = "moody"
prompt = "You are Cora."
"""

TALKERS = 4


@contextmanager
def company(folder: Path) -> Generator[Server]:
    """Serve two agents, one of whose models is busy at first."""
    (folder / "moody.toml").write_text(SCRIPT, encoding="utf-8")
    with served(folder, http="retry_failures = true", more=SETTINGS) as server:
        yield server


async def say(server: Server, agent: str, text: str, chat: str) -> int:
    """Say something in a conversation; gives the status."""
    body = {"model": agent, "messages": [{"role": "user", "content": text}]}
    headers = {"x-callboard-conversation": chat}
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
        path = "/v1/chat/completions"
        return (await client.post(path, json=body, headers=headers)).status_code


async def callboard(folder: Path, *arguments: str) -> str:
    """Run a command that must do its work, and give what it wrote."""
    done = await trio.to_thread.run_sync(lambda: run_here(*arguments, folder=folder))
    assert (done.code, done.err) == (0, ""), arguments
    return done.out


async def wait_until(folder: Path, query: str) -> None:
    """Wait until a query of the database gives something."""
    with trio.fail_after(PATIENCE):
        while not rows(folder, query):
            await trio.testing.wait_all_tasks_blocked(0.001)  # others go on talking


async def test_a_failed_message_is_listed_tried_again_and_answered(
    tmp_path: Path,
) -> None:
    with company(tmp_path) as server:
        assert await say(server, "cora", "stumble", "kitchen") == 503
        (job,) = json.loads(await callboard(tmp_path, "queue", "list", "--json"))
        assert (job["status"], job["agent"], job["attempts"]) == ("failed", "cora", 1)
        shown = await callboard(tmp_path, "queue", "show", job["id"])
        assert "stumble" in shown
        await callboard(tmp_path, "queue", "retry", job["id"])
        await wait_until(tmp_path, "SELECT 1 FROM inbox WHERE state = 'replied'")
        told = await callboard(tmp_path, "replay", "cora")
        assert "cora: up again" in told
        checked = await callboard(tmp_path, "records", "check")
        assert checked.endswith(": 0 differences\n")
        refused = run("records", "rebuild", folder=tmp_path)
        assert (refused.code, "in use" in refused.err) == (1, True)
        assert await server.end() == 0
    assert run("queue", "list", folder=tmp_path).out == (
        "No message is pending or running or failed.\n"
    )


async def talk(server: Server, number: int, enough: trio.Event) -> None:
    """Say one thing after the other until that is enough."""
    while not enough.is_set():
        await say(server, "anna", "sum 6 * 7", f"chat{number}")


@pytest.mark.deep
async def test_a_copy_taken_under_load_is_put_back_whole(tmp_path: Path) -> None:
    enough = trio.Event()
    with served(tmp_path) as server:
        async with trio.open_nursery() as nursery:
            for number in range(TALKERS):
                nursery.start_soon(talk, server, number, enough)
            await wait_until(tmp_path, "SELECT 1 FROM inbox WHERE number > 20")
            told = json.loads(await callboard(tmp_path, "backup", "copy.db", "--json"))
            enough.set()
        in_use = run("restore", "copy.db", "--yes", folder=tmp_path)
        assert (in_use.code, "in use" in in_use.err) == (1, True)
        assert await server.end() == 0
    assert told["rows"]["messages"] > 20
    await callboard(tmp_path, "restore", "copy.db", "--yes")
    assert rows(tmp_path, "SELECT count(*) FROM inbox") == [(told["rows"]["messages"],)]
    assert rows(tmp_path, "PRAGMA integrity_check") == [("ok",)]
    checked = await callboard(tmp_path, "records", "check")
    assert checked.endswith(": 0 differences\n")
    with served(tmp_path) as server:  # what was under way in the copy is answered
        open_rows = "SELECT 1 WHERE NOT EXISTS"
        open_rows += " (SELECT 1 FROM inbox WHERE settled_at IS NULL)"
        await wait_until(tmp_path, open_rows)
        assert await server.end() == 0
    assert rows(tmp_path, "SELECT DISTINCT state FROM inbox") == [("replied",)]
