"""Daily logs as files for people: `<folder>/<agent>/memory/YYYY-MM-DD.md` (F162).

They lie outside the agents' own folders: an agent that could read them would tell one
person what another did. Days are those of UTC.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import trio

from actors.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path

OWNER_ONLY = 0o700
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
