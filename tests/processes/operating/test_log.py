"""Proves that a server's log tells of its life, and of no word that anybody says."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import httpx
import trio

from runtime import __version__
from tests.processes.running import PATIENCE, run, served

CANARY = "canary-4711"


async def test_a_log_tells_of_life_and_of_no_words(tmp_path: Path) -> None:
    with (
        served(
            tmp_path,
            CALLBOARD_LOG__LEVEL="debug",
            CALLBOARD_LOG__FILE="callboard.log",
            CALLBOARD_LOG__FORMAT="text",
        ) as server,
        trio.fail_after(PATIENCE),
    ):
        async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
            await say_canary(client)
        server.process.send_signal(signal.SIGHUP)
        log = tmp_path / "callboard.log"
        while "settings read again applied=nothing" not in log.read_text():
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert await server.end() == 0
    told = log.read_text()
    assert CANARY not in told
    assert "2345678" not in told
    assert server.log == ""
    assert "message received" in told
    for line in ("started", 'stopping why="a signal"', "drained", "stopped"):
        assert f" INFO callboard.serve {line}" in told
    assert f"release={__version__} process={server.process.pid}" in told
    assert_shown(tmp_path)


async def say_canary(client: httpx.AsyncClient) -> None:
    way = "/v1/chat/completions"
    for text in ("hello", "/nothing", "/forget", "[MEMORY: it]"):
        said = f"{text} {CANARY} my phone is 0171 2345678"
        messages = [{"role": "user", "content": said}]
        body = {"model": "anna", "messages": messages, "user": "sam"}
        await client.post(way, json=body)
    await client.post(way, content=f'{{"x{CANARY}"')


def assert_shown(folder: Path) -> None:
    name = "callboard.log"
    shown = run("logs", name, "--agent", "anna", "--json", "-n", "1", folder=folder)
    assert shown.code == 0, shown.said
    assert json.loads(shown.out)["event"] == "turn ended"
    none = run("logs", "--level", "error", folder=folder, CALLBOARD_LOG__FILE=name)
    assert (none.code, none.out) == (1, "")
    piped = run("logs", "-", "--connector", "x", folder=folder, typed="a\nb\n")
    assert (piped.code, piped.said) == (1, "")
    missing = run("logs", folder=folder)
    assert missing.code == 1
    assert "journalctl -u callboard -o cat | callboard logs -" in missing.err
