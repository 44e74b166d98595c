"""A model provider to test against, with and without a network, in any format.

`FakeProvider` goes into `httpx.MockTransport` and works in virtual time;
`open_raw_server` is a real TCP listener on loopback that says given bytes.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from functools import partial

import httpx
import trio

EVENT_STREAM = "text/event-stream"

Step = bytes | float | Exception
"""Bytes to send, seconds to wait, or an error to break off with."""


class Stream(httpx.AsyncByteStream):
    """A response's body, step by step.

    Args:
        steps: what comes, in order.
        closed: called once, when the reader closes it.
    """

    def __init__(self, steps: list[Step], closed: Callable[[], None]) -> None:
        self._steps = steps
        self._closed = closed
        self._is_open = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for step in self._steps:
            await trio.lowlevel.checkpoint()
            if isinstance(step, bytes):
                yield step
            elif isinstance(step, Exception):
                raise step
            else:
                await trio.sleep(step)
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        if self._is_open:
            self._is_open = False
            self._closed()


class FakeProvider:
    """Answers requests and counts the responses not yet closed.

    Args:
        respond: gives the steps of a good answer, or a whole other response.
        media_type: what a good answer is called.
    """

    def __init__(
        self,
        respond: Callable[[httpx.Request], Awaitable[list[Step] | httpx.Response]],
        media_type: str = EVENT_STREAM,
    ) -> None:
        self._respond = respond
        self._media_type = media_type
        self.requests: list[httpx.Request] = []
        self.open_responses = 0

    @classmethod
    def streaming(cls, *steps: Step, media_type: str = EVENT_STREAM) -> FakeProvider:
        """Make one that always streams the same steps."""
        return cls(lambda _: constant(list(steps)), media_type)

    @classmethod
    def responding(cls, response: httpx.Response) -> FakeProvider:
        """Make one that always gives the same response."""
        return cls(lambda _: constant(response))

    @property
    def transport(self) -> httpx.MockTransport:
        """What an `httpx.AsyncClient` takes instead of the network."""
        return httpx.MockTransport(self._handle)

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = await self._respond(request)
        self.open_responses += 1
        if isinstance(answer, httpx.Response):
            # As from a network: its body has not been read yet.
            stream = Stream([await answer.aread()], self._count_closed)
            return httpx.Response(
                answer.status_code, headers=answer.headers, stream=stream
            )
        stream = Stream(answer, self._count_closed)
        headers = {"content-type": f"{self._media_type}; charset=utf-8"}
        return httpx.Response(200, headers=headers, stream=stream)

    def _count_closed(self) -> None:
        self.open_responses -= 1


async def constant(answer: list[Step] | httpx.Response) -> list[Step] | httpx.Response:
    """Give an answer back, as a coroutine."""
    await trio.lowlevel.checkpoint()
    return answer


class RawServer:
    """What a raw server has seen."""

    def __init__(self, port: int) -> None:
        self.base_url = f"http://127.0.0.1:{port}/v1"
        self.connections = 0
        self.bodies: list[bytes] = []
        self.client_left = trio.Event()
        """Set when a client closed a connection that the server kept open."""

    @property
    def requests(self) -> int:
        return len(self.bodies)


def chunked(body: bytes, size: int = 40, media_type: str = EVENT_STREAM) -> bytes:
    """Write a whole HTTP response with a chunked body."""
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    coded = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\n".encode()
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + coded + b"0\r\n\r\n"


@contextlib.asynccontextmanager
async def open_raw_server(
    response: Callable[[], bytes], *, keep_open: bool
) -> AsyncGenerator[RawServer]:
    """Listen on loopback and say the same bytes to every request.

    Args:
        response: gives the bytes of one HTTP response, whole or not.
        keep_open: wait for the client to close or ask again, instead of closing.
    """
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    server = RawServer(listeners[0].socket.getsockname()[1])
    async with trio.open_nursery() as nursery:
        talk = partial(converse, server, response, keep_open=keep_open)
        nursery.start_soon(trio.serve_listeners, talk, listeners)
        yield server
        nursery.cancel_scope.cancel()


async def converse(
    server: RawServer,
    response: Callable[[], bytes],
    stream: trio.SocketStream,
    *,
    keep_open: bool,
) -> None:
    """Serve one connection."""
    server.connections += 1
    async with stream:
        with contextlib.suppress(trio.BrokenResourceError):
            while (body := await read_request(stream)) is not None:
                server.bodies.append(body)
                await stream.send_all(response())
                if not keep_open:
                    return
        server.client_left.set()


async def read_request(stream: trio.SocketStream) -> bytes | None:
    """Read the body of one request; None if the client closed instead."""
    received = b""
    while True:
        head, blank, body = received.partition(b"\r\n\r\n")
        if blank:
            length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
            if len(body) >= int(length):
                return body
        more = await stream.receive_some()
        if not more:
            return None
        received += bytes(more)
