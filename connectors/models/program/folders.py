"""Where programs that are models run: a folder for each conversation, and its sandbox.

A folder is removed when nobody has spoken there for long. The program's own memory of
the conversation goes with it; Callboard's stays, and the next message starts the
program again with that.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from connectors.sandbox.orders import command_files
from connectors.sandbox.plan import LONG_RUNNING, Confinement
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.messages.inbound import ModelRequest
    from connectors.config.models import CliModelConfig
    from connectors.sandbox.runner import Sandbox

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


# Chosen: one more start of the program after each.
GOES_ON_AFTER = (2.0, 4.0, 8.0, 16.0, 32.0)


@dataclass(frozen=True)
class CallAids:
    """What a program is given for one answer besides its prompt."""

    servers: Path | None = None
    """A file that names servers of tools, for the program to start."""

    readable: tuple[Path, ...] = ()
    """Folders that it may read: those of the agent's skills."""


Prepare = Callable[["ModelRequest", "Path"], "AbstractAsyncContextManager[CallAids]"]
"""Makes a conversation's folder ready for one answer, and tidies up after it; raises
`KernelError`."""


def leave_as_it_is(_: ModelRequest, __: Path) -> AbstractAsyncContextManager[CallAids]:
    """Prepare nothing."""
    return nullcontext(CallAids())


@dataclass(frozen=True)
class ProgramPlace:
    """Where programs run."""

    sandbox: Sandbox
    folder: Path
    """Where their conversations' folders are: `<agent>/<conversation>`."""

    prepare: Prepare = leave_as_it_is
    tidy: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
    """Removes what nobody uses any more; called before each answer."""

    pauses: tuple[float, ...] = GOES_ON_AFTER
    """Seconds before each further start for one answer."""


def confinement_of(
    config: CliModelConfig, home: Path, readable: tuple[Path, ...] = ()
) -> Confinement:
    """Say what a program that answers may do.

    Args:
        config: its settings.
        home: its current folder, which it may change.
        readable: what it may read besides what the settings say.
    """
    program, *rest = config.command
    named = command_files(program, rest, home)
    return Confinement(
        readable=(*config.readable, *named, *readable),
        writable=(home, *config.writable),
        network="tcp",
        limits=LONG_RUNNING,
    )
