"""Proves that each thing that can go wrong with a provider is told for what it is.

Every fault against every format, streamed and in one piece, over TCP on the machine's
own clock. The deadlines are short, so that nothing takes long; and nothing hangs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import trio

from actors.errors import ModelBusyError, ModelError, ModelFault
from actors.messages.inbound import ModelRequest, TranscriptLine
from tests.fakes.models.dialects import MANNERS, Manner
from tests.fakes.models.sayings import KEY, Saying, deaf
from tests.fakes.models.server import chunked, open_raw_server

REQUEST = ModelRequest(
    model="m",
    agent="anna",
    correlation_id="c",
    system="",
    lines=(TranscriptLine("user", "hello"),),
)
DEADLINES: dict[str, Any] = {
    "first_byte_timeout": 0.3,
    "idle_timeout": 0.3,
    "total_timeout": 5.0,
}
SPOKEN = Saying("one two three four five six")
HUGE = 17 * 1024 * 1024


class Fault(msgspec.Struct, frozen=True):
    """One thing that goes wrong."""

    name: str
    response: Callable[[Manner], bytes]
    kind: ModelFault
    retry_after: float | None = None
    closes: bool = True
    """False: the server keeps the connection open and says no more."""

    def __str__(self) -> str:
        return self.name


def status(number: int, kind: str = "", **headers: str) -> Callable[[Manner], bytes]:
    """Answer with a status, and an error of this kind in the format's words."""

    def response(manner: Manner) -> bytes:
        body = manner.dialect.error(f"no, {KEY}", kind or "overload")
        return http(number, body, "application/json", **headers)

    return response


