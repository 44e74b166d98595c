"""Proves that TLS carries the name that was asked for, to the address checked."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio

from connectors.config.tools import FetchConfig
from connectors.fetch.fetcher import Fetched, Fetcher, FetchRequest, usual_trust
from connectors.fetch.messages import FetchFailedError, FetchTimeoutError
from tests.fakes.sites.certificate import client_side, server_side
from tests.fakes.sites.site import FakeDns, response

ANSWER = response(b"sealed")
Names = list[str | None]


@contextlib.asynccontextmanager
async def open_sealed_site(folder: Path) -> AsyncGenerator[tuple[int, Names]]:
    """Serve TLS on loopback; give the port, and the names that clients asked for."""
    context = server_side(folder)
    names: Names = []

    def note(_socket: object, name: str | None, _context: object) -> None:
        names.append(name)

    context.sni_callback = note

    async def talk(stream: trio.SSLStream[trio.SocketStream]) -> None:
        async with stream:
            with contextlib.suppress(trio.BrokenResourceError):
                await stream.receive_some()
                await stream.send_all(ANSWER)

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_ssl_over_tcp_listeners(
            0, context, host="127.0.0.1", https_compatible=True
        )
        port = listeners[0].transport_listener.socket.getsockname()[1]  # type: ignore[attr-defined]
        nursery.start_soon(trio.serve_listeners, talk, listeners)
        yield port, names
        nursery.cancel_scope.cancel()


async def ask(host: str, port: int, context: ssl.SSLContext | None) -> Fetched:
    dns = FakeDns({host: [["127.0.0.1"]]})
    config = FetchConfig(allow=("127.0.0.1",), timeout=1.0)
    fetcher = Fetcher(config, resolve=dns.resolve, ssl_context=context)
    return await fetcher.fetch(FetchRequest(url=f"https://{host}:{port}/"))


async def test_the_server_hears_the_name_and_not_the_address(tmp_path: Path) -> None:
    async with open_sealed_site(tmp_path) as (port, names):
        answer = await ask("site.example", port, client_side())
    assert answer.body == b"sealed"
    assert names == ["site.example"]


async def test_a_certificate_for_another_name_is_refused(tmp_path: Path) -> None:
    async with open_sealed_site(tmp_path) as (port, _):
        with pytest.raises(FetchFailedError, match=r"^other\.example: .*ertificate"):
            await ask("other.example", port, client_side())


async def test_a_certificate_that_nobody_signed_is_refused(tmp_path: Path) -> None:
    async with open_sealed_site(tmp_path) as (port, _):
        with pytest.raises(FetchFailedError, match="certificate"):
            await ask("site.example", port, None)


def test_whom_to_trust_is_not_taken_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = tmp_path / "nobody.pem"
    nobody.write_text("")
    monkeypatch.setenv("SSL_CERT_FILE", str(nobody))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    usual_trust.cache_clear()
    try:
        assert usual_trust().cert_store_stats()["x509_ca"] > 50
    finally:
        usual_trust.cache_clear()


async def test_a_server_that_never_greets_leaves_no_connection() -> None:
    is_left = trio.Event()

    async def silent(stream: trio.SocketStream) -> None:
        async with stream:
            while await stream.receive_some():
                pass
            is_left.set()

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listeners[0].socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, silent, listeners)
        with pytest.raises(FetchTimeoutError):
            await ask("site.example", port, client_side())
        with trio.fail_after(5):
            await is_left.wait()
        nursery.cancel_scope.cancel()
