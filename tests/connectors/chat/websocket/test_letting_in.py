"""Who may connect to the plain WebSocket, and what the others are told."""

from __future__ import annotations

import contextlib

import pytest
import trio

from actors.transport import RefusedAttempt
from connectors.chat.websocket.platform import WebSocketConfig
from connectors.chat.websocket.transport import open_socket
from runtime.secret import Secret
from tests.support.chat.websocket_bed import ZOE, open_sockets

KEY = "a-key-that-nobody-guesses-ever"
KEYED = WebSocketConfig(port=0, api_key=Secret(KEY))


@pytest.mark.parametrize(
    "headers", [{"authorization": f"Bearer {KEY}"}, {"x_api_key": KEY}]
)
async def test_a_key_may_be_sent_as_a_header(headers: dict[str, str]) -> None:
    async with open_sockets(KEYED) as bed:
        client = await bed.dial()
        await client.open(**headers)
        await client.send("message", content="hello")
        assert (await bed.ingress.next()).text == "hello"


async def test_a_key_may_be_sent_in_the_first_frame() -> None:
    async with open_sockets(KEYED) as bed:
        client = await bed.join(key=KEY)
        await client.send("message", content="hello")
        assert (await bed.ingress.next()).text == "hello"


@pytest.mark.parametrize("frame", ["hello", "message", "ping"])
async def test_without_the_key_nothing_is_taken(frame: str) -> None:
    async with open_sockets(KEYED) as bed:
        client = await bed.dial()
        await client.open()
        await client.send(frame, content="hello", key="" if frame == "hello" else KEY)
        await client.wait_ended()
        told = client.of("error")[0]
        assert told["code"] == "unauthorized"
        assert "first frame" in told["do"]
        assert client.closed is not None
        assert client.closed[0] == 1008
        assert bed.ingress.refused[0] == RefusedAttempt("bad_key", "127.0.0.1")
        assert bed.ingress.accepted == []


async def test_a_wrong_key_is_refused_either_way_and_put_on_record() -> None:
    async with open_sockets(KEYED) as bed:
        first = await bed.dial()
        await first.open(authorization="Bearer wröng".encode().decode("latin-1"))
        await first.wait_ended()
        assert first.status == 401
        second = await bed.dial()
        await second.open()
        await second.send("hello", key="wrong")
        await second.wait_ended()
        assert second.of("error")[0]["code"] == "bad_key"
        by_key = RefusedAttempt("bad_key", "127.0.0.1")  # without the port
        assert bed.ingress.refused == [by_key]


@pytest.mark.parametrize(
    ("host", "key", "may"),
    [
        ("127.0.0.1", "", True),
        ("127.0.0.1", KEY, True),
        ("0.0.0.0", "", False),  # noqa: S104  that it is not opened is the point
        ("0.0.0.0", KEY, True),  # noqa: S104
    ],
)
def test_only_with_a_key_other_machines_may_come(
    host: str, key: str, *, may: bool
) -> None:
    config = WebSocketConfig(host=host, port=0, api_key=Secret(key) if key else None)
    if may:
        with open_socket("plain", config) as listening:
            assert listening.getsockname()[0] == host
    else:
        with pytest.raises(OSError, match="reached from other machines; set api_key"):
            open_socket("plain", config)


async def test_nothing_is_taken_from_the_address() -> None:
    async with open_sockets(KEYED) as bed:
        client = await bed.dial()
        await client.open(f"/?key={KEY}")
        await client.wait_ended()
        assert client.status == 400
        assert "first frame" in client.refusal
        await bed.wait_figure("ended_total", why="in_address")


@pytest.mark.parametrize(
    ("origins", "origin", "may"),
    [
        ((), "https://evil.example", False),
        ((), "null", False),
        (("https://chat.example",), "https://chat.example", True),
        (("https://chat.example",), "https://chat.example.evil", False),
        (("*",), "https://evil.example", True),
    ],
)
async def test_a_page_of_somebody_else_may_not_connect(
    origins: tuple[str, ...], origin: str, *, may: bool
) -> None:
    config = WebSocketConfig(port=0, origins=origins)
    async with open_sockets(config) as bed:
        client = await bed.dial()
        await client.open(origin=origin)
        if may:
            await client.send("ping")
            await client.next_of("pong")
        else:
            await client.wait_ended()
            assert client.status == 403
            assert "origins" in client.refusal


