"""A disk that fails when told to: an apsw VFS around the system's own.

A store opened with `vfs=disk.name` works on real files; each write, flush and
truncation (or whatever else it is told to count) is numbered, and the chosen ones
raise what a real disk would. It can also tell a listener what was written, so that
a power cut can be played back at any moment (`tests/disk_faults`).
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Literal

import apsw
import msgspec

Operation = Literal["read", "write", "sync", "truncate", "size", "lock", "open", "rm"]

CHANGES: Collection[Operation] = ("write", "sync", "truncate")
"""What changes a file that is open, or makes a change last."""


class Written(msgspec.Struct, frozen=True):
    """One change that the disk has taken, as the listener hears of it."""

    operation: Operation
    file: str
    offset: int = 0
    """Where it was written; for a truncation the new size."""

    body: bytes = b""


class FaultyDisk(apsw.VFS):
    """Fails the steps it is told to.

    Args:
        name: under which SQLite finds it; unique while it lives.
        error: what to raise.
        counts: which operations are steps.
        flushes: whether a flush reaches the real disk. Only a real power cut could
            tell, and thousands of flushes take long.
        is_default: whether databases are opened on it that name no disk.
    """

    def __init__(
        self,
        name: str,
        error: type[apsw.Error] = apsw.IOError,
        *,
        counts: Collection[Operation] = CHANGES,
        flushes: bool = True,
        is_default: bool = False,
    ) -> None:
        self.name = name
        self.error = error
        self.code = 0
        """SQLite's (extended) result code to fail with; 0: `error` says it."""

        self.counts = counts
        self.flushes = flushes
        self.steps = 0
        """How many there have been."""

        self.fails_at: Collection[int] = ()
        """Numbers of the steps to fail, from 1."""

        self.is_broken = False
        """Whether to fail every step."""

        self.failed = 0
        """How many steps have failed."""

        self.listener: Callable[[Written], object] | None = None
        """Told of each change, in the thread that makes it."""

        self._watched = ""
        self._watch: Callable[[], object] = int
        # By name: if this disk becomes the default, "the default" would be itself.
        self.base = apsw.vfs_names()[0]
        super().__init__(name, self.base, is_default)

    def watch(self, file: str, watch: Callable[[], object]) -> None:
        """Call `watch`, in the writing thread, before each step on that file."""
        self._watched = file
        self._watch = watch

    def xOpen(  # noqa: N802  SQLite's name
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        """Open a file on this disk."""
        file = base_name(name)
        self.step(file, "open")
        opened = FaultyFile(self, name, flags)
        self.tell(Written("open", file))
        return opened

    def xDelete(  # noqa: N802  SQLite's name
        self,
        filename: str,
        syncdir: bool,  # noqa: FBT001  SQLite's signature
    ) -> None:
        """Remove a file."""
        self.step(base_name(filename), "rm")
        super().xDelete(filename, syncdir)
        self.tell(Written("rm", base_name(filename)))

    def step(self, file: str, operation: Operation) -> None:
        """Count one, and fail if it is its turn."""
        if operation not in self.counts:
            return
        self.steps += 1
        if file == self._watched:
            self._watch()
        if self.is_broken or self.steps in self.fails_at:
            self.failed += 1
            if self.code:
                raise apsw.exception_for(self.code)
            raise self.error(f"step {self.steps} fails, as told")

    def tell(self, written: Written) -> None:
        """Tell the listener, if there is one."""
        if self.listener is not None:
            self.listener(written)


class FaultyFile(apsw.VFSFile):
    """One open file of a faulty disk."""

    def __init__(
        self, disk: FaultyDisk, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self._disk = disk
        self._file = base_name(name)
        self._is_read_only = bool(flags[0] & apsw.SQLITE_OPEN_READONLY)
        super().__init__(disk.base, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802  SQLite's name
        """Read."""
        self._disk.step(self._file, "read")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802  SQLite's name
        """Write."""
        self._disk.step(self._file, "write")
        super().xWrite(data, offset)
        self._disk.tell(Written("write", self._file, offset, bytes(data)))

    def xSync(self, flags: int) -> None:  # noqa: N802  SQLite's name
        """Flush to the disk."""
        self._disk.step(self._file, "sync")
        if self._disk.flushes:
            super().xSync(flags)
        self._disk.tell(Written("sync", self._file))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802  SQLite's name
        """Cut off."""
        self._disk.step(self._file, "truncate")
        super().xTruncate(newsize)
        self._disk.tell(Written("truncate", self._file, newsize))

    def xFileSize(self) -> int:  # noqa: N802  SQLite's name
        """Tell how long it is."""
        self._disk.step(self._file, "size")
        return super().xFileSize()

    def xLock(self, level: int) -> None:  # noqa: N802  SQLite's name
        """Lock it more."""
        self._disk.step(self._file, "lock")
        try:
            super().xLock(level)
        except apsw.IOError:
            if not self._is_read_only:
                raise
            # Closing a file that it may only read, SQLite tries to lock it all the
            # same, and goes on without. Of all errors apsw lets it do so with this one.
            raise apsw.BusyError from None


def base_name(name: str | apsw.URIFilename | None) -> str:
    """Give the last part of a path as SQLite names it; nothing for a nameless file."""
    path = name.filename() if isinstance(name, apsw.URIFilename) else name
    return Path(path or "").name
