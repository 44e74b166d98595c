"""Programs in processes of their own, which say on their first line where they listen.

They are killed, not asked to end: how long they take to end is another matter.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from benchmarks.machine import ROOT

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path


class Program(msgspec.Struct, frozen=True):
    """A program that listens."""

    process: int
    """Its id."""

    address: str
    """As in `http://127.0.0.1:8080`."""


def module(name: str, *words: str) -> tuple[str, ...]:
    """Give the command that runs a module with this Python."""
    return (sys.executable, "-m", name, *words)


@contextmanager
def started(command: Sequence[str], folder: Path | None = None) -> Generator[Program]:
    """Run a program until the block ends; begin the block when it listens.

    Args:
        command: the program.
        folder: where it runs; the repository's if not given.

    Raises:
        RuntimeError: it did not say where it listens.
    """
    with subprocess.Popen(  # noqa: S603  our own program
        command,
        cwd=folder or ROOT,
        env={"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield Program(process.pid, address(process))
        finally:
            process.kill()


def address(process: subprocess.Popen[str]) -> str:
    """Read from its first line where a program listens."""
    assert process.stdout is not None
    said = process.stdout.readline()
    if "http://" not in said:
        command = " ".join(map(str, process.args))  # type: ignore[arg-type]
        raise RuntimeError(f"{command} did not say where it listens: {said!r}")
    return said.split()[-1]
