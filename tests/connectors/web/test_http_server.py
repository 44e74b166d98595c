"""Bad input gets a clear JSON error, one line in the log, and never a traceback."""

from __future__ import annotations

import json
import logging
import socket
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import httpx
import pytest
import trio

from connectors.chat.server_transport import (
    AwaitedMessages,
    ListenError,
    MessageOver,
    caller_at,
)
from connectors.web.server import HttpSettings, open_socket
from runtime.telemetry.logs import FIELDS
from tests.fakes.actors.neighbours import words
from tests.fakes.web.channel import Channel, open_channel
from tests.fakes.web.eliza import open_web
from tests.fakes.web.page import open_page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

COMPLETIONS = "/v1/chat/completions"
GOOD = {"model": "anna", "messages": [{"role": "user", "content": "hello"}]}
JSON = {"content-type": "application/json"}
POST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"


def error_of(status_and_body: tuple[int, bytes]) -> tuple[int, str]:
    """Give status and code of an error, after checking its shape."""
    status, content = status_and_body
    error: dict[str, Any] = json.loads(content)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    assert b"Traceback" not in content
    return status, error["code"]


async def ask(channel: Channel, method: str, path: str, **rest: Any) -> tuple[int, str]:
    """Send one request that must be refused; gives status and code."""
    async with httpx.AsyncClient(base_url=channel.url, timeout=10) as client:
        response = await client.request(method, path, **rest)
    return error_of((response.status_code, response.content))


class HasPort(Protocol):
    """A server on this machine."""

    port: int


async def ask_raw(channel: HasPort, *parts: bytes) -> tuple[int, bytes]:
    """Write bytes and read until the server closes; gives status and body."""
    with trio.fail_after(5):
        stream = await trio.open_tcp_stream("127.0.0.1", channel.port)
        async with stream:
            for part in parts:
                await stream.send_all(part)
            answer = b"".join([part async for part in stream])
    head, _, content = answer.partition(b"\r\n\r\n")
    return (int(head.split()[1]) if head else 0), content


