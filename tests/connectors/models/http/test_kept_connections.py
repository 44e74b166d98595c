"""Proves how connections to a model's server are made, kept and given up."""

from __future__ import annotations

import contextlib
import shutil
import ssl
import subprocess
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import cast

import httpx
import pytest
import trio
import trio.testing

from connectors.models.http.connections import KEPT_FOR, KeptConnections, OpenConnection
from tests.fakes.models.server import RawServer, chunked, converse, open_raw_server

HELLO = chunked(b"hello")


def connections(base_url: str, most: int = 2) -> KeptConnections:
    return KeptConnections(
        httpx.URL(base_url), most=most, connect_timeout=10.0, write_timeout=10.0
    )


def question(base_url: str, body: bytes = b"{}") -> httpx.Request:
    return httpx.Request("POST", f"{base_url}/x?y=z", content=body)


async def ask(kept: httpx.AsyncBaseTransport, base_url: str) -> bytes:
    """Ask once and read the answer to its end."""
    response = await kept.handle_async_request(question(base_url))
    body = await response.aread()
    await response.aclose()
    return body


async def fail(
    kept: httpx.AsyncBaseTransport, base_url: str, error: type[Exception]
) -> None:
    """Ask once, in vain."""
    with pytest.raises(error, match=r"within 10 s|after 10 s|verify failed"):
        await ask(kept, base_url)


async def test_a_connection_that_was_closed_meanwhile_is_not_used() -> None:
    async with open_raw_server(lambda: HELLO, keep_open=False) as server:
        kept = connections(server.base_url)
        for _ in range(3):
            assert await ask(kept, server.base_url) == b"hello"
            await trio.testing.wait_all_tasks_blocked()
        assert server.connections == 3
        await kept.aclose()


