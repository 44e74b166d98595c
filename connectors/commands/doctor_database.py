"""Looks at the database and the folders that are written to; changes neither."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import apsw

from connectors.commands.doctor_checks import Finding
from runtime.errors import (
    CorruptError,
    StoreError,
    StoreRefusedError,
    StoreTooNewError,
)
from runtime.migrations import MIGRATIONS
from runtime.sqlite_file import SqliteFile, refuse_old_engine
from runtime.sqlite_troubles import barrier, refused_by_system, user

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LITTLE_SPACE = 200 * 1024 * 1024
"""Bytes free; the database's log alone may take a tenth of that between two looks."""

CURES: dict[type[StoreError], str] = {
    CorruptError: "stop Callboard, then callboard restore COPY",
    StoreTooNewError: "install the release that wrote it: a copy would be older",
    StoreRefusedError: "give another path under [store] in the settings",
}
"""What to do about a database that cannot be opened; of another error, its text says
all."""


def check_database(path: Path) -> Iterator[Finding]:
    """Check SQLite's version, and that the database can be written."""
    version = apsw.sqlite_lib_version()
    try:
        refuse_old_engine(version)
    except StoreRefusedError as error:
        yield Finding("wrong", "sqlite", str(error), "pip install --upgrade apsw")
    else:
        yield Finding("ok", "sqlite", version)
    yield look_at(path)
    yield from check_folder("database", path.absolute().parent)


def look_at(path: Path) -> Finding:
    """Say what stands at the database's path."""
    try:
        size = path.stat().st_size if path.exists() else None
    except OSError as error:
        text, cure = (
            str(refused_by_system(error, path)),
            f"chown or chmod {path.parent}",
        )
        return Finding("wrong", "database", text, cure)
    if size is None:
        return Finding("ok", "database", f"{path} is not there yet")
    if size == 0 and path.is_file():
        text = f"{path} is an empty file: the next start makes a new database of it"
        cure = "if it should hold something: callboard restore COPY, before that start"
        return Finding("warning", "database", text, cure)
    if not os.access(path, os.R_OK | os.W_OK):
        text = f"{path} cannot be read and written by {user()}"
        return Finding("wrong", "database", text, f"chown or chmod {path}")
    return opened(path)


def opened(path: Path) -> Finding:
    """Open a database that is there, and say whose it is."""
    try:
        db = SqliteFile(path).open_existing(oldest=0)
    except StoreError as error:
        return Finding("wrong", "database", str(error), cure_of(error))
    try:
        is_older = int(db.pragma("user_version")) < len(MIGRATIONS)
    finally:
        db.close()
    words = " (an earlier release's; the next start brings it up to date)"
    return Finding("ok", "database", f"{path}{words if is_older else ''}")


def cure_of(error: StoreError) -> str:
    """Say what to do about a database that cannot be used."""
    return CURES.get(type(error), "")


def is_readable(path: Path) -> bool:
    """Whether there is a database of this release; `check_database` says why not."""
    try:
        SqliteFile(path).open_existing().close()
    except StoreError:
        return False
    return True


def check_folder(about: str, folder: Path) -> Iterator[Finding]:
    """Check that there is, or can be made, a folder with room to write in."""
    try:
        place = nearest(folder)
    except OSError as error:
        text = f"{folder} cannot be looked at by {user()}: {error.strerror}"
        cure = f"change owner or permissions of {barrier(folder)}"
        yield Finding("wrong", about, text, cure)
        return
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        text = f"{place} is no folder that {user()} may write to"
        yield Finding("wrong", about, text, "change its owner, or the path in settings")
        return
    free = shutil.disk_usage(place).free
    text = f"{free // 1024**2:,} MiB free in {place}"
    if free < LITTLE_SPACE:
        yield Finding(
            "warning", about, text, "make room: a full disk stops all answers"
        )
    else:
        yield Finding("ok", about, text)


def nearest(folder: Path) -> Path:
    """Give a folder, or the nearest thing above it that is there.

    Raises:
        OSError: nobody may look.
    """
    place = folder
    while not place.exists():
        place = place.parent
    return place
