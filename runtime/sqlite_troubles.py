"""What SQLite and the system say of a database that cannot be used, in our words.

Each kind has its own cause, and its own cure: a lock of another program is no full
disk. Knows nothing of rows, and opens nothing.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
import pwd
from typing import TYPE_CHECKING

import apsw

from runtime.errors import CorruptError, StoreError, StoreUnavailableError

if TYPE_CHECKING:
    from pathlib import Path

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
    """Say in the kernel's words what SQLite said; `error` is one of those above."""
    if isinstance(error, DAMAGED):
        return CorruptError(
            f"{path} is damaged, or no database at all ({error}); stop Callboard and"
            " restore a copy, or move the file away to begin anew"
        )
    what, cure = cause_of(error)
    said = str(error)
    why = "" if said.lower() in EMPTY_WORDS else f" ({said})"
    return StoreUnavailableError(f"{path} {what}{why}; {SAFE}. {cure}")


def cause_of(error: apsw.Error) -> tuple[str, str]:
    """Say what is wrong with a file, and what to do."""
    for kinds, what, cure in CAUSES:
        if isinstance(error, kinds):
            return what.replace("USER", user()), cure
    return "was interrupted", "Try again"


def refused_by_system(error: OSError, path: Path) -> StoreUnavailableError:
    """Say what the system does not let us do with a database."""
    if isinstance(error, PermissionError):
        return StoreUnavailableError(
            f"{path} cannot be used: {user()} may not enter, or write to, the folder"
            f" {barrier(path)} ({error.strerror}); change its owner or permissions, or"
            " give Callboard another path"
        )
    return StoreUnavailableError(
        f"{path} cannot be used: {error}; mend that, or give Callboard another path"
    )


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
