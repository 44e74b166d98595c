"""Runs pytest again and again without starting Python for each run.

A process has imported what the tests need from outside the repository, and forks for
each run; what is imported from the repository is imported after that, with the mistake
in it. Most mistakes are found within a second, and the start takes as long.

    python -m tests.mutants.warm    # reads [[arguments], seconds] from its input
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NO_MATTER = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""Hypothesis and anyio are plugins of pytest, too: it wants to import them itself."""

IMPORTED = (
    *("hypothesis", "hypothesis.stateful", "hypothesis.strategies", "trio.testing"),
    *("anyio", "apsw", "click", "coverage", "discord", "h11", "httpx", "msgspec"),
    *("nio", "prometheus_client", "pykka", "slack_sdk", "socketio", "wsproto"),
)


class Warm:
    """Runs pytest in the folder of a copy of the program, one run at a time.

    Args:
        folder: of the copy.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._process = subprocess.Popen(
            (sys.executable, "-m", __name__),
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, arguments: Sequence[str], limit: float) -> int | None:
        """Give the exit status of pytest, or None if `limit` seconds were over."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps((arguments, limit)) + "\n")
        self._process.stdin.flush()
        status: int | None = json.loads(self._process.stdout.readline())
        return status

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def serve() -> None:
    """Fork for each line of the input, and write how that ended."""
    for module in IMPORTED:
        with suppress(ImportError):
            importlib.import_module(module)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    for line in sys.stdin:
        arguments, limit = json.loads(line)
        child = os.fork()
        if not child:
            run(arguments)
        ended = signal.sigtimedwait({signal.SIGCHLD}, limit)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what its tests started, too
        os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        signal.sigtimedwait({signal.SIGCHLD}, 0)  # of one that was killed
        sys.stdout.write(json.dumps(status if ended else None) + "\n")
        sys.stdout.flush()


def run(arguments: list[str]) -> None:
    """Run pytest in a process of its own, and end it."""
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    status = 1
    try:
        status = pytest.main([*NO_MATTER, *arguments])
    finally:
        os._exit(status)


if __name__ == "__main__":
    serve()
