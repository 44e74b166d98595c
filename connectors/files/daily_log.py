"""Daily logs as files for people: `<folder>/<agent>/memory/YYYY-MM-DD.md`.

They lie outside the agents' own folders: an agent that could read them would tell one
person what another did. Days are those of UTC.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import trio

from actors.errors import ToolError

OWNER_ONLY = 0o700
DAY = re.compile(r"\d{4}-\d\d-\d\d\.md", re.ASCII)
MOST_AT_ONCE = 1_000
"""Files that are removed in one go; the others wait for the next."""

MOST_OF_DAY = 16 * 1024 * 1024
"""Bytes of one day's file; what would be more is refused."""


class FileLogBook:
    """Keeps the files of all agents.

    Args:
        folder: where they lie; made when the first entry comes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def append(self, agent: str, at: float, text: str) -> None:
        """Add an entry to an agent's file of that day; see the port."""
        moment = datetime.fromtimestamp(at, UTC)
        entry = f"- [{moment:%H:%M}] {' '.join(text.split())}\n"
        file = self._folder / agent / "memory" / f"{moment:%Y-%m-%d}.md"
        try:
            await trio.to_thread.run_sync(partial(add_line, file, entry))
        except OSError as error:
            raise ToolError(f"{file} cannot be written: {error}") from error

    async def prune(self, agent: str, before: float) -> int:
        """Remove the files of days long past; see the port."""
        folder = self._folder / agent / "memory"
        last = datetime.fromtimestamp(before, UTC).date() - timedelta(days=1)
        try:
            return await trio.to_thread.run_sync(remove_until, folder, last)
        except OSError as error:
            raise ToolError(f"{folder} cannot be tidied: {error}") from error


def remove_until(folder: Path, last: date) -> int:
    """Remove the files of all days up to one; it blocks.

    Raises:
        OSError: the disk says no.
    """
    try:
        with os.scandir(folder) as found:
            names = [x.name for x in found if x.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return 0
    old = sorted(x for x in names if DAY.fullmatch(x) and x[:-3] <= last.isoformat())
    for name in old[:MOST_AT_ONCE]:
        (folder / name).unlink(missing_ok=True)
    return len(old[:MOST_AT_ONCE])


def add_line(file: Path, entry: str) -> None:
    """Add a line to a file, whole or not at all as far as the disk allows; it blocks.

    Raises:
        OSError: the disk says no, or the file is as long as it may be.
    """
    file.parent.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(file, flags, 0o600)
    try:
        if os.fstat(handle).st_size + len(entry.encode()) > MOST_OF_DAY:
            raise OSError(f"the day's file has its {MOST_OF_DAY} bytes")
        os.write(handle, entry.encode())
        os.fsync(handle)
    finally:
        os.close(handle)
