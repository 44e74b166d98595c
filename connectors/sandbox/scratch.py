"""A folder for one program's temporary files, which goes when it ends."""

from __future__ import annotations

import shutil
import stat
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from connectors.sandbox.plan import SandboxError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable


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
    """Make a private folder.

    Raises:
        SandboxError: the disk says no.
    """
    try:
        return Path(tempfile.mkdtemp(prefix="callboard-"))
    except OSError as error:
        raise SandboxError(
            f"no folder for temporary files: {error}; free some space, or set TMPDIR"
        ) from error


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it, however its modes are set."""

    def open_up(retry: Callable[[str], object], path: str, _: object) -> None:
        for each in (Path(path).parent, Path(path)):
            if not each.is_symlink() and each.is_relative_to(folder):
                each.chmod(stat.S_IRWXU)
        retry(path)

    shutil.rmtree(folder, onerror=open_up)