@pytest.mark.parametrize(
    ("method", "path", "rest", "expected"),
    [
        ("GET", "/nothing", {}, (404, "not_found")),
        ("GET", "/v1/models/", {}, (404, "model_not_found")),
        ("GET", COMPLETIONS, {}, (405, "method_not_allowed")),
        ("POST", COMPLETIONS, {"data": {"a": "b"}}, (415, "unsupported_media_type")),
        ("POST", COMPLETIONS, {"content": b"{}"}, (415, "unsupported_media_type")),
        (
            "POST",
            COMPLETIONS,
            {"json": {}, "headers": {"content-encoding": "gzip"}},
            (415, "unsupported_media_type"),
        ),
        (
            "POST",
            COMPLETIONS,
            {"content": b"{", "headers": JSON},
            (400, "invalid_json"),
        ),
        ("POST", COMPLETIONS, {"json": {}}, (400, "invalid_field")),
        ("POST", COMPLETIONS, {"json": GOOD | {"n": 2}}, (400, "unsupported_field")),
        ("POST", COMPLETIONS, {"json": GOOD | {"user": "a b"}}, (400, "invalid_field")),
        (
            "POST",
            COMPLETIONS,
            {"json": GOOD | {"model": "x"}},
            (404, "model_not_found"),
        ),
        (
            "POST",
            COMPLETIONS,
            {"json": GOOD, "headers": {"host": "evil.example"}},
            (403, "forbidden_host"),
        ),
    ],
)
async def test_a_bad_request_is_one_clear_error_and_one_line_in_the_log(
    method: str,
    path: str,
    rest: dict[str, Any],
    expected: tuple[int, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with open_channel() as channel:
        assert await ask(channel, method, path, **rest) == expected
        assert channel.ingress.accepted == []
    ours = [r for r in caplog.records if not r.name.startswith("http")]
    assert len(ours) == 1
    assert ours[0].exc_info is None
    assert getattr(ours[0], FIELDS)["status"] == expected[0]


async def test_ten_megabytes_are_refused_by_their_declared_length() -> None:
    async with open_channel() as channel:
        big = b'{"model": "' + b"a" * 10_000_000 + b'"}'
        got = await ask(channel, "POST", COMPLETIONS, content=big, headers=JSON)
    assert got == (413, "request_too_large")


async def test_ten_megabytes_without_a_declared_length_are_refused_by_count() -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 100_000

    async with open_channel() as channel:
        got = await ask(channel, "POST", COMPLETIONS, content=parts(), headers=JSON)
    assert got == (413, "request_too_large")


async def test_a_slow_body_is_refused_in_time() -> None:
    slow = POST + b"content-type: application/json\r\ncontent-length: 50\r\n\r\n{"
    async with open_channel(HttpSettings(port=0, body_timeout=0.05)) as channel:
        assert error_of(await ask_raw(channel, slow)) == (408, "body_timeout")


async def test_a_refused_body_that_goes_on_coming_is_cut_off() -> None:
    head = POST + b"content-type: application/json\r\ncontent-length: 99999999\r\n\r\n"
    async with open_channel(HttpSettings(port=0, body_timeout=0.05)) as channel:
        assert error_of(await ask_raw(channel, head)) == (413, "request_too_large")


async def test_slow_headers_are_refused_in_time() -> None:
    async with open_channel(HttpSettings(port=0, body_timeout=0.05)) as channel:
        assert error_of(await ask_raw(channel, POST)) == (408, "request_timeout")


async def test_a_connection_that_says_nothing_is_closed() -> None:
    async with open_channel(HttpSettings(port=0, body_timeout=0.05)) as channel:
        assert await ask_raw(channel) == (0, b"")


async def test_endless_headers_are_refused() -> None:
    header = b"x-filler: " + b"y" * 1000 + b"\r\n"
    async with open_channel() as channel:
        got = await ask_raw(channel, POST, *[header * 16 for _ in range(3)])
    assert error_of(got) == (431, "headers_too_long")


async def test_what_is_not_http_gets_a_json_error() -> None:
    async with open_channel() as channel:
        got = await ask_raw(channel, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
    assert error_of(got) == (400, "invalid_http")


@pytest.mark.parametrize("sent", [b"", POST, POST + b"content-length: 9\r\n\r\n{"])
async def test_who_holds_connections_without_asking_keeps_nobody_out(
    sent: bytes,
) -> None:
    async with open_channel(HttpSettings(port=0, max_connections=2)) as channel:
        held = [await trio.open_tcp_stream("127.0.0.1", channel.port) for _ in "ab"]
        for each in held:
            await each.send_all(sent)
        async with httpx.AsyncClient(base_url=channel.url) as client:
            assert (await client.get("/v1/models")).status_code == 200
        let_go = b""
        # A server that has not read all resets the connection as it closes it.
        with trio.fail_after(5), suppress(trio.BrokenResourceError):
            async for part in held[0]:
                let_go += part
        assert b"overloaded" in let_go or not let_go
        for each in held:
            await each.aclose()


async def test_if_all_connections_are_at_work_only_probes_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("connectors.web.server.FOR_PROBES", 1)
    async with (
        open_channel(HttpSettings(port=0, max_connections=1)) as channel,
        httpx.AsyncClient(base_url=channel.url) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(partial(client.post, COMPLETIONS, json=GOOD))
        inbound = await channel.ingress.next()
        async with httpx.AsyncClient(base_url=channel.url) as prober:
            assert (await prober.get("/healthz")).status_code == 200
            refused = await prober.get("/v1/models")
            answer = error_of((refused.status_code, refused.content))
            assert answer == (503, "overloaded")
            await channel.say(inbound, "done")
            while (await prober.get("/v1/models")).status_code != 200:
                await trio.lowlevel.checkpoint()


async def test_a_request_to_upgrade_is_answered_as_if_it_had_not_asked() -> None:
    upgrade = (
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade, close\r\n"
        b"upgrade: websocket\r\nsec-websocket-key: x\r\n\r\n"
    )
    async with open_channel(HttpSettings(port=0, body_timeout=0.2)) as channel:
        assert await ask_raw(channel, upgrade) == (200, b"ok\n")


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (None, 401),
        ("Bearer wrong", 401),
        ("Bearer schlüssel", 401),
        ("Basic secret", 401),
        ("Bearer secret", 200),
        ("bearer secret", 200),
    ],
)
async def test_a_key_is_asked_for_where_one_is_set(
    given: str | None, status: int
) -> None:
    headers: dict[bytes, bytes] = {}
    if given is not None:
        headers[b"authorization"] = given.encode()
    settings = HttpSettings(port=0, api_key="secret")
    async with (
        open_channel(settings) as channel,
        httpx.AsyncClient(base_url=channel.url) as client,
    ):
        listed = await client.get("/v1/models", headers=headers)
        shown = await client.get("/v1/models/anna", headers=headers)
        assert (listed.status_code, shown.status_code) == (status, status)
        posted = await client.post(COMPLETIONS, content=b"", headers=headers)
        assert posted.status_code == (415 if status == 200 else 401)
        if status == 401:
            assert posted.headers["www-authenticate"] == "Bearer"
        assert (await client.get("/healthz")).status_code == 200
        front = await client.get("/")  # somebody has opened it in a browser
        assert (front.status_code, "/v1/models" in front.text) == (200, True)


async def test_operators_see_health_readiness_and_figures() -> None:
    async with (
        open_channel() as channel,
        httpx.AsyncClient(base_url=channel.url) as client,
    ):
        assert (await client.get("/healthz")).text == "ok\n"
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()) == (
            200,
            {"ready": True, "reasons": []},
        )
        channel.not_ready = ("the store is full",)
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["reasons"]) == (
            503,
            ["the store is full"],
        )
        figures = await client.get("/metrics")
        assert figures.content == b"answer_total 42\n"
        assert figures.headers["content-type"] == "text/plain"


