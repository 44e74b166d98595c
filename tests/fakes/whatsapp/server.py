"""The Graph API of `graph.py` on loopback, for a program that really connects."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import httpx
import trio

from tests.fakes.whatsapp.graph import VERSION, FakeGraph

END = b"\r\n\r\n"


@asynccontextmanager
async def open_graph(graph: FakeGraph) -> AsyncGenerator[str]:
    """Listen until the block ends; gives the address. Files are kept there, too."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    graph.files = f"http://127.0.0.1:{port}/files/"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, partial(converse, graph), listeners)
        yield f"http://127.0.0.1:{port}/{VERSION}"
        nursery.cancel_scope.cancel()


async def converse(graph: FakeGraph, stream: trio.SocketStream) -> None:
    """Answer one request, and hang up."""
    got = b""
    async with stream:
        while END not in got:
            got += await stream.receive_some()
        head, _, body = got.partition(END)
        first, *rest = head.decode().split("\r\n")
        method, target, _ = first.split(" ")
        headers = dict(
            line.lower().split(": ", 1) for line in rest if "uth" not in line
        )
        token = next(line for line in rest if line.lower().startswith("authorization"))
        while len(body) < int(headers.get("content-length", "0")):
            body += await stream.receive_some()
        request = httpx.Request(
            method,
            f"http://{headers['host']}{target}",
            headers={
                "authorization": token.partition(": ")[2],
                "content-type": headers.get("content-type", ""),
            },
            content=body,
        )
        response = graph.answer(request)
        lines = [
            f"HTTP/1.1 {response.status_code} {response.reason_phrase}",
            f"content-length: {len(response.content)}",
            f"content-type: {response.headers['content-type']}",
            "connection: close",
        ]
        await stream.send_all("\r\n".join(lines).encode() + END + response.content)
