"""A folder for one program's temporary files, which goes when it ends."""

from __future__ import annotations

import itertools
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from connectors.sandbox.plan import SandboxError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


LOG = EventLog("sandbox")


@asynccontextmanager
async def temporary_folder() -> AsyncGenerator[Path]:
    """Make a folder, and remove it with all that is in it at the block's end."""
    made = await trio.to_thread.run_sync(make_folder)
    try:
        yield made
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(remove, made)


def make_folder() -> Path:
    """Make a private folder, inside of one that only we know.

    Raises:
        SandboxError: the disk says no.
    """
    try:
        around = Path(tempfile.mkdtemp(prefix="callboard-"))
        made = around / "tmp"
        made.mkdir(mode=0o700)
    except OSError as error:
        raise SandboxError(
            f"no folder for temporary files: {error}; free some space, or set TMPDIR"
        ) from error
    return made


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it; what cannot be is said in the log.

    Why not `shutil.rmtree`: whoever filled it may have closed folders, and nested them
    deeper than a path or Python's stack can go. So each folder is moved up to the top
    before it is emptied.
    """
    around = folder.parent
    try:
        waiting = [folder]
        for number in itertools.count():
            if not waiting:
                break
            place = waiting.pop()
            place.chmod(0o700)
            for depth, inner in enumerate(empty(place)):
                inner.chmod(0o700)
                waiting.append(inner.rename(around / f"{number}-{depth}"))
            place.rmdir()
        around.rmdir()
    except OSError as error:
        LOG.warning(
            "a program's temporary files stay", folder=str(around), why=str(error)
        )


def empty(place: Path) -> list[Path]:
    """Remove the files of a folder; give the folders in it."""
    folders: list[Path] = []
    for path in list(place.iterdir()):
        if path.is_dir() and not path.is_symlink():
            folders.append(path)
        else:
            path.unlink()
    return folders