def http(number: int, body: bytes, media_type: str, **headers: str) -> bytes:
    """Write a response."""
    named = {
        "Content-Type": media_type,
        "Content-Length": str(len(body)),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {number} X\r\n{lines}\r\n".encode() + body


def worded(number: int, message: str, kind: str = "") -> Callable[[Manner], bytes]:
    """Answer with a status and a sentence."""
    return lambda manner: http(
        number, manner.dialect.error(message, kind), "application/json"
    )


def whole(manner: Manner, body: bytes, **headers: str) -> bytes:
    """Write a response that HTTP finds nothing wrong with."""
    return http(200, body, manner.media_type, **headers)


def stalled(manner: Manner) -> bytes:
    """Say the beginning of an answer, and no end of its body."""
    response = chunked(manner.pieces(SPOKEN)[0], media_type=manner.media_type)
    return response[: -len(b"0\r\n\r\n")]


def cut(manner: Manner) -> bytes:
    """Say half of an answer."""
    response = chunked(manner.written(SPOKEN), media_type=manner.media_type)
    return response[: len(response) // 2]


def unended(manner: Manner) -> bytes:
    """Leave the end out, and end the body as if that were all."""
    return whole(manner, b"".join(manner.pieces(SPOKEN)[:-1])[:-5])


def malformed(manner: Manner) -> bytes:
    """Say what is no JSON."""
    return whole(manner, manner.written(SPOKEN).replace(b'"', b"'"))


def huge(manner: Manner) -> bytes:
    """Say more than anybody could mean."""
    said = manner.written(Saying("A"))
    return whole(manner, said.replace(b'"A"', b'"' + b"A" * HUGE + b'"', 1))


def crowded(manner: Manner) -> bytes:
    """Call more tools than there can be."""
    return whole(manner, manner.written(Saying("", (("clock", "{}"),) * 200)))


FAULTS = (
    Fault("bad request", status(400, "bad_request"), "bad_request"),
    Fault("bad key", status(401, "auth"), "auth"),
    Fault("forbidden", status(403, "auth"), "auth"),
    Fault("unknown model", status(404, "bad_request"), "bad_request"),
    Fault("request timeout", status(408, "timeout"), "timeout"),
    Fault("conflict", status(409), "overload"),
    Fault("too large", status(413, "context"), "context"),
    Fault("rate, at once", status(429, "rate", Retry_After="0"), "rate", 0.0),
    Fault("rate, a second", status(429, "rate", Retry_After="1"), "rate", 1.0),
    Fault("rate, an hour", status(429, "rate", Retry_After="3600"), "rate", 3600.0),
    Fault("rate, garbage", status(429, "rate", Retry_After="soon"), "rate"),
    Fault("rate, in ms", status(429, "rate", retry_after_ms="1500"), "rate", 1.5),
    Fault("no money", status(402, "quota"), "quota"),
    Fault("500", lambda _: http(500, b"<html>", "text/html"), "overload"),
    Fault("502", lambda _: http(502, b"", "text/html"), "overload"),
    Fault("503", status(503, Retry_After="2"), "overload", 2.0),
    Fault("504", status(504, "timeout"), "timeout"),
    Fault("529", status(529), "overload"),
    Fault("context", worded(400, "prompt is too long: 9 tokens"), "context"),
    Fault("redirect", status(307, Location="http://127.0.0.1/"), "bad_request"),
    Fault("stall before headers", lambda _: b"", "timeout", closes=False),
    Fault("stall in mid-answer", stalled, "timeout", closes=False),
    Fault("hung up before headers", lambda _: b"", "network"),
    Fault("no HTTP", lambda _: b"SSH-2.0-OpenSSH_9.2\r\n", "network"),
    Fault("cut off", cut, "protocol"),
    Fault("no end", unended, "protocol"),
    Fault("no JSON", malformed, "protocol"),
    Fault("no answer but a page", lambda _: http(200, b"hi", "text/html"), "protocol"),
    Fault("compressed", lambda m: whole(m, b"x", Content_Encoding="gzip"), "protocol"),
    Fault("empty body", lambda m: whole(m, b""), "protocol"),
    Fault("empty answer", lambda m: whole(m, m.written(Saying())), "protocol"),
    Fault("huge", huge, "protocol"),
    Fault("too many calls", crowded, "protocol"),
)


@pytest.mark.parametrize("manner", MANNERS, ids=str)
@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_a_fault_is_told_for_what_it_is(fault: Fault, manner: Manner) -> None:
    response = fault.response(manner)
    keep_open = not fault.closes
    async with open_raw_server(lambda: response, keep_open=keep_open) as server:
        # A busy machine must not turn another fault into a late one.
        deadlines = DEADLINES if keep_open else {}
        model = manner.make(base_url=server.base_url, **deadlines)
        with trio.fail_after(10), pytest.raises(ModelError) as caught:
            await model.answer(REQUEST, deaf)
        await model.aclose()
    error = caught.value
    assert error.kind == fault.kind
    may_pass = {"rate", "overload", "network", "protocol", "timeout"}
    assert isinstance(error, ModelBusyError) is (fault.kind in may_pass)
    assert getattr(error, "retry_after", None) == fault.retry_after
    assert KEY not in str(error)
    assert len(str(error)) < 400


FILTERING = [each for each in MANNERS if each.dialect.name != "ollama"]
"""Ollama has no filter."""


@pytest.mark.parametrize("manner", FILTERING, ids=str)
async def test_a_filtered_answer_is_refused(manner: Manner) -> None:
    response = whole(manner, manner.written(Saying("I", ending="filtered")))
    async with open_raw_server(lambda: response, keep_open=False) as server:
        model = manner.make(base_url=server.base_url)
        with pytest.raises(ModelError) as caught:
            await model.answer(REQUEST, deaf)
        await model.aclose()
    assert caught.value.kind == "content"
    assert caught.value.tokens[0] > 0  # it has to be paid for


BEGINS_WITH_TOKENS = [
    each
    for each in MANNERS
    if each.dialect.name == "anthropic" and "stream" in f"{each}"
]


@pytest.mark.parametrize("manner", BEGINS_WITH_TOKENS, ids=str)
async def test_what_was_read_is_known_though_the_answer_breaks_off(
    manner: Manner,
) -> None:
    body = manner.written(SPOKEN)
    response = whole(manner, body[: len(body) // 2])
    async with open_raw_server(lambda: response, keep_open=False) as server:
        model = manner.make(base_url=server.base_url)
        with pytest.raises(ModelBusyError) as caught:
            await model.answer(REQUEST, deaf)
        await model.aclose()
    assert caught.value.tokens[0] > 0


@pytest.mark.parametrize("manner", MANNERS, ids=str)
async def test_nobody_there_is_the_network(manner: Manner) -> None:
    async with open_raw_server(lambda: b"", keep_open=False) as server:
        base_url = server.base_url
    await fails_to_connect(manner, base_url)


@pytest.mark.parametrize("manner", MANNERS, ids=str)
async def test_no_encryption_where_it_should_be_is_the_network(manner: Manner) -> None:
    async def greet(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.send_all(b"220 mail.example ESMTP\r\n")
            await stream.receive_some()

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, greet, listeners)
        await fails_to_connect(manner, f"https://127.0.0.1:{port}")
        nursery.cancel_scope.cancel()


async def fails_to_connect(manner: Manner, base_url: str) -> None:
    model = manner.make(base_url=base_url)
    with trio.fail_after(10), pytest.raises(ModelBusyError) as caught:
        await model.answer(REQUEST, deaf)
    await model.aclose()
    assert caught.value.kind == "network"
