"""A real `callboard serve` in a process of its own: three agents and HTTP.

In an empty folder of its own unless it is given one, on a free port.
"""

from __future__ import annotations

import tempfile
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError

import msgspec

from benchmarks.stage.programs import module, started
from benchmarks.stopwatch import now

if TYPE_CHECKING:
    from collections.abc import Generator

COMMAND = module("connectors")
PATIENCE = 30.0
"""Seconds after which a server that is not ready counts as broken."""

AGENT = "anna"
DATABASE = "callboard.db"
"""Where the settings put it, in the server's folder."""

SETTINGS = """
default_agent = "anna"
[admin]
is_on = false
[store]
path = "callboard.db"
[models.scripted]
kind = "scripted"
script = "script.toml"
[connectors.http]
kind = "http"
port = 0
[agents.anna]
[agents.ben]
[agents.carl]
"""
SCRIPT = """
[default]
reply = "You said: {0}"
"""
PROVIDER = """
[models.provider]
kind = "openai"
model = "stub"
base_url = "{base_url}"
"""


class Server(msgspec.Struct, frozen=True):
    """A server that is ready."""

    process: int
    """Its id."""

    address: str
    """As in `http://127.0.0.1:8080`."""

    seconds: float
    """From starting the process until `/readyz` said yes."""


def with_provider(base_url: str) -> str:
    """Give settings in which the first agent's model is asked over HTTP."""
    asking = SETTINGS.replace("[agents.anna]", '[agents.anna]\nmodel = "provider"')
    return asking + PROVIDER.format(base_url=base_url)


@contextmanager
def served(settings: str = SETTINGS, folder: Path | None = None) -> Generator[Server]:
    """Start the server, wait until it is ready, and kill it after the block.

    Args:
        settings: what it is told, as TOML.
        folder: where it keeps its database; an empty one if not given.

    Raises:
        RuntimeError: it ended, or was not ready in time.
    """
    with tempfile.TemporaryDirectory() as temporary:
        home = folder or Path(temporary)
        file = home / "callboard.toml"
        file.write_text(settings, encoding="utf-8")
        file.with_name("script.toml").write_text(SCRIPT, encoding="utf-8")
        begin = now()
        command = (*COMMAND, "serve", "--config", str(file))
        with started(command, home) as program:
            wait_ready(program.address, begin)
            yield Server(program.process, program.address, now() - begin)


def wait_ready(at: str, begin: float) -> None:
    """Ask until the server says that it is ready."""
    while now() - begin < PATIENCE:
        try:
            with urllib.request.urlopen(f"{at}/readyz", timeout=PATIENCE) as answer:  # noqa: S310  our own address
                if answer.status == 200:
                    return
        except URLError:  # not yet: a 503, or nobody listens
            continue
    raise RuntimeError(f"{at} was not ready within {PATIENCE} s")
