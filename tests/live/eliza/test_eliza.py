"""The official client of the ElizaOS API, unmodified, against a whole company.

What it proves is in `eliza_client.mjs` and `eliza_agents.mjs`, which together call
every method that the client has; `setup.sh` fetches the clients. Those that fail by
design are listed, with the reason, at the head of `eliza_agents.mjs`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
LIVE = ROOT / ".live"
SCRIPTS = ("eliza_client.mjs", "eliza_agents.mjs", "eliza_watch.mjs")

MORE = """
[hiring]
who = "owners"

[media.transcriber]
base_url = "{models}"

[media.speaker]
base_url = "{models}"
api_key = {{ file = "{key}" }}
"""


class Voices(BaseHTTPRequestHandler):
    """Stands in for an endpoint that hears and speaks."""

    def do_POST(self) -> None:
        """Hear the same in everything; speak a text as its own letters."""
        body = self.rfile.read(int(self.headers["content-length"]))
        told = b'{"text": "hello"}'
        if self.path.endswith("/speech"):
            told = b"spoken: " + json.loads(body)["input"].encode()
        self.send_response(200)
        self.send_header("content-length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  theirs
        """Say nothing."""


@contextmanager
def voices() -> Generator[str]:
    """Serve them; gives the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Voices)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def company(folder: Path, more: str = "") -> Generator[tuple[Any, str]]:
    """Serve the agents of `config/web.toml` on a free port; gives the address."""
    folder.mkdir()
    text = (ROOT / "config" / "web.toml").read_text(encoding="utf-8")
    text = text.replace('"var/web.db"', f'"{folder / "web.db"}"')
    own = f'kind = "web"\nport = 0\nuploads = "{folder / "uploads"}"'
    text = text.replace('kind = "web"', own)
    for name in ("agents/anna", "agents/ben", "offline_script.toml"):
        text = text.replace(f'"{name}"', f'"{ROOT / "config" / name}"')
    text = text.replace("[agents.ben]", '[agents.ben]\ntools = ["calculate"]')
    if more:
        text = text.replace("[agents.anna]", "[agents.anna]\nis_conductor = true")
    settings = folder / "web.toml"
    settings.write_text(text + more, encoding="utf-8")
    command = [sys.executable, "-m", "connectors", "serve", "--config", str(settings)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, encoding="utf-8", cwd=ROOT
    ) as server:
        assert server.stdout is not None
        try:
            yield server, server.stdout.readline().split()[-1]
        finally:
            server.terminate()
            server.wait(30)


def play(script: str, address: str) -> Any:
    """Run a script; gives which methods there are, and which it called."""
    for name in SCRIPTS:  # beside the packages that they import
        shutil.copy(HERE / name, LIVE / name)
    run = subprocess.run(
        ["node", str(LIVE / script), address],  # noqa: S607
        capture_output=True,
        encoding="utf-8",
        timeout=80,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def test_the_official_client_finds_all_that_it_asks_for(tmp_path: Path) -> None:
    with company(tmp_path / "one") as (_, address):
        first = play("eliza_client.mjs", address)
    key = tmp_path / "voice.key"
    key.write_text("the-key-of-the-voice", encoding="utf-8")
    key.chmod(0o600)
    with voices() as models:
        more = MORE.format(models=models, key=key)
        with company(tmp_path / "two", more) as (server, address):
            second = play("eliza_agents.mjs", address)
            assert server.wait(30) == 0  # a client told it to stop
    left = set(first["all"]) - {*first["called"], *second["called"]}
    assert left == set()
    assert len(first["all"]) > 90
