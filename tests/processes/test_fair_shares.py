"""One client that asks much over HTTP, as somebody else each time, stops no other."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import trio

from tests.processes.running import PATIENCE, served

WAITING = re.compile(r"^callboard_turns_waiting\{.*\} ([1-9].*)$", re.MULTILINE)
LIMITS = """
[limits]
max_in_flight = 2
"""


def asked(text: str) -> dict[str, object]:
    return {"model": "anna", "messages": [{"role": "user", "content": text}]}


async def test_a_client_whose_requests_all_hang_leaves_turns_to_another(
    tmp_path: Path,
) -> None:
    elsewhere = httpx.AsyncHTTPTransport(local_address="127.0.0.2")
    with served(tmp_path, more=LIMITS) as server:
        url = f"{server.url}/v1/chat/completions"
        async with (
            httpx.AsyncClient(timeout=PATIENCE) as one,
            httpx.AsyncClient(timeout=PATIENCE, transport=elsewhere) as other,
            trio.open_nursery() as nursery,
        ):
            for _ in range(6):  # without a user: each is somebody else
                nursery.start_soon(lambda: one.post(url, json=asked("never")))
            with trio.fail_after(PATIENCE):
                while not WAITING.search(
                    (await other.get(f"{server.url}/metrics")).text
                ):
                    pass
                answer = await other.post(url, json=asked("hello"))
            assert answer.status_code == 200, answer.text
            nursery.cancel_scope.cancel()