async def test_one_client_too_many_is_told_to_come_back() -> None:
    async with open_sockets(WebSocketConfig(port=0, max_connections=1)) as bed:
        first = await bed.join()
        second = await bed.dial()
        await second.open()
        await second.wait_ended()
        assert second.status == 503
        await first.drop()
        await bed.wait_figure("ended_total", why="broken")
        third = await bed.join()
        assert third.of("welcome")


async def test_one_address_leaves_connections_to_others() -> None:
    async with open_sockets(WebSocketConfig(port=0, max_connections=4)) as bed:
        for _ in range(3):
            await bed.join()
        fourth = await bed.dial()
        await fourth.open()
        await fourth.send("hello")  # else it is waited for
        await fourth.wait_ended()
        assert fourth.of("error")[0]["code"] == "full"
        elsewhere = await bed.dial("127.0.0.2")
        await elsewhere.open()
        await elsewhere.send("hello")
        assert await elsewhere.next_of("welcome")


async def test_who_holds_connections_and_says_nothing_keeps_nobody_out() -> None:
    async with open_sockets(WebSocketConfig(port=0, max_connections=3)) as bed:
        strangers = [await bed.dial() for _ in range(5)]
        clients = [await bed.join() for _ in range(2)]
        assert all(each.of("welcome") for each in clients)
        await bed.wait_figure("ended_total", why="full")
        for each in strangers[:3]:
            await each.wait_ended()


async def test_when_no_more_clients_are_remembered_the_oldest_makes_room() -> None:
    async with open_sockets(WebSocketConfig(port=0, max_clients=1)) as bed:
        first = await bed.join(ZOE)
        second = await bed.dial()
        await second.open()
        await second.send("hello")
        await second.wait_ended()
        assert second.of("error")[0]["code"] == "full"
        await first.drop()
        await bed.wait_figure("ended_total", why="broken")
        third = await bed.dial()
        await third.open()
        await third.send("hello")
        made = await third.next_of("welcome")
        assert made["client"].startswith("made-up-client-")


@pytest.mark.parametrize(("host", "status"), [(b"host: a\r\n", 426), (b"", 400)])
async def test_a_browser_that_only_looks_is_told_what_this_is(
    host: bytes, status: int
) -> None:
    async with open_sockets() as bed:
        stream = await trio.open_tcp_stream("127.0.0.1", bed.port)
        async with stream:
            await stream.send_all(b"GET / HTTP/1.1\r\n" + host + b"\r\n")
            told = b"".join([part async for part in stream])
        assert told.startswith(f"HTTP/1.1 {status} ".encode())
        await bed.wait_figure("ended_total", why="no_websocket")


@pytest.mark.parametrize("size", [20_000, 200_000])
async def test_a_head_without_end_is_not_read_to_its_end(size: int) -> None:
    async with open_sockets() as bed:
        client = await bed.dial()
        with contextlib.suppress(trio.BrokenResourceError):
            await client.put(b"GET / HTTP/1.1\r\nx: " + b"a" * size)
        await client.wait_ended()
        assert bed.ingress.accepted == []


HEAD = (
    b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\n"
    b"connection: upgrade\r\nsec-websocket-version: 13\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


@pytest.mark.parametrize(
    "head",
    [
        HEAD.replace(b"127.0.0.1", b"\xff"),
        HEAD.replace(b"connection: upgrade", b"connection: upgrade, \xff"),
        HEAD + b"sec-websocket-protocol: \xff\r\n",
        HEAD + b"sec-websocket-extensions: \xff; \xfe=\r\n",
    ],
)
async def test_a_head_that_cannot_be_read_ends_nobody_elses_connection(
    head: bytes,
) -> None:
    async with open_sockets() as bed:
        other = await bed.join(ZOE)
        client = await bed.dial()
        await client.put(head + b"\r\n")
        await bed.wait_figure("ended_total", why="no_websocket")
        await other.send("ping")
        await other.next_of("pong")


async def test_an_address_that_is_none_ends_nobody_elses_connection() -> None:
    async with open_sockets() as bed:
        other = await bed.join(ZOE)
        client = await bed.dial()
        await client.open("//[x")
        await other.send("ping")
        await other.next_of("pong")


async def test_a_bug_ends_the_connection_that_met_it_alone() -> None:
    async with open_sockets() as bed:
        other = await bed.join(ZOE)
        client = await bed.join()
        bed.ingress.error = RuntimeError("a bug")
        await client.send("message", content="hello")
        await client.wait_ended()
        await bed.wait_figure("ended_total", why="bug")
        await other.send("ping")
        await other.next_of("pong")
