"""A platform's API in memory, on a socket of this machine."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol

import h11
import httpx
import trio

PIECE = 65_536


class FakeApi(Protocol):
    """An API in memory."""

    async def handle(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        ...


@asynccontextmanager
async def on_a_socket(server: FakeApi) -> AsyncGenerator[str]:
    """Serve until the block ends; gives the address."""
    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, partial(converse, server), 0, host="127.0.0.1")
        listeners = await nursery.start(serve)
        port = listeners[0].socket.getsockname()[1]
        yield f"http://127.0.0.1:{port}"
        nursery.cancel_scope.cancel()


async def converse(server: FakeApi, stream: trio.SocketStream) -> None:
    """Answer the requests of one connection."""
    connection = h11.Connection(h11.SERVER)
    try:
        while (request := await next_request(connection, stream)) is not None:
            response = await server.handle(request)
            head = h11.Response(
                status_code=response.status_code,
                headers=[
                    ("content-type", "application/json"),
                    ("content-length", str(len(response.content))),
                ],
            )
            for event in (head, h11.Data(data=response.content), h11.EndOfMessage()):
                await stream.send_all(connection.send(event) or b"")
            connection.start_next_cycle()
    except (trio.BrokenResourceError, h11.RemoteProtocolError, httpx.HTTPError):
        pass  # the client has gone, or is to believe that we have
    finally:
        await trio.aclose_forcefully(stream)


async def next_request(
    connection: h11.Connection, stream: trio.SocketStream
) -> httpx.Request | None:
    """Read one request; None: the client has gone."""
    head: h11.Request | None = None
    body = b""
    while True:
        match connection.next_event():
            case h11.NEED_DATA:
                connection.receive_data(await stream.receive_some(PIECE))
            case h11.Request() as head:
                pass
            case h11.Data(data=data):
                body += bytes(data)
            case h11.EndOfMessage() if head is not None:
                url = f"http://127.0.0.1{head.target.decode()}"
                method, headers = head.method.decode(), list(head.headers)
                return httpx.Request(method, url, headers=headers, content=body)
            case _:
                return None
