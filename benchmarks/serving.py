"""A real `callboard serve` in a process of its own: three agents and HTTP.

In an empty folder of its own, on a free port.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError

import msgspec

from benchmarks.machine import ROOT
from benchmarks.stopwatch import now

if TYPE_CHECKING:
    from collections.abc import Generator

COMMAND = (sys.executable, "-m", "connectors")
PATIENCE = 30.0
"""Seconds after which a server that is not ready counts as broken."""

SETTINGS = """
default_agent = "anna"
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


class Server(msgspec.Struct, frozen=True):
    """A server that is ready."""

    process: int
    """Its id."""

    seconds: float
    """From starting the process until `/readyz` said yes."""


@contextmanager
def served() -> Generator[Server]:
    """Start the server, wait until it is ready, and kill it after the block.

    Raises:
        RuntimeError: it ended, or was not ready in time.
    """
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder) / "callboard.toml"
        settings.write_text(SETTINGS, encoding="utf-8")
        settings.with_name("script.toml").write_text(SCRIPT, encoding="utf-8")
        begin = now()
        with subprocess.Popen(  # noqa: S603  our own program
            [*COMMAND, "serve", "--config", str(settings)],
            cwd=folder,
            env={"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            try:
                wait_ready(address(process), begin)
                yield Server(process.pid, now() - begin)
            finally:
                # Not terminate: how long it takes to end is another matter.
                process.kill()


def address(process: subprocess.Popen[str]) -> str:
    """Read from its first line where the server listens."""
    assert process.stdout is not None
    said = process.stdout.readline()
    if "http://" not in said:
        raise RuntimeError(f"callboard serve did not say where it listens: {said!r}")
    return said.split()[-1]


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
