"""Looks at the database and the folders that are written to; changes neither."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from connectors.admin.probes import Finding
from connectors.admin.settings import EMPTIED, left_beside
from connectors.commands.common.database import database_at, database_of_store
from connectors.config.app import StoreConfig
from runtime.disk import barrier, user
from runtime.errors import (
    CorruptError,
    SettingsError,
    StoreError,
    StoreRefusedError,
    StoreTooNewError,
)
from runtime.store.database import Database

LITTLE_SPACE = 200 * 1024 * 1024
"""Bytes free; the database's log alone may take a tenth of that between two looks."""

CURES: dict[type[StoreError], str] = {
    CorruptError: "stop Callboard, then callboard restore COPY",
    StoreTooNewError: "install the release that wrote it: a copy would be older",
    StoreRefusedError: "give another database under [store] in the settings",
}
"""What to do about a database that cannot be opened; of another error, its text says
all."""


def check_database(store: StoreConfig) -> Iterator[Finding]:
    """Check the engine's version, and that the database can be used."""
    path = Path(store.path)
    if store.kind == "postgresql":
        yield look_at_server(store)
        yield from check_folder("database", path.absolute().parent)
        return
    try:
        version = database_at(path).engine_version()
    except StoreRefusedError as error:
        yield Finding("wrong", "sqlite", str(error), "pip install --upgrade apsw")
    else:
        yield Finding("ok", "sqlite", version)
    yield look_at(path)
    yield from check_folder("database", path.absolute().parent)


def look_at_server(store: StoreConfig) -> Finding:
    """Say what stands in the database on a server."""
    try:
        database = database_of_store(store)
        version = database.engine_version()
        if not database.exists():
            text = f"{database.name} (version {version}) has no tables yet"
            return Finding("ok", "database", f"{text}; the next start makes them")
    except SettingsError as error:
        return Finding("wrong", "database", error.text, error.hint)
    except StoreError as error:
        return Finding("wrong", "database", str(error), cure_of(error))
    return opened(database, f"{database.name} (version {version})")


def look_at(path: Path) -> Finding:
    """Say what stands at the database's path."""
    database = database_at(path)
    try:
        size = path.stat().st_size if database.exists() else None
    except StoreError as error:
        cure = f"chown or chmod {path.parent}"
        return Finding("wrong", "database", str(error), cure)
    if size is None:
        return Finding("ok", "database", f"{path} is not there yet")
    if size == 0 and (beside := left_beside(path)):
        return Finding("wrong", "database", EMPTIED.format(path, beside[0]))
    if size == 0 and path.is_file():
        text = f"{path} is an empty file: the next start makes a new database of it"
        cure = "if it should hold something: callboard restore COPY, before that start"
        return Finding("warning", "database", text, cure)
    if not os.access(path, os.R_OK | os.W_OK):
        text = f"{path} cannot be read and written by {user()}"
        return Finding("wrong", "database", text, f"chown or chmod {path}")
    link = f", a link to {path.resolve()}" if path.is_symlink() else ""
    return opened(database, f"{database.name}{link}")


def opened(database: Database, name: str) -> Finding:
    """Open a database that is there, and say whose it is."""
    try:
        is_current = database.is_current()
        database.refuse_damaged()
    except StoreError as error:
        return Finding("wrong", "database", str(error), cure_of(error))
    words = " (an earlier release's; the next start brings it up to date)"
    return Finding("ok", "database", f"{name}{'' if is_current else words}")


def cure_of(error: StoreError) -> str:
    """Say what to do about a database that cannot be used."""
    return CURES.get(type(error), "")


def is_readable(database: Database) -> bool:
    """Whether there is a database of this release; `check_database` says why not."""
    try:
        return database.is_current()
    except StoreError:
        return False


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
