"""A server that speaks the formats of four vendors and costs nothing to ask.

`python -m benchmarks.stage.vendors` serves on a free port until it is killed. The
model's name says what is answered: `short` is ten words at once, `long` two hundred,
one every five milliseconds, as tokens come; anything else is ten words after half a
second. It is a process of its own, so that what it costs is not counted as the asker's.
`GET` is answered with the most requests that were ever under way at once.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from benchmarks.stage.programs import module, started

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

SHORT = 10
LONG = 200
"""Words of the two answers."""

PACE = 0.005
"""Seconds between two words of the long one."""

SLOW = 0.5
"""Seconds before the slow answer."""

WORD = "word "
JSON = "application/json"
EVENTS = "text/event-stream"
LINES = "application/x-ndjson"
COUNTS = {"prompt_tokens": 30, "completion_tokens": 10, "total_tokens": 40}


@contextmanager
def served() -> Generator[str]:
    """Run the server; give its address."""
    with started(module("benchmarks.stage.vendors")) as program:
        yield program.address


def sse(name: str = "", /, **fields: object) -> bytes:
    """Write a server-sent event."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + msgspec.json.encode(fields) + b"\n\n"


def openai(words: int, *, stream: bool) -> list[bytes]:
    """Answer as OpenAI does."""
    base = {"id": "x", "created": 1, "model": "m"}
    if not stream:
        message = {"role": "assistant", "content": WORD * words}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        kind = "chat.completion"
        return [msgspec.json.encode({**base, "object": kind, "choices": [choice]})]
    base["object"] = "chat.completion.chunk"

    def chunk(delta: dict[str, str], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return sse(**base, choices=[choice])

    said = [chunk({"role": "assistant"}), *[chunk({"content": WORD})] * words]
    end = chunk({}, "stop") + sse(**base, choices=[], usage=COUNTS)
    return [*said, end + b"data: [DONE]\n\n"]


def anthropic(words: int, *, stream: bool) -> list[bytes]:
    """Answer as Anthropic does."""
    usage = {"input_tokens": 30, "output_tokens": 10}
    message: dict[str, object] = {"id": "x", "type": "message", "role": "assistant"}
    message |= {"model": "m", "content": [], "stop_reason": None, "usage": usage}
    if not stream:
        block = {"type": "text", "text": WORD * words}
        whole = message | {"content": [block], "stop_reason": "end_turn"}
        return [msgspec.json.encode(whole)]

    def event(name: str, **fields: object) -> bytes:
        return sse(name, type=name, **fields)

    begin = event("message_start", message=message)
    text = {"type": "text", "text": ""}
    begin += event("content_block_start", index=0, content_block=text)
    delta = {"type": "text_delta", "text": WORD}
    said = [event("content_block_delta", index=0, delta=delta)] * words
    end = event("content_block_stop", index=0)
    end += event("message_delta", delta={"stop_reason": "end_turn"}, usage=usage)
    return [begin, *said, end + event("message_stop")]


def google(words: int, *, stream: bool) -> list[bytes]:
    """Answer as Google does."""
    counts = {"promptTokenCount": 30, "candidatesTokenCount": 10}

    def chunk(text: str, **end: object) -> dict[str, object]:
        content = {"parts": [{"text": text}], "role": "model"}
        candidate: dict[str, object] = {"content": content, "index": 0, **end}
        return {"candidates": [candidate], "usageMetadata": counts, "responseId": "x"}

    if not stream:
        return [msgspec.json.encode(chunk(WORD * words, finishReason="STOP"))]
    said = [sse(**chunk(WORD))] * words
    return [*said, sse(**chunk("", finishReason="STOP"))]


def ollama(words: int, *, stream: bool) -> list[bytes]:
    """Answer as Ollama does."""

    def line(text: str, **end: object) -> bytes:
        message = {"role": "assistant", "content": text}
        fields = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
        told: dict[str, object] = {**fields, "message": message, "done": bool(end)}
        return msgspec.json.encode(told | end) + b"\n"

    counts = {"done_reason": "stop", "prompt_eval_count": 30, "eval_count": 10}
    if not stream:
        return [line(WORD * words, **counts)]
    return [*[line(WORD)] * words, line("", **counts)]


FORMATS: dict[bytes, tuple[Callable[..., list[bytes]], str]] = {
    b"/chat/completions": (openai, EVENTS),
    b"/messages": (anthropic, EVENTS),
    b"GenerateContent": (google, EVENTS),
    b":generateContent": (google, EVENTS),
    b"/api/chat": (ollama, LINES),
}
"""What an address holds → who answers, and what a stream of theirs is called."""


def chunks(pieces: Iterable[bytes], media_type: str) -> list[bytes]:
    """Write a response in HTTP's chunks; the first has the head, the last the end."""
    coded = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces]
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\n".encode()
    coded[0] = head + b"Transfer-Encoding: chunked\r\n\r\n" + coded[0]
    coded[-1] += b"0\r\n\r\n"
    return coded


class Server(asyncio.Protocol):
    """One connection; requests come one after the other.

    Args:
        crowd: counts the requests under way.
    """

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._heard = bytearray()
        self._transport: asyncio.Transport | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer when a request is whole."""
        self._heard += data
        head, blank, body = bytes(self._heard).partition(b"\r\n\r\n")
        if not blank:
            return
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        if len(body) < int(length or 0):
            return
        self._heard.clear()
        task = asyncio.get_running_loop().create_task(self._answer(head, body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, head: bytes, body: bytes) -> None:
        line = head.partition(b"\r\n")[0]
        if line.startswith(b"GET"):
            self._say(b"".join(chunks([str(self._crowd.most).encode()], "text/plain")))
            return
        make, media_type = next(FORMATS[each] for each in FORMATS if each in line)
        is_streamed = b"streamGenerate" in line or b'"stream":true' in body.replace(
            b'": ', b'":'
        )
        is_long = b"long" in line + body
        pieces = make(LONG if is_long else SHORT, stream=is_streamed)
        coded = chunks(pieces, media_type if is_streamed else JSON)
        self._crowd.enter()
        if not is_long:
            if b"short" not in line + body:
                await asyncio.sleep(SLOW)
            coded = [b"".join(coded)]
        for piece in coded:
            self._say(piece)
            await asyncio.sleep(PACE if is_long else 0)
        self._crowd.leave()

    def _say(self, piece: bytes) -> None:
        if self._transport is not None:
            self._transport.write(piece)


class Crowd:
    """How many requests are under way, and the most there ever were."""

    def __init__(self) -> None:
        self._now = 0
        self.most = 0

    def enter(self) -> None:
        """Count one more."""
        self._now += 1
        self.most = max(self.most, self._now)

    def leave(self) -> None:
        """Count one less."""
        self._now -= 1


async def serve() -> None:
    """Say where it listens, and serve for ever."""
    crowd = Crowd()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Server(crowd), "127.0.0.1", 0, backlog=1024
    )
    port = server.sockets[0].getsockname()[1]
    print(f"listening on http://127.0.0.1:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
