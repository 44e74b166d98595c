"""Proves that what people said by socket or REST outlives kills of the program."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import trio

from connectors.web.eliza.messages import ZERO, to_uuid
from tests.fakes.websocket.client import SocketClient
from tests.processes.running import PATIENCE, rows, served

MORE = """
[connectors.web]
kind = "web"
port = {web}
rate_limit = 0

[connectors.plain]
kind = "websocket"
port = {plain}
"""
CLIENT = "a-client-of-this-test-0001"
ANNA, ZOE = to_uuid("anna"), to_uuid("Zoe")
API = "/api/messaging"
KILLS = 2
"""Below `retries.attempts`."""

WANTED = [f"{kill}.{number}" for kill in range(KILLS) for number in range(3)]


def free_ports() -> tuple[int, int]:
    """Find two ports that nobody has now."""
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        return one.getsockname()[1], two.getsockname()[1]


async def dial(port: int) -> trio.SocketStream:
    """Connect as soon as somebody listens."""
    with trio.fail_after(PATIENCE):
        while True:
            with contextlib.suppress(OSError):
                return await trio.open_tcp_stream("127.0.0.1", port)
            await trio.lowlevel.checkpoint()


@asynccontextmanager
async def connected(port: int, **more: object) -> AsyncGenerator[SocketClient]:
    """Connect to the plain WebSocket, always as the same client."""
    client = SocketClient(await dial(port))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.run)
        await client.open()
        await client.send("hello", client=CLIENT, **more)
        await client.next_of("welcome")
        yield client
        await client.drop()


@pytest.mark.deep
async def test_what_was_said_by_a_plain_socket_is_answered_once_through_kills(
    tmp_path: Path,
) -> None:
    web, plain = free_ports()
    more = MORE.format(web=web, plain=plain)
    for kill in range(KILLS):
        with served(tmp_path, more=more) as program:
            async with connected(plain) as client:
                for number in range(3):
                    name = f"{kill}.{number}"
                    await client.send("message", content=f"later {name}", id=name)
                await client.next_of("received", 3)
                await program.end(signal.SIGKILL)
    with served(tmp_path, more=more) as program:
        async with connected(plain, after=0) as client:
            await client.send("message", content="later 0.0", id="0.0")
            assert (await client.next_of("received"))["again"]
            await client.next_of("message", len(WANTED))
        async with connected(plain, after=0) as client:
            await client.next_of("message", len(WANTED))
            numbers = [each["id"] for each in client.of("message")]
            assert sorted(client.said()) == WANTED
        assert await program.end() == 0
    assert numbers == sorted(set(numbers))
    assert rows(tmp_path, "SELECT count(*) FROM inbox") == [(len(WANTED),)]


async def post(client: httpx.AsyncClient, channel: str, text: str) -> None:
    """Say something in a web channel, under an id of its own."""
    body = {
        "content": text,
        "author_id": ZOE,
        "message_server_id": ZERO,
        "message_id": to_uuid(text),
    }
    path = f"{API}/channels/{channel}/messages"
    assert (await client.post(path, json=body)).status_code < 300


async def said_in(client: httpx.AsyncClient, channel: str) -> list[str]:
    """Read what agents said in a web channel, the oldest first."""
    path = f"{API}/channels/{channel}/messages"
    found = (await client.get(path, params={"limit": 100})).json()["data"]["messages"]
    return [e["content"] for e in reversed(found) if e["authorId"] == ANNA]


@pytest.mark.deep
async def test_what_was_said_by_rest_is_answered_once_through_kills(
    tmp_path: Path,
) -> None:
    web, plain = free_ports()
    more = MORE.format(web=web, plain=plain)
    params = {"currentUserId": ZOE, "targetUserId": ANNA, "messageServerId": ZERO}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{web}") as client:
        channel = ""
        for kill in range(KILLS):
            with served(tmp_path, more=more) as program:
                await (await dial(web)).aclose()
                found = await client.get(f"{API}/dm-channel", params=params)
                channel = found.json()["data"]["id"]
                for number in range(3):
                    await post(client, channel, f"later {kill}.{number}")
                await program.end(signal.SIGKILL)
        with served(tmp_path, more=more) as program:
            await (await dial(web)).aclose()
            await post(client, channel, "later 0.0")
            with trio.fail_after(PATIENCE):
                while len(await said_in(client, channel)) < len(WANTED):
                    await trio.lowlevel.checkpoint()
            assert sorted(await said_in(client, channel)) == WANTED
            assert await program.end() == 0
    assert rows(tmp_path, "SELECT count(*) FROM inbox") == [(len(WANTED),)]
