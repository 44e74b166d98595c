"""The examples for Caddy and nginx, before a server: certificate, streams, sockets."""

# socketio says nothing of its types:
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import asyncio  # noqa: TID251  the clients live there
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import socketio
from aiohttp.abc import AbstractResolver, ResolveResult

from connectors.web.eliza.messages import to_uuid
from tests.processes.running import PATIENCE, ROOT, served

pytestmark = pytest.mark.live

EXAMPLES = ROOT / "config" / "deploy" / "proxy"
BEHIND = {8080: "http", 8081: "page", 3000: "web"}
CHAT, API, ELIZA = (f"{name}.example.org" for name in ("chat", "api", "eliza"))
TABLES = """
[connectors.page]
kind = "page"
port = {page}
origin = "https://chat.example.org"
trusted_proxies = ["127.0.0.1"]

[connectors.web]
kind = "web"
port = {web}
trusted_proxies = ["127.0.0.1"]
api_key = {{ env = "KEY" }}
"""
KEY = "key-of-this-test-alone"
WORDS = "one two three four five six seven eight nine ten"


class Loopback(AbstractResolver):
    """Finds every host on this machine."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host="127.0.0.1",
                port=port,
                family=family,
                proto=0,
                flags=0,
            )
        ]

    async def close(self) -> None:
        pass


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def example(name: str, ports: dict[str, int]) -> str:
    """Give an example that leads to the ports of a test."""
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    for port, connector in BEHIND.items():
        text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{ports[connector]}")
    return text


def caddy(folder: Path, ports: dict[str, int]) -> tuple[str, ...]:
    head = "{\n\tadmin off\n\tlocal_certs\n\tskip_install_trust\n"
    head += f"\tauto_https disable_redirects\n\tstorage file_system {folder}/kept\n}}\n"
    text = re.sub(
        r"^(\w+\.example\.org) ",
        rf"\1:{ports['proxy']} ",
        example("Caddyfile", ports),
        flags=re.MULTILINE,
    )
    path = folder / "Caddyfile"
    path.write_text(head + text, encoding="utf-8")
    return ("run", "--config", str(path), "--adapter", "caddyfile")


def nginx(folder: Path, ports: dict[str, int]) -> tuple[str, ...]:
    key, certificate = folder / "key", folder / "certificate"
    made = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=a")
    files = ("-keyout", str(key), "-out", str(certificate))
    openssl = shutil.which("openssl") or "/usr/bin/openssl"
    subprocess.run([openssl, *made, *files], check=True, capture_output=True)
    text = example("nginx.conf", ports)
    text = text.replace("listen 443 ssl", f"listen 127.0.0.1:{ports['proxy']} ssl")
    text = re.sub(r"/etc/\S+/fullchain.pem", str(certificate), text)
    text = re.sub(r"/etc/\S+/privkey.pem", str(key), text)
    head = f"daemon off; pid {folder}/pid; error_log stderr; events {{}}\n"
    path = folder / "nginx.conf"
    path.write_text(f"{head}http {{\naccess_log off;\n{text}}}\n", encoding="utf-8")
    return ("-c", str(path))


@contextmanager
def running(program: str, words: tuple[str, ...], folder: Path) -> Generator[None]:
    home = {"HOME": str(folder), "PATH": "/usr/bin:/usr/sbin:/bin"}
    with (
        (folder / "proxy.log").open("w") as log,
        subprocess.Popen([program, *words], stdout=log, stderr=log, env=home) as proxy,
    ):
        try:
            yield
        finally:
            proxy.terminate()


async def page_of(session: aiohttp.ClientSession, base: str) -> str:
    """Ask for the page until the proxy is there, and has its certificate."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                async with session.get(f"{base}/login") as answer:
                    assert answer.status == 200
                    return await answer.text()
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.05)


async def goes_through(bases: dict[str, str]) -> None:
    """Use each connector through the proxy."""
    connector = aiohttp.TCPConnector(resolver=Loopback(), ssl=False)
    headers = {"authorization": f"Bearer {KEY}"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        assert "<html" in await page_of(session, bases["page"])
        await streams(session, bases["http"])
        for path in ("/webhooks/nobody", "/platforms/nobody"):
            async with session.post(f"{bases['http']}{path}", json={}) as answer:
                assert answer.status in {401, 404}, path
                assert (await answer.json())["error"]["code"], path
        await talks(session, bases["web"])


async def streams(session: aiohttp.ClientSession, base: str) -> None:
    """Hear an answer word by word, not at its end."""
    said = [{"role": "user", "content": f"slowly {WORDS}"}]
    asked = {"model": "anna", "stream": True, "messages": said}
    async with session.post(f"{base}/v1/chat/completions", json=asked) as answer:
        assert answer.status == 200, await answer.text()
        pieces = [each async for each in answer.content.iter_any()]
    assert b"[DONE]" in pieces[-1]
    assert len(pieces) > 3


async def talks(session: aiohttp.ClientSession, base: str) -> None:
    """Connect by Socket.IO, and hear of it."""
    heard: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    client: Any = socketio.AsyncClient(
        reconnection=False, handle_sigint=False, http_session=session
    )
    client.on("connection_established", heard.set_result)
    auth = {"apiKey": KEY, "entityId": str(to_uuid("Zoe"))}
    await client.connect(base, auth=auth, transports=["websocket"])
    async with asyncio.timeout(PATIENCE):
        assert await heard
    await client.disconnect()


# aiohttp ends connections with TLS in the background.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("make", [caddy, nginx])
def test_all_that_clients_do_goes_through_the_proxy(
    tmp_path: Path, make: Callable[[Path, dict[str, int]], tuple[str, ...]]
) -> None:
    program = shutil.which(make.__name__, path="/usr/bin:/usr/sbin:/usr/local/bin")
    if program is None:
        pytest.skip(f"there is no {make.__name__} here")
    ports = {name: free_port() for name in ("page", "web", "proxy")}
    with ExitStack() as stack:
        more = TABLES.format(**ports)
        http = 'api_key = { env = "KEY" }'
        served_here = served(tmp_path / "home", http=http, more=more, KEY=KEY)
        server = stack.enter_context(served_here)
        ports["http"] = server.address[1]
        stack.enter_context(running(program, make(tmp_path, ports), tmp_path))
        hosts = {"page": CHAT, "http": API, "web": ELIZA}
        if make is nginx:
            hosts = dict.fromkeys(hosts, CHAT)
        bases = {
            name: f"https://{host}:{ports['proxy']}" for name, host in hosts.items()
        }
        asyncio.run(goes_through(bases))