SEALED = {"x-callboard-question": "b mine"}


class EchoingNode:
    """Gives each question back that has the right seal."""

    def refusal(self, node: str, seal: str, body: bytes) -> tuple[int, bytes] | None:
        return None if (node, seal) == ("b", "mine") else (401, body)

    async def answer(self, body: bytes) -> tuple[int, bytes]:
        await trio.lowlevel.checkpoint()
        if body == b"slow":
            await trio.sleep_forever()
        assert len(body) < 10
        return 200, body


async def test_another_node_is_answered_if_it_asks_in_few_words() -> None:
    async with open_channel(nodes=EchoingNode()) as channel:
        async with httpx.AsyncClient(base_url=channel.url) as client:
            told = await client.post("/node", content=b"hello", headers=SEALED)
            assert (told.status_code, told.content) == (200, b"hello")
        long = {"content": bytes(65_537), "headers": SEALED}
        assert await ask(channel, "POST", "/node", **long) == (413, "request_too_large")
    async with open_channel() as alone:
        assert await ask(alone, "POST", "/node", content=b"x") == (404, "not_found")


async def test_the_kernel_hears_no_question_of_a_stranger() -> None:
    # The kernel would never answer it, and no body comes.
    head = (
        b"POST /node HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 4\r\n"
    )
    async with open_channel(nodes=EchoingNode()) as channel:
        told = await ask_raw(channel, head + b"\r\n")
        assert error_of(told) == (401, "refused")
        forged = b"x-callboard-question: b forged\r\n\r\nslow"
        told = await ask_raw(channel, head + forged)
        assert error_of(told) == (401, "refused")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"slow", b"the kernel did not answer"),
        (b"hal", b"the question did not come in time"),
    ],
)
async def test_another_node_does_not_wait_for_ever(
    body: bytes, why: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.web.operations.COMMAND_WITHIN", 0.2)
    head = b"POST /node HTTP/1.1\r\nhost: a\r\nconnection: close\r\n"
    head += b"x-callboard-question: b mine\r\n"
    async with open_channel(nodes=EchoingNode()) as channel:
        told = await ask_raw(channel, head + b"content-length: 4\r\n\r\n" + body)
        assert error_of(told) == (503, "unavailable")
        assert why in told[1]


async def test_a_bug_is_an_error_of_the_server_with_its_traceback_in_the_log_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_channel() as channel:
        channel.ingress.error = ZeroDivisionError("a bug")
        got = await ask(channel, "POST", COMPLETIONS, json=GOOD)
    assert got == (500, "internal_error")
    assert "ZeroDivisionError" in caplog.text


def test_a_server_open_to_others_needs_a_key() -> None:
    with pytest.raises(ListenError, match="set api_key"):
        open_socket(HttpSettings(host="0.0.0.0", port=0))  # noqa: S104
    open_socket(HttpSettings(host="0.0.0.0", port=0, api_key="k")).close()  # noqa: S104


def test_a_taken_port_says_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=f"{port}.*end the other program"):
            open_socket(HttpSettings(port=port))


