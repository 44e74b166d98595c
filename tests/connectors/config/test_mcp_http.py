"""Proves that addresses without a server, or with a bad one, do no harm."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from connectors.config.mcp import McpServerConfig
from tests.support.mcp_bed import Plan, running

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

pytest.importorskip("mcp", reason="the extra mcp is not installed")

# Why: the protocol's library leaves its generators half read when a body fails.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

OK = "HTTP/1.1 200 OK\r\ncontent-type: "
HEAD = OK + "application/json\r\ncontent-length: {size}\r\n\r\n"
HUGE = 9 * 1024 * 1024
EVENTS = OK + "text/event-stream\r\n\r\n"
ANSWERS = {
    "error": b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n",
    "garbage": HEAD.format(size=3).encode() + b"{{{",
    "nothing": b"",
    "huge": HEAD.format(size=HUGE).encode() + b" " * HUGE,
    "events": EVENTS.encode() + b"data: {no json\n\n" * 50,
    "page": (OK + "text/html\r\ncontent-length: 2\r\n\r\nhi").encode(),
}


class Host:
    """Answers every request alike."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []

    async def serve(self, answer: bytes, stream: trio.SocketStream) -> None:
        try:
            self.requests.append(bytes(await stream.receive_some(65_536)))
            await stream.send_all(answer)
            await stream.aclose()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return


@asynccontextmanager
async def answering(host: Host, answer: bytes) -> AsyncGenerator[str]:
    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, partial(host.serve, answer), 0)
        (listener,) = await nursery.start(partial(serve, host="127.0.0.1"))
        yield f"http://127.0.0.1:{listener.socket.getsockname()[1]}/mcp"
        nursery.cancel_scope.cancel()


def plan(url: str) -> Plan:
    config = McpServerConfig(url=url, start_timeout=3.0, restart_first=60.0)
    return Plan({"files": config})


@pytest.mark.parametrize("kind", list(ANSWERS))
async def test_a_host_that_is_no_server_is_a_note(kind: str) -> None:
    host = Host()
    async with answering(host, ANSWERS[kind]) as url, running(plan(url)) as bed:
        offer = await bed.offer()
        assert offer.tools == ()
        assert "it is being started again" in offer.notes[0]
        assert bed.count("lost") == 1
    assert host.requests


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (401, "it asks for a key (HTTP 401)"),
        (403, "it does not let us in (HTTP 403)"),
        (500, "it answered HTTP 500"),
    ],
)
async def test_a_host_that_refuses_is_told_from_one_that_is_no_server(
    status: int, told: str
) -> None:
    login = "www-authenticate: Bearer resource_metadata=x\r\n" * (status == 401)
    answer = f"HTTP/1.1 {status} No\r\n{login}content-length: 0\r\n\r\n".encode()
    async with answering(Host(), answer) as url, running(plan(url)) as bed:
        offer = await bed.offer()
        assert told in offer.notes[0]
        assert ("headers" in offer.notes[0]) == (status == 401)


async def test_nobody_is_led_to_another_host() -> None:
    first, second = Host(), Host()
    async with answering(second, ANSWERS["error"]) as elsewhere:
        moved = f"HTTP/1.1 307 Go\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n"
        async with answering(first, moved.encode()) as url, running(plan(url)) as bed:
            assert (await bed.offer()).tools == ()
    assert first.requests
    assert second.requests == []