async def test_a_connection_that_was_unused_for_long_is_not_used(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with open_raw_server(lambda: HELLO, keep_open=True) as server:
        kept = connections(server.base_url)
        await ask(kept, server.base_url)
        mock_clock.jump(KEPT_FOR)
        await ask(kept, server.base_url)
        assert server.connections == 1
        mock_clock.jump(KEPT_FOR + 0.1)
        await ask(kept, server.base_url)
        assert server.connections == 2
        await server.client_left.wait()
        await kept.aclose()


async def test_unused_ones_leave_when_others_come_back(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with open_raw_server(lambda: HELLO, keep_open=True) as server:
        kept = connections(server.base_url)
        request = question(server.base_url)
        first = await kept.handle_async_request(request)
        second = await kept.handle_async_request(request)
        await first.aread()
        mock_clock.jump(KEPT_FOR + 0.1)
        await second.aread()
        await server.client_left.wait()
        assert await ask(kept, server.base_url) == b"hello"
        assert server.connections == 2
        await kept.aclose()


async def test_more_requests_than_connections_wait(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with open_raw_server(lambda: HELLO, keep_open=True) as server:
        kept = connections(server.base_url, most=1)
        first = await kept.handle_async_request(question(server.base_url))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail, kept, server.base_url, httpx.PoolTimeout)
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(10.0)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, kept, server.base_url)
            await trio.testing.wait_all_tasks_blocked()
            await first.aread()
        assert (server.connections, server.requests) == (1, 2)
        await kept.aclose()


async def test_who_was_cancelled_takes_no_room() -> None:
    async with open_raw_server(lambda: b"", keep_open=True) as server:
        kept = connections(server.base_url, most=1)
        for _ in range(3):
            async with trio.open_nursery() as nursery:
                for _ in range(2):
                    nursery.start_soon(ask, kept, server.base_url)
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
        await server.client_left.wait()
        assert server.connections == 3
        await kept.aclose()


@pytest.mark.parametrize("is_read", [True, False])
async def test_a_response_left_early_ends_its_connection(*, is_read: bool) -> None:
    async with open_raw_server(lambda: HELLO, keep_open=True) as server:
        kept = connections(server.base_url, most=1)
        response = await kept.handle_async_request(question(server.base_url))
        if is_read:
            await response.aread()
        await response.aclose()
        assert await ask(kept, server.base_url) == b"hello"
        # What came in one piece with its head is whole, read or not.
        assert server.connections == 1
        await kept.aclose()
        await server.client_left.wait()


async def test_an_answer_under_way_outlives_closing() -> None:
    async with open_raw_server(lambda: HELLO, keep_open=True) as server:
        kept = connections(server.base_url)
        response = await kept.handle_async_request(question(server.base_url))
        await kept.aclose()
        assert await response.aread() == b"hello"
        await server.client_left.wait()


async def test_a_head_with_a_line_break_is_not_sent() -> None:
    request = question("http://provider")
    request.headers["x-name"] = "a\r\nx-other: b"
    with pytest.raises(httpx.LocalProtocolError, match="line break"):
        await connections("http://provider").handle_async_request(request)


class InMemory(KeptConnections):
    """Has one connection, to the other end of a pair of streams."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        url = httpx.URL("http://provider")
        super().__init__(url, most=1, connect_timeout=1.0, write_timeout=1.0)
        self._stream = stream

    async def _connect(self) -> OpenConnection:
        await trio.lowlevel.checkpoint()
        return OpenConnection(self._stream, cast("trio.socket.SocketType", None))


async def test_a_server_may_refuse_before_it_has_read_all() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    await theirs.send_all(HELLO.replace(b"200 OK", b"413 Too Large"))
    await theirs.receive_stream.aclose()
    response = await InMemory(ours).handle_async_request(question("http://provider"))
    assert response.status_code == 413
    assert await response.aread() == b"hello"
    # Half of the request is still on its way: the next one would get mixed up in it.
    with pytest.raises(trio.ClosedResourceError):
        await ours.send_all(b"x")


async def test_a_request_that_nobody_takes_has_a_deadline(
    autojump_clock: trio.testing.MockClock,
) -> None:
    del autojump_clock
    ours, _ = trio.testing.lockstep_stream_pair()
    with pytest.raises(httpx.WriteTimeout, match="not sent after 1 s"):
        await InMemory(ours).handle_async_request(question("http://provider"))


# From here on encrypted.


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a certificate for 127.0.0.1, with its key in the same file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the program `openssl`")
    file = tmp_path_factory.mktemp("certificate") / "server.pem"
    made = f"req -x509 -newkey rsa:2048 -nodes -days 9 -keyout {file} -out {file}.crt"
    named = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([openssl, *made.split(), *named], check=True, capture_output=True)
    with file.open("ab") as whole:
        whole.write(file.with_suffix(".pem.crt").read_bytes())
    return file


@contextlib.asynccontextmanager
async def open_encrypted_server(certificate: Path) -> AsyncGenerator[RawServer]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    listeners = await trio.open_ssl_over_tcp_listeners(0, context, host="127.0.0.1")
    listener = listeners[0].transport_listener
    assert isinstance(listener, trio.SocketListener)
    port = listener.socket.getsockname()[1]
    server = RawServer(port)
    server.base_url = f"https://127.0.0.1:{port}/v1"
    talk = partial(converse, server, lambda: HELLO, keep_open=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, talk, listeners)
        yield server
        nursery.cancel_scope.cancel()


async def test_encrypted_connections_are_kept_too(certificate: Path) -> None:
    async with open_encrypted_server(certificate) as server:
        kept = KeptConnections(
            httpx.URL(server.base_url),
            most=1,
            connect_timeout=10.0,
            write_timeout=10.0,
            encryption=ssl.create_default_context(cafile=certificate),
        )
        for _ in range(3):
            assert await ask(kept, server.base_url) == b"hello"
        await kept.aclose()
        await server.client_left.wait()
        assert (server.connections, server.requests) == (1, 3)


async def test_a_certificate_nobody_vouches_for_is_not_believed(
    certificate: Path,
) -> None:
    async with open_encrypted_server(certificate) as server:
        await fail(connections(server.base_url), server.base_url, httpx.ConnectError)


async def test_a_server_that_never_encrypts_has_a_deadline(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with open_raw_server(lambda: b"", keep_open=True) as server:
        base_url = server.base_url.replace("http:", "https:")
        kept = connections(base_url)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail, kept, base_url, httpx.ConnectTimeout)
            while not server.connections:
                await trio.lowlevel.checkpoint()
            mock_clock.jump(10.0)
        await server.client_left.wait()
