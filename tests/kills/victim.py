"""A `callboard` that dies by its own hand at an exact moment, as `kill -9` would.

Run as `python -m tests.kills.victim POINT NUMBER serve …`: the real command line in
this process, which kills itself when it comes to the point for the NUMBERth time.
Nothing of Callboard is changed: SQLite tells of each statement and file operation.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import apsw

from connectors.cli import main
from tests.fakes.store.faulty_disk import FaultyDisk
from tests.kills.points import COMMITS, SHUTDOWN, Commit, change_of

if TYPE_CHECKING:
    from tests.fakes.store.faulty_disk import Operation
    from tests.kills.points import Change


def die() -> None:
    """End the process without another word."""
    os.kill(os.getpid(), signal.SIGKILL)


class CommitWatch:
    """Dies before or after a transaction of one connection.

    Args:
        point: at which.
        number: at how manieth that does what the point asks for, from 1.
    """

    def __init__(self, point: Commit, number: int) -> None:
        self._point = point
        self._left = number
        self._changes: set[Change] = set()

    def follow(self, db: apsw.Connection) -> None:
        """Watch a connection from now on; apsw calls this for each new one."""
        db.set_exec_trace(self._before)
        db.set_profile(self._after)

    def _before(self, _cursor: apsw.Cursor, statement: str, _values: object) -> bool:
        change = change_of(statement)
        if change is not None:
            self._changes.add(change)
        if statement == "COMMIT" and not self._point.is_after:
            self._reach()
        return True

    def _after(self, statement: str, _nanoseconds: int) -> None:
        if statement == "COMMIT":
            if self._point.is_after:
                self._reach()
            self._changes.clear()

    def _reach(self) -> None:
        if self._point.change in self._changes:
            self._left -= 1
            if not self._left:
                die()


def watch(point: str, number: int) -> object:
    """Arrange for the end; gives what must be kept until then."""
    if point == SHUTDOWN:
        # The WAL is cut off in the middle of closing, and at no other time.
        counts: tuple[Operation] = ("truncate",)
        disk = FaultyDisk("dying", counts=counts, is_default=True)
        disk.watch("callboard.db-wal", die)
        return disk
    commits = CommitWatch(COMMITS[point], number)
    apsw.connection_hooks.append(commits.follow)
    return commits


if __name__ == "__main__":
    kept = watch(sys.argv[1], int(sys.argv[2]))
    del sys.argv[1:3]
    main()
