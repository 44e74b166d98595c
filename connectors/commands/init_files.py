"""Puts the files of `callboard init` where they belong, all of them or none.

They are written into a folder beside their places first, and checked there. Who breaks
off leaves nothing behind.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

PREFIX = ".callboard-init-"
PRIVATE, OPEN = 0o600, 0o644
PRIVATE_FOLDER, OPEN_FOLDER = 0o700, 0o755


class Made(msgspec.Struct, frozen=True):
    """One file to make."""

    name: str
    """Its path, from the folder of the settings on."""

    text: str
    is_secret: bool = False


@contextmanager
def staged(
    folder: Path, files: Iterable[Made], beside: Iterable[str] = ()
) -> Generator[Path]:
    """Write files into a folder of their own, which is gone when the block ends.

    Args:
        folder: beside whose files; it is made if it is not there, and is gone again
            if it stays empty.
        files: what to write.
        beside: what is in the folder already and can be read here as well.
    """
    made = make_folders(folder)
    try:
        place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=folder))
        try:
            for file in files:
                write(place / file.name, file)
            for name in beside:
                link(folder / name, place / name)
            yield place
        finally:
            shutil.rmtree(place)
    finally:
        remove_empty(made)


def link(source: Path, target: Path) -> None:
    """Let what is there already be read at another place, too."""
    if source.exists() and not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source.absolute())


def write(path: Path, file: Made) -> None:
    """Write one file, onto the disk itself."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = PRIVATE if file.is_secret else OPEN
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(number, "w", encoding="utf-8") as opened:
        opened.write(file.text)
        opened.flush()
        os.fsync(number)


def place(
    source: Path, folder: Path, files: Iterable[Made], *, replaces: frozenset[str]
) -> None:
    """Move files to where they belong, in order; if one fails, none has come.

    Args:
        source: where they were staged.
        folder: where they belong.
        files: which; the settings last.
        replaces: names of those that may take the place of another.

    Raises:
        OSError: one cannot be moved; FileExistsError: it may not replace another.
    """
    done: list[Path] = []
    try:
        for file in files:
            target = folder / file.name
            mode = PRIVATE_FOLDER if file.is_secret else OPEN_FOLDER
            done += make_folders(target.parent, mode)
            if file.name in replaces:
                (source / file.name).replace(target)
            else:
                move_new(source / file.name, target)
                done.append(target)
    except BaseException:  # Ctrl-C, too, leaves nothing behind
        undo(done)
        raise


def move_new(source: Path, target: Path) -> None:
    """Move a file to where there is none.

    Raises:
        FileExistsError: there is one.
    """
    try:
        target.hardlink_to(source)
    except FileExistsError:
        raise
    except OSError:
        # Some file systems know no links; there two at the same moment may meet.
        if target.exists():
            raise FileExistsError(17, "is there already", str(target)) from None
        source.replace(target)


def make_folders(folder: Path, mode: int = OPEN_FOLDER) -> list[Path]:
    """Make a folder, and those above it that are not there; give those made."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=mode)
    return list(reversed(missing))


def undo(done: list[Path]) -> None:
    """Take away what was made."""
    for path in reversed(done):
        if path.is_dir():
            remove_empty([path])
        else:
            path.unlink(missing_ok=True)


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders that hold nothing, the innermost first."""
    for each in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        with suppress(OSError):
            each.rmdir()
