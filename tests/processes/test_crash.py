"""Proves that a process killed under load loses no message that it has taken."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import httpx
import pytest
import trio
import trio.testing

from tests.processes.running import PATIENCE, Server, rows, served

KILLS = 5
FEWEST = 12
"""Messages taken before a kill."""

CHATS = 8


async def talk(server: Server, chat: str) -> None:
    """Say one thing after the other until the server is gone."""
    body = {"model": "anna", "messages": [{"role": "user", "content": "sum 6 * 7"}]}
    headers = {"x-callboard-conversation": chat}
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
        while True:
            try:
                await client.post("/v1/chat/completions", json=body, headers=headers)
            except httpx.TransportError:
                return


async def kill_under_load(folder: Path, taken: int) -> None:
    """Start a server, have many talk to it, kill it after so many messages."""
    with served(folder) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
            assert (await client.get("/readyz")).status_code == 200
        before = server.log.count("message received")
        async with trio.open_nursery() as nursery:
            for number in range(CHATS):
                nursery.start_soon(talk, server, f"chat{number}")
            while server.log.count("message received") < before + taken:
                await trio.testing.wait_all_tasks_blocked(0.005)
            assert await server.end(signal.SIGKILL) == -signal.SIGKILL


@pytest.mark.deep
async def test_every_message_taken_is_settled_after_the_last_start(
    tmp_path: Path,
) -> None:
    with trio.fail_after(2 * PATIENCE):
        for number in range(KILLS):
            await kill_under_load(tmp_path, taken=FEWEST + 5 * number)
        with served(tmp_path) as server:
            while rows(tmp_path, "SELECT 1 FROM inbox WHERE settled_at IS NULL"):
                await trio.testing.wait_all_tasks_blocked(0.02)
            while rows(tmp_path, "SELECT 1 FROM outbox WHERE settled_at IS NULL"):
                await trio.testing.wait_all_tasks_blocked(0.02)
            assert await server.end() == 0
    events = [json.loads(line) for line in server.log.splitlines()]
    taken = {
        event["correlation_id"]
        for event in events
        if event["event"] == "message received"
    }
    assert len(taken) >= KILLS * FEWEST
    assert taken <= {number for (number,) in rows(tmp_path, "SELECT id FROM inbox")}
    check_database(tmp_path)
    assert "Traceback" not in server.log


def check_database(folder: Path) -> None:
    assert rows(folder, "PRAGMA integrity_check") == [("ok",)]
    # Every message was answered, by its own agent, once.
    assert rows(folder, "SELECT DISTINCT state FROM inbox") == [("replied",)]
    twice = "SELECT correlation_id, body FROM outbox GROUP BY 1, 2 HAVING count(*) > 1"
    assert rows(folder, twice) == []
    unjournalled = """SELECT id FROM inbox WHERE NOT EXISTS
        (SELECT 1 FROM journal WHERE instr(journal.body, inbox.id) > 0)"""
    assert rows(folder, unjournalled) == []
    # Each chat's history is whole: numbered from 1 without a gap.
    gaps = "SELECT stream FROM journal GROUP BY 1 HAVING max(sequence) <> count(*)"
    assert rows(folder, gaps) == []
