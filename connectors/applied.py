"""What a running company goes by, in a file beside its database, for `config diff`.

Whoever runs it holds a lock on the file, so that one left by a process that was killed
is not taken for a living one's. No secret stands in it: of each only a mark by which to
tell that it has changed, made with the key beside the database.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
from typing import TYPE_CHECKING

import msgspec

from connectors.show import leaves, plain_value
from runtime.config_words import dotted, toml
from runtime.logs import EventLog
from runtime.secret import OpenText, Secret

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from connectors.config import AppConfig

LOG = EventLog("settings")

END = ".settings.json"
PRIVATE = 0o600
OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC

MARK_LENGTH = 8
"""Characters of a secret's mark: enough to tell two apart, too few to guess by."""

TRIES = 100
"""Times the file is read again while it is being written."""

Flat = dict[str, str]
"""By dotted name, the value as TOML has it."""


class Applied(msgspec.Struct, frozen=True):
    """What a process goes by."""

    process: int
    at: float
    """Unix seconds at which it took this over."""

    settings: Flat
    waiting: dict[str, str] = {}
    """Saved settings that wait for a restart, with the reason."""

    mistake: str = ""
    """Why what is saved was not taken over; empty: it was."""


def path_of(database: Path) -> Path:
    """Say where the file of a database is."""
    return database.with_name(database.name + END)


def flat(config: AppConfig, key: bytes) -> Flat:
    """Write settings so that two can be compared, and no secret is seen.

    Args:
        config: the settings.
        key: what marks of secrets are made with.
    """

    def shown(value: object) -> str:
        return plain_value(value) + mark_of(value, key)

    plain: object = msgspec.to_builtins(config, enc_hook=shown)
    return {
        dotted(way): toml(value) for way, value in leaves(plain) if value is not None
    }


def mark_of(value: object, key: bytes) -> str:
    """Give what tells a secret from another: nothing for what is none."""
    is_secret = isinstance(value, OpenText) and value.is_secret
    if not (isinstance(value, Secret) or (isinstance(value, OpenText) and is_secret)):
        return ""
    secret = value.reveal().encode("utf-8", "surrogatepass")
    digest = hmac.new(key, b"settings\0" + secret, hashlib.sha256)
    return f" (mark {digest.hexdigest()[:MARK_LENGTH]})"


class AppliedFile:
    """The file, for the life of the process that is run by these settings.

    Args:
        database: beside which it is.
        key: what marks of secrets are made with.
    """

    def __init__(self, database: Path, key: bytes) -> None:
        self._path = path_of(database)
        self._key = key
        self._handle: int | None = None

    def __enter__(self) -> Self:
        """Take the file; another process may have it, which is only logged."""
        try:
            handle = os.open(self._path, OPEN | os.O_CREAT, PRIVATE)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(handle)
                raise
        except OSError as error:
            LOG.warning(
                "`config diff` will not know of this process",
                file=str(self._path),
                why=str(error.strerror),
            )
        else:
            self._handle = handle
        return self

    def __exit__(self, *_: object) -> None:
        """Empty the file, and let it go."""
        if self._handle is not None:
            handle, self._handle = self._handle, None
            os.ftruncate(handle, 0)
            os.close(handle)

    def write(
        self, config: AppConfig, at: float, told: tuple[dict[str, str], str]
    ) -> None:
        """Say what the process goes by; it blocks.

        Args:
            config: the settings in use.
            at: Unix seconds.
            told: what waits for a restart, and what is wrong with what is saved.
        """
        if self._handle is None:
            return
        applied = Applied(os.getpid(), at, flat(config, self._key), *told)
        body = msgspec.json.encode(applied)
        try:
            os.pwrite(self._handle, body, 0)
            os.ftruncate(self._handle, len(body))
        except OSError as error:
            LOG.warning("settings in use not noted", why=str(error.strerror))


def read_applied(database: Path) -> Applied | None:
    """Read what the process that has a database goes by; None: none runs.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is none of this release.
    """
    try:
        handle = os.open(path_of(database), OPEN)
    except FileNotFoundError:
        return None
    try:
        if not is_held(handle):
            return None
        for _ in range(TRIES):
            found = os.pread(handle, os.fstat(handle).st_size, 0)
            try:
                return msgspec.json.decode(found, type=Applied)
            except msgspec.DecodeError:
                continue
        raise ValueError(f"{path_of(database)} cannot be read; try again")
    finally:
        os.close(handle)


def is_held(handle: int) -> bool:
    """Whether a process that runs has a file."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def differences(applied: Flat, saved: Flat) -> list[str]:
    """Name what differs: `-` what is in use, `+` what is saved instead."""
    lines: list[str] = []
    for name in sorted(applied.keys() | saved.keys()):
        before, after = applied.get(name), saved.get(name)
        if before == after:
            continue
        lines += [f"- {name} = {before}"] if before is not None else []
        lines += [f"+ {name} = {after}"] if after is not None else []
    return lines
