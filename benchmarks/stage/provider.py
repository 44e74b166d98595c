"""A model provider that costs nothing: OpenAI's streaming protocol, one fixed answer.

`python -m benchmarks.stage.provider SECONDS` serves on a free port until it is killed;
it waits so long before each answer. It is a process of its own, so that what it costs
is not counted as Callboard's.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from benchmarks.stage.programs import module, started

if TYPE_CHECKING:
    from collections.abc import Generator

WORDS = ("It ", "is ", "half ", "past ", "nine, ", "and ", "all ", "is ", "well.")
ANSWER = "".join(WORDS)
LENGTH = b"content-length:"


@contextmanager
def provided(seconds: float) -> Generator[str]:
    """Run a provider that waits so long before each answer; give its `base_url`."""
    with started(module("benchmarks.stage.provider", str(seconds))) as program:
        yield f"{program.address}/v1"


def events() -> bytes:
    """Give the body of every answer: a word an event, then the counts and the end."""
    told = [said(role="assistant"), *(said(content=word) for word in WORDS)]
    end: dict[str, object] = {"index": 0, "delta": {}, "finish_reason": "stop"}
    counts = {"prompt_tokens": 30, "completion_tokens": len(WORDS)}
    told += [event(choices=[end]), event(choices=[], usage=counts)]
    return b"".join([*told, b"data: [DONE]\n\n"])


def said(**delta: str) -> bytes:
    """Write the event that adds a piece of the answer."""
    return event(choices=[{"index": 0, "delta": delta}])


def event(**chunk: object) -> bytes:
    """Write one event."""
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


def response() -> bytes:
    """Give the whole response, its body in chunks: one for each event."""
    head = (
        b"HTTP/1.1 200 OK\r\n"
        b"content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    pieces = [piece + b"\n\n" for piece in events().split(b"\n\n") if piece]
    chunks = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces]
    return head + b"".join(chunks) + b"0\r\n\r\n"


class Provider(asyncio.Protocol):
    """One connection; requests come one after the other.

    Args:
        delay: seconds before each answer.
        answer: what is sent back.
    """

    def __init__(self, delay: float, answer: bytes) -> None:
        self._delay = delay
        self._answer = answer
        self._heard = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer when a request is whole."""
        self._heard += data
        end = self._heard.find(b"\r\n\r\n") + 4
        if end < 4:
            return
        head = self._heard[:end].lower()
        length = int(head.partition(LENGTH)[2].partition(b"\r\n")[0])
        if len(self._heard) >= end + length:
            self._heard.clear()
            asyncio.get_running_loop().call_later(self._delay, self._say)

    def _say(self) -> None:
        if self._transport is not None:
            self._transport.write(self._answer)


async def serve(delay: float) -> None:
    """Say where it listens, and serve for ever."""
    answer = response()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Provider(delay, answer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(f"listening on http://127.0.0.1:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
