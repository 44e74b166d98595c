"""A model provider on loopback whose answers say who it is and with which key."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncGenerator

import trio

from tests.fakes.models.openai_server import spoken
from tests.fakes.models.server import chunked

KEY = re.compile(rb"authorization: bearer (\S+)", re.IGNORECASE)
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


@contextlib.asynccontextmanager
async def open_key_server(name: str) -> AsyncGenerator[str]:
    """Listen while the block runs; gives its base URL."""

    async def talk(stream: trio.SocketStream) -> None:
        async with stream:
            with contextlib.suppress(trio.BrokenResourceError):
                while head := await read_head(stream):
                    key = KEY.search(head)
                    text = f"{name} {key[1].decode() if key else 'nobody'}"
                    steps = [each for each in spoken(text) if isinstance(each, bytes)]
                    await stream.send_all(chunked(b"".join(steps)))

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, talk, listeners)
        yield f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/v1"
        nursery.cancel_scope.cancel()


async def read_head(stream: trio.SocketStream) -> bytes:
    """Read a whole request; gives its head, empty if there is none any more."""
    received = b""
    while more := await stream.receive_some():
        received += bytes(more)
        head, blank, body = received.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if blank and len(body) >= int(length[1] if length else 0):
            return head
    return b""
