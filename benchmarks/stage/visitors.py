"""People who write to `callboard serve` over HTTP, each the next when answered.

`python -m benchmarks.stage.visitors` is the other end of `visit`: a process of its own,
so that what the people cost is not counted as Callboard's. Each has a connection and a
conversation; requests are not streamed.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys

import msgspec

from benchmarks.machine import ROOT
from benchmarks.stage.programs import module
from benchmarks.stopwatch import now, now_ns

ENDS = b"\r\n\r\n"
LENGTH = b"content-length:"


class Visit(msgspec.Struct, frozen=True):
    """What a group of people does."""

    address: str
    agent: str
    chats: int
    """How many write at once."""

    share: int
    """How many messages each writes."""

    name: str
    """What their conversations' names begin with."""

    expected: str
    """What every answer must contain."""

    has_many: bool = False
    """Whether each message is in a conversation of its own."""

    begin_within: float = 0.0
    """Seconds over which their first messages are spread; 0: all at once."""


class Visited(msgspec.Struct, frozen=True):
    """How it went."""

    seconds: float
    """From the first message to the last answer."""

    pace: float
    """Messages a second: what each of them came to by himself, added up."""

    taken: list[int]
    """How long each answer took, in nanoseconds."""


def visit(plan: Visit) -> Visited:
    """Have people write from another process.

    Raises:
        subprocess.CalledProcessError: an answer was wrong; it said so on standard
            error.
    """
    done = subprocess.run(  # noqa: S603  this Python, this module
        module("benchmarks.stage.visitors", msgspec.json.encode(plan).decode()),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=Visited)


class Person(asyncio.Protocol):
    """One connection, on which one answer is awaited at a time."""

    def __init__(self) -> None:
        self._heard = bytearray()
        self._answer: asyncio.Future[bytes] | None = None

    def data_received(self, data: bytes) -> None:
        """Give the answer to whoever waits once it is whole."""
        self._heard += data
        end = self._heard.find(ENDS) + len(ENDS)
        if end < len(ENDS):
            return
        head = self._heard[:end].lower()
        length = int(head.partition(LENGTH)[2].partition(b"\r\n")[0])
        if len(self._heard) >= end + length and self._answer is not None:
            self._answer.set_result(bytes(self._heard))
            self._heard.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let nobody wait for ever."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionError("closed by the server"))

    async def ask(self, transport: asyncio.Transport, request: bytes) -> bytes:
        """Send a request and wait for its whole answer."""
        self._answer = asyncio.get_running_loop().create_future()
        transport.write(request)
        return await self._answer


def place_of(address: str) -> tuple[str, int]:
    """Give host and port of an address such as `http://127.0.0.1:8080`."""
    host, _, port = address.removeprefix("http://").rpartition(":")
    return host, int(port)


def request(plan: Visit, chat: int, number: int) -> bytes:
    """Write one message as an HTTP request."""
    messages = [{"role": "user", "content": f"message number {number}"}]
    conversation = f"{plan.name}-{chat}" + (f"-{number}" if plan.has_many else "")
    body = msgspec.json.encode({"model": plan.agent, "messages": messages})
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\n"
        f"host: {plan.address.removeprefix('http://')}\r\n"
        "content-type: application/json\r\n"
        f"x-callboard-conversation: {conversation}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def converse(plan: Visit, chat: int, taken: list[int]) -> float:
    """Write one message after the other on one connection; give how long it took."""
    host, port = place_of(plan.address)
    transport, person = await asyncio.get_running_loop().create_connection(
        Person, host, port
    )
    await asyncio.sleep(plan.begin_within * chat / plan.chats)
    expected = plan.expected.encode()
    began = now()
    for number in range(plan.share):
        asked = request(plan, chat, number)
        begin = now_ns()
        answer = await person.ask(transport, asked)
        taken.append(now_ns() - begin)
        if not answer.startswith(b"HTTP/1.1 200 ") or expected not in answer:
            raise RuntimeError(f"not the answer that was expected: {answer!r}")
    transport.close()
    return now() - began


async def everybody(plan: Visit) -> Visited:
    """Let all of them write."""
    taken: list[int] = []
    begin = now()
    async with asyncio.TaskGroup() as group:
        people = [
            group.create_task(converse(plan, chat, taken)) for chat in range(plan.chats)
        ]
    pace = sum(plan.share / person.result() for person in people)
    return Visited(now() - begin, pace, taken)


if __name__ == "__main__":
    visited = asyncio.run(everybody(msgspec.json.decode(sys.argv[1], type=Visit)))
    print(msgspec.json.encode(visited).decode())