async def test_a_client_that_does_not_read_is_cut_off() -> None:
    content = json.dumps(GOOD | {"stream": True}).encode()
    head = b"content-type: application/json\r\ncontent-length: %d\r\n\r\n"
    async with open_channel(HttpSettings(port=0, stall_timeout=0.05)) as channel:
        stream = await trio.open_tcp_stream("127.0.0.1", channel.port)
        async with stream:
            await stream.send_all(POST + head % len(content) + content)
            inbound = await channel.ingress.next()
            for _ in range(20):
                await channel.draft(inbound, "y" * 1_000_000)
            with trio.fail_after(5):
                while await channel.waiting():
                    await trio.lowlevel.checkpoint()


async def test_a_part_that_was_answered_counts_although_the_rest_failed() -> None:
    async with (
        open_channel() as channel,
        httpx.AsyncClient(base_url=channel.url) as client,
        trio.open_nursery() as nursery,
    ):

        async def play() -> None:
            inbound = await channel.ingress.next()
            await channel.say(inbound, "Ben knows.", left=1)
            await channel.transport.settle(inbound, "dead")

        nursery.start_soon(play)
        response = await client.post(COMPLETIONS, json=GOOD)
    assert response.json()["choices"][0]["message"]["content"] == "Ben knows."


async def test_keys_of_two_conversations_are_never_taken_for_the_same() -> None:
    async with (
        open_channel() as channel,
        httpx.AsyncClient(base_url=channel.url) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(channel.answer_all)
        for chat, key in (("a/b", "c"), ("a", "b/c")):
            names = {"x-callboard-conversation": chat, "idempotency-key": key}
            response = await client.post(COMPLETIONS, json=GOOD, headers=names)
            assert response.status_code == 200
        nursery.cancel_scope.cancel()
    assert len(channel.ingress.accepted) == 2


HOSTS = [(b"", 400), (b"host: a\r\nhost: b\r\n", 400), (b"host: localhost\r\n", 200)]


@pytest.mark.parametrize(("hosts", "status"), HOSTS)
async def test_a_request_of_http_1_1_names_one_host(hosts: bytes, status: int) -> None:
    head = b"GET /healthz HTTP/1.1\r\n" + hosts + b"connection: close\r\n\r\n"
    async with open_channel() as channel:
        assert (await ask_raw(channel, head))[0] == status
        old = b"GET /healthz HTTP/1.0\r\n\r\n"
        assert (await ask_raw(channel, old))[0] == 200
    async with open_web() as web:
        assert (await ask_raw(web, head))[0] == status
    async with open_page() as page:
        assert (await ask_raw(page, head))[0] == status


def test_an_address_is_one_caller_however_it_is_written() -> None:
    one, other = caller_at("192.0.2.1"), caller_at("192.0.2.2")
    assert caller_at("::ffff:192.0.2.1") == one != other
    assert caller_at("::ffff:192.0.2.2") == other
    assert caller_at("2001:db8::1") == caller_at("2001:db8::2%eth0") != one


def test_a_message_without_an_answer_is_over_but_nobody_waits_for_an_agent_s_own() -> (
    None
):
    told: list[MessageOver] = []
    awaited = AwaitedMessages("http", told.append)
    asked = words(correlation_id="asked")
    own = words(number=2, correlation_id="own", occasion="heartbeat", platform_id="")
    for each in (asked, own):
        awaited.settled(each, "silent")
    assert told == [MessageOver("asked", "room", "p1", "silent")]
