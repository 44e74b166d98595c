"""Folders of programs' conversations, which go when nobody has spoken there for long.

With a folder goes the program's own memory of the conversation; ours stays, and the
next message has the program begin anew from it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import trio

from runtime.telemetry.logs import EventLog

LOG = EventLog("cli")

DAY = 86_400.0

# Chosen: folders age by days; a look takes about 10 ms for each thousand of them.
LOOK_EVERY = 3600.0
"""Seconds between two looks."""

MOST_AT_ONCE = 1000
"""Folders removed in one look; the others wait for the next."""

LEAVING = ".leaving"
"""Ends the name of a folder that is being removed: nobody begins anything in it."""


class Folders:
    """The folders of all programs' conversations.

    Args:
        folder: holds them, as `<agent>/<conversation>`.
        keep: seconds for which an unused one stays.
        wall_clock: gives Unix seconds.
        count: is told how many were removed.
    """

    def __init__(
        self,
        folder: Path,
        keep: float,
        wall_clock: Callable[[], float],
        count: Callable[[int], object],
    ) -> None:
        self._folder = folder
        self._keep = keep
        self._wall_clock = wall_clock
        self._count = count
        self._due_at = 0.0

    async def tidy(self) -> None:
        """Remove those that nobody uses any more; mostly there is nothing to do."""
        now = self._wall_clock()
        if now < self._due_at:
            return
        self._due_at = now + LOOK_EVERY
        removed = await trio.to_thread.run_sync(
            remove_unused, self._folder, now - self._keep
        )
        if removed:
            self._count(removed)
            LOG.info("folders of programs' conversations removed", count=removed)


def touch(home: Path) -> None:
    """Note that a conversation's folder is in use now.

    Raises:
        OSError: it cannot be changed.
    """
    os.utime(home)


def remove_unused(folder: Path, before: float) -> int:
    """Remove the folders that were last used before a moment; give how many.

    Args:
        folder: holds them, as `<agent>/<conversation>`.
        before: Unix seconds.
    """
    removed = 0
    for home in folders_in(folder):
        if removed == MOST_AT_ONCE:
            break
        try:
            if home.name.endswith(LEAVING):
                leaving = home
            elif home.lstat().st_mtime < before:
                # Renamed first: a message that comes just now begins a new one.
                leaving = home.rename(home.with_name(home.name + LEAVING))
            else:
                continue
            shutil.rmtree(leaving)
            removed += 1
        except OSError as error:
            LOG.warning(
                "folder of a conversation not removed",
                folder=str(home),
                why=error.strerror,
            )
    return removed


def folders_in(folder: Path) -> Iterator[Path]:
    """Give the conversations' folders of all agents; links are none."""
    for agent in plain_folders(folder):
        yield from plain_folders(agent)


def plain_folders(folder: Path) -> list[Path]:
    """List the folders in a folder; nothing if it cannot be read."""
    try:
        with os.scandir(folder) as found:
            names = [x.name for x in found if x.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [folder / name for name in sorted(names)]
