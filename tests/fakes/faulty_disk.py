"""A disk that fails when told to: an apsw VFS around the system's own.

A store opened with `vfs=disk.name` works on real files; each write, flush and
truncation is counted, and the chosen ones raise what a real disk would.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import apsw

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


class FaultyDisk(apsw.VFS):
    """Fails the writes, flushes and truncations it is told to.

    Args:
        name: under which SQLite finds it; unique while it lives.
        error: what to raise.
    """

    def __init__(self, name: str, error: type[apsw.Error] = apsw.IOError) -> None:
        self.name = name
        self.error = error
        self.steps = 0
        """How many there have been."""

        self.fails_at: Collection[int] = ()
        """Numbers of the steps to fail, from 1."""

        self.is_broken = False
        """Whether to fail every step."""

        self._watched = ""
        self._watch: Callable[[], object] = int
        super().__init__(name, "")

    def watch(self, file: str, watch: Callable[[], object]) -> None:
        """Call `watch`, in the writing thread, before each step on that file."""
        self._watched = file
        self._watch = watch

    def xOpen(  # noqa: N802  SQLite's name
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        """Open a file on this disk."""
        return FaultyFile(self, name, flags)

    def step(self, file: str) -> None:
        """Count one, and fail if it is its turn."""
        self.steps += 1
        if file == self._watched:
            self._watch()
        if self.is_broken or self.steps in self.fails_at:
            raise self.error(f"step {self.steps} fails, as told")


class FaultyFile(apsw.VFSFile):
    """One open file of a faulty disk."""

    def __init__(
        self, disk: FaultyDisk, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self._disk = disk
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._file = Path(path or "").name
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802  SQLite's name
        """Write."""
        self._disk.step(self._file)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802  SQLite's name
        """Flush to the disk."""
        self._disk.step(self._file)
        super().xSync(flags)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802  SQLite's name
        """Cut off."""
        self._disk.step(self._file)
        super().xTruncate(newsize)
