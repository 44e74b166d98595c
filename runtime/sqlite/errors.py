"""Translates errors of SQLite and of the system into the kernel's.

Each kind of error names its own cause and cure: a lock of another program is not a
full disk.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from runtime.disk import barrier, user
from runtime.errors import CorruptError, StoreError, StoreUnavailableError

DAMAGED = (apsw.CorruptError, apsw.NotADBError)
DISK = (
    apsw.BusyError,
    apsw.CantOpenError,
    apsw.FullError,
    apsw.IOError,
    apsw.InterruptError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.PermissionsError,
    apsw.ProtocolError,
    apsw.ReadOnlyError,
)
"""What can go wrong without a fault in the program; anything else is a bug."""

CAUSES: tuple[tuple[tuple[type[apsw.Error], ...], str, str], ...] = (
    (
        (apsw.BusyError, apsw.LockedError, apsw.ProtocolError),
        "is held by another program",
        "End that, or wait for it: a `sqlite3` shell, say, or what copies files",
    ),
    (
        (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError),
        "cannot be opened for reading and writing by USER",
        "Mend owner or permissions: of the file, what lies beside it, and its folder",
    ),
    ((apsw.FullError,), "found no more room on its disk", "Make room there"),
    (
        (apsw.IOError,),
        "could not be read or written",
        "Mend the disk, or move the database to another",
    ),
    (
        (apsw.NoMemError,),
        "found no more memory",
        "Give this machine more, or end other programs",
    ),
)
"""Kinds of errors, what each says of the file, and what to do about it."""

EMPTY_WORDS = frozenset({"", "not an error"})
"""What SQLite says when it has nothing to say."""

SAFE = "nothing was written, and what was acknowledged is safe"


def translate(error: apsw.Error, path: Path) -> StoreError:
    """Translate an error of SQLite, one of those above."""
    if isinstance(error, DAMAGED):
        return CorruptError(
            f"{path} is damaged, or no database at all ({error}); stop Callboard and"
            " restore a copy, or move the file away to start with an empty one"
        )
    what, cure = cause_of(error)
    said = str(error)
    why = "" if said.lower() in EMPTY_WORDS else f" ({said})"
    return StoreUnavailableError(f"{path} {what}{why}; {SAFE}. {cure}")


def cause_of(error: apsw.Error) -> tuple[str, str]:
    """Give the cause of an error, and what to do about it."""
    for kinds, what, cure in CAUSES:
        if isinstance(error, kinds):
            return what.replace("USER", user()), cure
    return "was interrupted", "Try again"


def refused_by_system(error: OSError, path: Path) -> StoreUnavailableError:
    """Translate an error of the system about a database."""
    if isinstance(error, PermissionError):
        return StoreUnavailableError(
            f"{path} cannot be used: {user()} may not enter, or write to, the folder"
            f" {barrier(path)} ({error.strerror}); change its owner or permissions, or"
            " give Callboard another path"
        )
    return StoreUnavailableError(
        f"{path} cannot be used: {error}; mend that, or give Callboard another path"
    )
