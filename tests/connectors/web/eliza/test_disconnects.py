"""Ways to lose the web channel: no message is lost by them, and none is taken twice.

Each script loses one message's way; whoever sent it sends it again under its own id, as
clients do that had no answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
import trio
import trio.testing

from actors.errors import OverloadedError, StoppingError
from connectors.web.eliza.messages import to_uuid
from connectors.web.eliza.platform import WebConfig, WebKeyConfig
from runtime.errors import StoreUnavailableError
from runtime.secret import Secret
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.web.eliza import ANNA, API, ZERO, ZOE, WebBed, open_web

Script = Callable[[WebBed, str], Awaitable[None]]
LOST = to_uuid("the one that is lost on its way")
BODY = {
    "content": "lost",
    "author_id": ZOE,
    "message_server_id": ZERO,
    "message_id": LOST,
}


def post(channel: str, body: bytes) -> bytes:
    """Write a whole request."""
    head = (
        f"POST {API}/channels/{channel}/messages HTTP/1.1\r\nhost: 127.0.0.1\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@asynccontextmanager
async def dialled(bed: WebBed) -> AsyncGenerator[trio.SocketStream]:
    """Connect by TCP; the end is without a word."""
    async with await trio.open_tcp_stream("127.0.0.1", bed.port) as stream:
        yield stream


def cut(at: float) -> Script:
    """Drop the connection when a part of the request is sent."""

    async def play(bed: WebBed, channel: str) -> None:
        request = post(channel, msgspec.json.encode(BODY))
        async with dialled(bed) as stream:
            await stream.send_all(request[: int(len(request) * at)])

    return play


async def answer_lost(bed: WebBed, channel: str) -> None:
    """Drop the connection when the message is stored and the answer under way."""
    async with dialled(bed) as stream:
        await stream.send_all(post(channel, msgspec.json.encode(BODY)))
        await bed.ingress.is_asked.wait()


async def half_open(bed: WebBed, channel: str) -> None:
    """Let twenty connections stay silent in the middle of a request."""
    request = post(channel, msgspec.json.encode(BODY))
    for number in range(20):
        stream = await trio.open_tcp_stream("127.0.0.1", bed.port)
        await stream.send_all(request[: 10 * number])
        bed.kept_open.append(stream)


async def nobody_reads(bed: WebBed, channel: str) -> None:
    """Ask for a stream, and do not read it."""
    body = msgspec.json.encode(BODY | {"transport": "sse"})
    async with dialled(bed) as stream:
        await stream.send_all(post(channel, body))
        inbound = await bed.ingress.next()
        await bed.answer(inbound, "an answer that nobody reads " * 1000)


def failing(error: Exception, status: int) -> Script:
    """Let the company not take it."""

    async def play(bed: WebBed, channel: str) -> None:
        bed.ingress.error = error
        response = await send(bed, channel)
        assert response.status_code == status
        assert float(response.headers["retry-after"]) > 0
        bed.ingress.error = None

    return play


def nonsense(body: bytes, status: int = 400) -> Script:
    """Send what is no message."""

    async def play(bed: WebBed, channel: str) -> None:
        path = f"{API}/channels/{channel}/messages"
        headers = {"content-type": "application/json"}
        answer = await bed.client.post(path, content=body, headers=headers)
        assert answer.status_code == status
        assert answer.json()["success"] is False

    return play


async def slow_body(bed: WebBed, channel: str) -> None:
    """Let the body come too slowly."""
    request = post(channel, msgspec.json.encode(BODY))
    async with dialled(bed) as stream:
        await stream.send_all(request[:-5])
        with trio.fail_after(5):
            assert b" 408 " in bytes(await stream.receive_some())


SCRIPTS: dict[str, Script] = {
    "dropped in the head": cut(0.2),
    "dropped in mid-body": cut(0.9),
    "dropped before the answer": cut(1.0),
    "answer lost": answer_lost,
    "half-open": half_open,
    "nobody reads": nobody_reads,
    "full disk": failing(StoreUnavailableError("disk full"), 503),
    "overload": failing(OverloadedError("too much"), 429),
    "stopping": failing(StoppingError("it ends"), 503),
    "half a body": nonsense(b'{"content": "lo'),
    "bad bytes": nonsense(b"\xff\xfe\x00"),
    "slow body": slow_body,
}


async def send(bed: WebBed, channel: str, **headers: str) -> httpx.Response:
    """Send the message, again if need be."""
    path = f"{API}/channels/{channel}/messages"
    return await bed.client.post(path, json=BODY, headers=headers)


@pytest.mark.parametrize("name", SCRIPTS)
async def test_nothing_is_lost_and_nothing_doubled(name: str) -> None:
    async with open_web(WebConfig(port=0, body_timeout=0.5)) as bed:
        channel = await bed.channel(ZOE, ANNA, kind="DM")
        await SCRIPTS[name](bed, channel)
        assert (await send(bed, channel)).status_code < 300
        assert (await send(bed, channel)).status_code < 300
        await bed.say(channel, "next")
        assert [each.text for each in bed.ingress.accepted] == ["lost", "next"]
        said = [
            each["content"]
            for each in reversed(await bed.messages(channel))
            if each["authorId"] == ZOE
        ]
        assert said == ["lost", "next"]
        for each in bed.kept_open:
            await trio.aclose_forcefully(each)


async def test_too_many_requests_are_told_when_to_come_back() -> None:
    store = MemoryStore()
    async with open_web(WebConfig(port=0, rate_limit=2), store) as bed:
        channel = await bed.channel(ZOE, ANNA, kind="DM")
        await send(bed, channel)
        answer = await send(bed, channel)
        assert answer.status_code == 429
        assert float(answer.headers["retry-after"]) > 0
        assert counted(bed, "requests_total", route="channels/messages", status="429")
    async with open_web(WebConfig(port=0), store) as bed:
        assert (await send(bed, channel)).status_code < 300
        assert len(await bed.messages(channel)) == 1


async def test_a_key_that_is_revoked_loses_nothing_that_was_said() -> None:
    store = MemoryStore()
    old, new = (key_of("an-old-key-of-many-letters"), key_of("a-new-key-as-long"))
    async with open_web(old, store) as bed:
        bed.client.headers["x-api-key"] = "an-old-key-of-many-letters"
        channel = await bed.channel(ZOE, ANNA, kind="DM")
        assert (await send(bed, channel)).status_code < 300
    async with open_web(new, store) as bed:
        stale = {"x-api-key": "an-old-key-of-many-letters"}
        assert (await send(bed, channel, **stale)).status_code == 401
        assert bed.ingress.refused
        fresh = {"x-api-key": "a-new-key-as-long"}
        assert (await send(bed, channel, **fresh)).status_code < 300
        found = await bed.client.get(
            f"{API}/channels/{channel}/messages", headers=fresh
        )
        assert len(found.json()["data"]["messages"]) == 1


async def test_a_job_is_completed_though_the_server_ends_in_its_middle() -> None:
    store = MemoryStore()
    async with open_web(store=store) as bed:
        asked = {"userId": ZOE, "content": "hello", "agentId": ANNA}
        made = await bed.ask("POST", f"{API}/jobs", json=asked)
        inbound = await bed.ingress.next()
    async with open_web(store=store) as bed:
        for _ in range(2):  # the receipt may be lost with the process, too
            await bed.answer(inbound, "good morning")
        job: dict[str, Any] = await bed.ask("GET", f"{API}/jobs/{made['jobId']}")
        assert job["status"] == "completed"
        assert job["result"]["message"]["content"] == "good morning"
        texts = [e["content"] for e in await bed.messages(inbound.address.chat)]
        assert texts.count("good morning") == 1


async def test_what_is_asked_is_counted_by_route_and_status() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        await bed.say(channel, "hello")
        await bed.refused("GET", "/api/nowhere")
        await trio.testing.wait_all_tasks_blocked()  # counted when the answer is away
        route = "channels/messages"
        assert counted(bed, "requests_total", route=route, status="201") == 1
        assert counted(bed, "requests_total", route="unknown", status="404") == 1
        assert counted(bed, "bytes_total", direction="in") > 50
        assert counted(bed, "told_total", event="messageBroadcast") == 1


def key_of(text: str) -> WebConfig:
    key = WebKeyConfig(key=Secret(text), scopes=("read", "write", "manage"))
    return WebConfig(port=0, keys={"page": key})


def counted(bed: WebBed, name: str, **labels: str) -> float:
    """Give a figure."""
    want = {"connector": "web", **labels}
    told = ",".join(f'{k}="{v}"' for k, v in want.items())
    for line in bed.metrics.render().decode().splitlines():
        if line.startswith(f"callboard_web_{name}{{{told}}}"):
            return float(line.rpartition(" ")[2])
    return 0.0
