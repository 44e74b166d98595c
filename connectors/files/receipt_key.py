"""The key that receipts of tool calls are signed with, in a file beside the database.

Made at the first start, for its owner's eyes only. Whoever has it can sign; without
it, receipts of old prove nothing any more.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from runtime.errors import SettingsError

LENGTH = 32
"""Bytes; as long as the hash it is used with (RFC 2104, 3)."""

PRIVATE = 0o600


def path_of(database: Path) -> Path:
    """Say where the key of a database is."""
    return database.with_name(f"{database.name}.receipts.key")


def load(database: Path) -> bytes:
    """Read the key of a database; nothing if there is none.

    Raises:
        SettingsError: it cannot be read, or is none.
    """
    path = path_of(database)
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise SettingsError(f"cannot be read: {error.strerror}", file=str(path)) from (
            error
        )
    if len(key) != LENGTH:
        raise SettingsError(
            f"is no key of {LENGTH} bytes",
            file=str(path),
            hint="move it away for a new one; older receipts cannot be checked then",
        )
    return key


def load_or_make(database: Path) -> bytes:
    """Read the key of a database; make it if there is none.

    Raises:
        SettingsError: it can neither be read nor made, or is none.
    """
    known = load(database)
    if known:
        return known
    path, key = path_of(database), secrets.token_bytes(LENGTH)
    # Why a name of its own first: a key that was cut off by a crash would be none. In
    # containers, starts on one folder have the same process id.
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        opened = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        with os.fdopen(opened, "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        put(fresh, path)
    except OSError as error:
        raise SettingsError(f"cannot be made: {error.strerror}", file=str(path)) from (
            error
        )
    return load(database)


def put(fresh: Path, path: Path) -> None:
    """Give a file its name, unless another start has just made one of that name.

    Raises:
        OSError: it cannot be.
    """
    try:
        path.hardlink_to(fresh)
    except FileExistsError:
        fresh.unlink()
    except OSError:  # no hard links there: the last of several starts wins
        fresh.replace(path)
    else:
        fresh.unlink()
