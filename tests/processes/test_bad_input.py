"""Proves that whatever is sent to the server gets a clear error, and one log line."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import httpx
import pytest
import trio

from tests.processes.running import PATIENCE, Server, served

PATH = "/v1/chat/completions"
MEGABYTES = 10
BODY_TIMEOUT = "body_timeout = 0.5"


def body(**fields: Any) -> bytes:
    whole = {"model": "anna", "messages": [{"role": "user", "content": "hello"}]}
    return json.dumps(whole | fields).encode()


class Bad(NamedTuple):
    """A request, and what it gets."""

    status: int
    message: str
    """Part of the error's text."""

    content: bytes = b""
    method: str = "POST"
    path: str = PATH
    media: str = "application/json"


BAD = {
    "malformed JSON": Bad(400, "JSON", b'{"model": "anna", "messages": ['),
    "no JSON at all": Bad(400, "JSON", b"hello"),
    "empty body": Bad(400, "JSON"),
    "not an object": Bad(400, "object", b"[]"),
    "no model": Bad(400, "model", b'{"messages": []}'),
    "no messages": Bad(400, "messages", b'{"model": "anna"}'),
    "empty messages": Bad(400, "messages", body(messages=[])),
    "wrong type": Bad(400, "messages", body(messages="hello")),
    "unknown role": Bad(400, "wizard", body(messages=[{"role": "wizard"}])),
    "picture": Bad(
        400,
        "image_url",
        body(messages=[{"role": "user", "content": [{"type": "image_url"}]}]),
    ),
    "not UTF-8": Bad(400, "not valid JSON", b'{"model": "\xff\xfe"}'),
    "unknown agent": Bad(404, "known: anna, ben", body(model="gpt-9")),
    "unknown path": Bad(404, "/v1/chat", b"{}", path="/v1/chat"),
    "wrong method": Bad(405, "method not allowed", method="GET"),
    "wrong content type": Bad(415, "application/json", body(), media="text/plain"),
    "too long": Bad(413, "1048576 bytes", b" " * (MEGABYTES << 20)),
    "bad conversation": Bad(400, "visible ASCII", body(user="two words")),
}


@contextmanager
def one_line(server: Server) -> Generator[None]:
    """Check that the block adds one line to the log, and no traceback."""
    before = len(server.log)
    yield
    lines = server.log[before:].splitlines()
    # The server may answer before it has said that it has started.
    added = [each for each in lines if '"event":"started"' not in each]
    assert len(added) == 1, added
    assert "refused" in json.loads(added[0])["event"]
    assert "Traceback" not in added[0]


def check_error(status: int, message: str, text: bytes) -> None:
    """Check OpenAI's shape of an error."""
    (error,) = json.loads(text).values()
    assert set(error) == {"message", "type", "param", "code"}
    assert message in error["message"]
    kind = "server_error" if status >= 500 else "invalid_request_error"
    assert (error["type"], bool(error["code"])) == (kind, True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("server"), http=BODY_TIMEOUT) as server:
        yield server
        assert server.process.poll() is None


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_request_gets_a_clear_error(name: str, server: Server) -> None:
    bad = BAD[name]
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
        with one_line(server):
            answer = await client.request(
                bad.method,
                bad.path,
                content=bad.content,
                headers={"content-type": bad.media},
            )
    assert answer.status_code == bad.status
    assert answer.headers["content-type"] == "application/json"
    check_error(bad.status, bad.message, answer.content)


async def send(server: Server, *parts: bytes, pause: float = 0.0) -> bytes:
    """Send bytes as they are, with a pause after each; gives all that comes back."""
    stream = await trio.open_tcp_stream(*server.address)
    said = bytearray()
    with trio.fail_after(PATIENCE):
        async with stream, trio.open_nursery() as nursery:
            nursery.start_soon(_dribble, stream, parts, pause)
            # A server that has heard enough resets what is still on its way to it.
            with suppress(trio.BrokenResourceError):
                async for part in stream:
                    said += part
            nursery.cancel_scope.cancel()
    return bytes(said)


async def _dribble(
    stream: trio.SocketStream, parts: tuple[bytes, ...], pause: float
) -> None:
    try:
        for part in parts:
            await stream.send_all(part)
            await trio.sleep(pause)
    except trio.BrokenResourceError:
        return  # the server has heard enough


HEAD = b"POST %s HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


async def test_a_body_that_dribbles_in_is_cut_off(server: Server) -> None:
    head = HEAD % PATH.encode() + b"content-length: 100\r\n\r\n"
    with one_line(server):
        said = await send(server, head, *[b" "] * 90, pause=0.05)
    assert said.startswith(b"HTTP/1.1 408 ")
    check_error(408, "did not come within 0.5 s", said.partition(b"\r\n\r\n")[2])


async def test_huge_headers_are_cut_off(server: Server) -> None:
    with one_line(server):
        said = await send(server, HEAD % PATH.encode(), b"x: " + b"y" * 33_000)
    assert said.startswith(b"HTTP/1.1 431 ")
    check_error(431, "headers longer than", said.partition(b"\r\n\r\n")[2])


async def test_what_is_no_http_is_told_so(server: Server) -> None:
    before = len(server.log)
    said = await send(server, b"\x16\x03\x01 hello\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 400 ")
    check_error(400, "This is an HTTP server", said.partition(b"\r\n\r\n")[2])
    assert len(server.log[before:].splitlines()) == 1


async def test_after_all_that_the_server_still_answers(server: Server) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
        answer = await client.post(PATH, json=json.loads(body()))
        ready = await client.get("/readyz")
    assert answer.json()["choices"][0]["message"]["content"] == "you said hello"
    assert ready.json() == {"ready": True, "reasons": []}
