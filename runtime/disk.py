"""Files: bringing them to the disk, and telling why they cannot be used."""

from __future__ import annotations

import os
import pwd
from pathlib import Path


def flush_file(path: Path) -> None:
    """Bring what a file holds to the disk."""
    flush(path, os.O_RDONLY)


def flush_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk: a power cut must not take a new file."""
    flush(folder, os.O_RDONLY | os.O_DIRECTORY)


def flush(path: Path, flags: int) -> None:
    """Open a file or folder with these flags, and bring it to the disk."""
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def barrier(path: Path) -> Path:
    """Find the outermost folder on the way to a file that keeps us out of it."""
    folder = path.absolute().parent
    for each in reversed((folder, *folder.parents)):
        if not os.access(each, os.X_OK):
            return each
    return folder


def user() -> str:
    """Name the user that this process acts for."""
    number = os.geteuid()
    try:
        return f"the user {pwd.getpwuid(number).pw_name} ({number})"
    except KeyError:
        return f"the user {number}"
