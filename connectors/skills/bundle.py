"""The files of one skill's folder: found and read without ever leaving it.

Nothing is followed: a link inside the folder is no file of the skill, whatever it
leads to, and a name can lead nowhere but down.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

from connectors.files.projects import read_whole

LARGEST_FILE = 512 * 1024
"""Bytes."""

MOST_FILES = 200
DEEPEST = 6
LONGEST_PATH = 300

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Why not to wait: a pipe with a file's name would be waited for, for ever.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class BundleError(ValueError):
    """A file of a skill cannot be read; the text says why, to a model or a person."""


def files_of(folder: Path, but: str) -> tuple[str, ...]:
    """List a folder's files, as paths inside it, up to a bound."""
    found: list[str] = []
    for path in walk(folder, PurePosixPath(), 0):
        if len(found) >= MOST_FILES:
            break
        if str(path) != but:
            found.append(str(path))
    return tuple(sorted(found))


def walk(folder: Path, inside: PurePosixPath, depth: int) -> Iterator[PurePosixPath]:
    """Give plain files below a folder, hidden ones and links left out."""
    try:
        with os.scandir(folder / inside) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in listed[: 5 * MOST_FILES]:
        path = inside / entry.name
        is_odd = not entry.name.isprintable() or len(str(path)) > LONGEST_PATH
        if entry.name.startswith(".") or is_odd:
            continue
        if entry.is_file(follow_symlinks=False):
            yield path
        elif entry.is_dir(follow_symlinks=False) and depth < DEEPEST:
            yield from walk(folder, path, depth + 1)


def read_bundled(folder: Path, name: str, *, most_bytes: int = LARGEST_FILE) -> str:
    """Read one text file of a skill's folder.

    Args:
        folder: the skill's.
        name: a path inside it; may come from anybody.
        most_bytes: longest file.

    Raises:
        BundleError: there is none, it is too long, or is no text.
    """
    parts = PurePosixPath(name).parts
    is_inside = bool(parts) and ".." not in parts and not name.startswith("/")
    if not is_inside or "\0" in name or len(name) > LONGEST_PATH:
        raise BundleError("a file's name is a path inside the skill's folder")
    try:
        with ExitStack() as opened:
            place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            opened.callback(os.close, place)
            for part in parts[:-1]:
                place = os.open(part, DIRECTORY, dir_fd=place)
                opened.callback(os.close, place)
            file = os.open(parts[-1], FILE, dir_fd=place)
            opened.callback(os.close, file)
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise BundleError("this is no plain file")
            content = read_whole(file, most_bytes)
    except OSError as error:
        raise BundleError(f"it cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BundleError(str(error)) from error
    if len(content) > most_bytes:
        raise BundleError(f"it is above {most_bytes} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BundleError("it is no text in UTF-8") from error
