"""Proves that a server whose disk is full says so and goes on; a broken one ends."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import resource
from pathlib import Path

import apsw
import httpx
import pytest
import trio
import trio.testing

from tests.processes.running import PATIENCE, Server, rows, served

BODY = {"model": "anna", "messages": [{"role": "user", "content": "hello"}]}
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def fill_disk(server: Server) -> None:
    """Let nothing more be written behind what the server has written last."""
    [journal] = server.folder.glob("callboard.db-wal")
    written = journal.stat().st_size
    assert len(server.log) < written / 2
    limits = (written, resource.RLIM_INFINITY)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)


async def wait_ready(client: httpx.AsyncClient, *, is_ready: bool) -> list[str]:
    """Wait for what `/readyz` says; gives the reasons."""
    with trio.fail_after(PATIENCE):
        while True:
            answer = await client.get("/readyz")
            assert answer.status_code == (200 if answer.json()["ready"] else 503)
            if answer.json()["ready"] is is_ready:
                return list(answer.json()["reasons"])
            await trio.testing.wait_all_tasks_blocked(0.02)


async def wait_refused(
    client: httpx.AsyncClient,
) -> tuple[int, int, httpx.Response]:
    """Write until the disk is full: a journal begun anew has room for a while.

    The disk may get full between a message and its answer, which then waits for room.

    Gives the number of messages that were answered before, the number of those that
    got no answer within seconds, and the refusal.
    """
    answered = waiting = 0
    with trio.fail_after(PATIENCE):
        while True:
            answer = None
            with trio.move_on_after(PATIENCE / 6):
                answer = await client.post("/v1/chat/completions", json=BODY)
            if answer is None:
                waiting += 1
            elif answer.status_code != 200:
                return answered, waiting, answer
            else:
                answered += 1


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux has prlimit")
async def test_a_full_disk_is_told_and_survived(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
            before = await client.post("/v1/chat/completions", json=BODY)
            assert before.status_code == 200
            fill_disk(server)
            answered, waiting, refused = await wait_refused(client)
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "unavailable"
            assert "retry-after" in refused.headers
            reasons = await wait_ready(client, is_ready=False)
            assert reasons[0].startswith("the store cannot write")
            assert (await client.get("/healthz")).status_code == 200
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, UNLIMITED)
            await wait_ready(client, is_ready=True)
            after = await client.post("/v1/chat/completions", json=BODY)
            assert after.status_code == 200
        assert await server.end() == 0
    [(stored,)] = rows(tmp_path, "SELECT count(*) FROM inbox")
    assert stored in range(answered + 2, answered + waiting + 3)
    assert "Traceback" not in server.log


def rename(folder: Path, old: str, new: str) -> None:
    """Give a table of the server's database another name."""
    db = apsw.Connection(str(folder / "callboard.db"))
    db.set_busy_timeout(1000)
    db.execute(f"ALTER TABLE {old} RENAME TO {new}")
    db.close()


async def test_a_broken_store_ends_the_server_and_the_next_one_goes_on(
    tmp_path: Path,
) -> None:
    with served(tmp_path) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
            before = await client.post("/v1/chat/completions", json=BODY)
        assert before.status_code == 200
        rename(tmp_path, "inbox", "elsewhere")  # as a bug in a statement would be
        assert await server.wait() == 1
    last = server.log.strip().splitlines()[-1]
    assert last.startswith("callboard: the root supervisor failed")
    assert "no such table: inbox" in last
    rename(tmp_path, "elsewhere", "inbox")
    with served(tmp_path) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
            await wait_ready(client, is_ready=True)
        assert await server.end() == 0
    assert rows(tmp_path, "SELECT state FROM inbox") == [("replied",)]
