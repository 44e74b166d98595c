"""HTTP by hand: one request on one connection, so that it is seen where it breaks."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
import trio

LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
STREAM_END = b"data: [DONE]"

MOST = 1_000_000
"""Bytes; a message longer than that is none of ours."""


class HttpMessage(msgspec.Struct, frozen=True):
    """A request or response."""

    first: str
    """`POST /v1/… HTTP/1.1`, or `HTTP/1.1 200 OK`."""

    body: bytes
    is_whole: bool = True
    """False if the connection ended in the middle of the body."""

    @property
    def status(self) -> int:
        """The status of a response."""
        return int(self.first.split()[1])


async def read_message(stream: trio.abc.ReceiveStream) -> HttpMessage | None:
    """Read one message; None if the connection ends before its body begins.

    One without a length goes on until the connection ends.
    """
    received, message = b"", None
    while len(received) < MOST:
        message = parse(received)
        if message is not None and message.is_whole:
            return message
        try:
            more = await stream.receive_some()
        except trio.BrokenResourceError:
            return message
        if not more:
            return message
        received += bytes(more)
    return message


def parse(received: bytes) -> HttpMessage | None:
    """Read what has come so far; None while the head is not all there."""
    head, blank, body = received.partition(b"\r\n\r\n")
    if not blank:
        return None
    first = head.split(b"\r\n")[0].decode()
    found = LENGTH.search(head)
    is_whole = len(body) >= int(found.group(1)) if found else STREAM_END in body
    return HttpMessage(first, body, is_whole)


async def request(
    address: tuple[str, int],
    line: str,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
) -> HttpMessage | None:
    """Send one request; None if not even an answer's head came, for whatever reason.

    Args:
        address: host and port.
        line: method and path.
        headers: besides the host and the length.
        body: may be empty.
    """
    sent = {
        "host": "localhost",
        "connection": "close",
        "content-length": str(len(body)),
    }
    lines = [f"{line} HTTP/1.1"]
    lines += [
        f"{name}: {value}" for name, value in (sent | dict(headers or {})).items()
    ]
    head = "\r\n".join([*lines, "", ""]).encode()
    try:
        async with await trio.open_tcp_stream(*address) as stream:
            await stream.send_all(head + body)
            return await read_message(stream)
    except (OSError, trio.BrokenResourceError):
        return None
