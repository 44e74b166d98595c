"""A web site on loopback that says given bytes, and the DNS that leads to it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial

import trio


class FakeDns:
    """Answers from a table; each list is one answer, the last one stays.

    Args:
        names: by name, the answers in the order they are given.
    """

    def __init__(self, names: dict[str, list[list[str]]]) -> None:
        self._names = {name: list(answers) for name, answers in names.items()}
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Give a host's addresses."""
        del port
        await trio.lowlevel.checkpoint()
        self.asked.append(host)
        answers = self._names.get(host)
        if answers is None:
            raise OSError(f"no such host {host}")
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Site:
    """What a site has been asked."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.requests: list[bytes] = []
        """Each head with the body that came along."""

        self.open = 0

    @property
    def paths(self) -> list[str]:
        """The paths in the order they were asked for."""
        return [each.split(b" ")[1].decode() for each in self.requests]


def response(body: bytes = b"", status: str = "200 OK", **headers: str | int) -> bytes:
    """Write a whole HTTP response; `_` in a header's name is a dash."""
    lines = [f"HTTP/1.1 {status}", "Connection: close"]
    given = {"Content_Length": len(body), "Content_Type": "text/plain"} | headers
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in given.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def moved(location: str, status: str = "302 Found") -> bytes:
    """Write a redirect."""
    return response(b"moved", status, Location=location)


@contextlib.asynccontextmanager
async def open_site(respond: Callable[[str], bytes]) -> AsyncGenerator[Site]:
    """Listen on loopback.

    Args:
        respond: gives the bytes of the answer to a path; empty ones: none ever comes.
    """
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    site = Site(listeners[0].socket.getsockname()[1])
    async with trio.open_nursery() as nursery:
        talk = partial(converse, site, respond)
        nursery.start_soon(trio.serve_listeners, talk, listeners)
        yield site
        nursery.cancel_scope.cancel()


async def converse(
    site: Site, respond: Callable[[str], bytes], stream: trio.SocketStream
) -> None:
    """Answer one request, then close."""
    async with stream:
        with contextlib.suppress(trio.BrokenResourceError):
            site.open += 1
            try:
                request = await read_request(stream)
                if request:
                    site.requests.append(request)
                    answer = respond(site.paths[-1])
                    if answer:
                        await stream.send_all(answer)
                    else:
                        await stream.receive_some()  # until the client leaves
            finally:
                site.open -= 1


async def read_request(stream: trio.SocketStream) -> bytes:
    """Read one request with its body; empty if the client closed instead."""
    received = b""
    while True:
        head, blank, body = received.partition(b"\r\n\r\n")
        if blank:
            length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
            if len(body) >= int(length or b"0"):
                return received
        more = await stream.receive_some()
        if not more:
            return b""
        received += bytes(more)
