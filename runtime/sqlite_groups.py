"""A group of jobs as one transaction, and the undoing of those that are to blame.

Plain functions on an open connection. They know nothing of threads or files; what
the disk says is for the caller.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw

from runtime.errors import MisuseError, StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.sqlite_jobs import Job

UNSTORABLE = (
    apsw.ConstraintError,
    apsw.TooBigError,
    OverflowError,
    TypeError,
    ValueError,
)
"""What SQLite says of a job that is itself to blame."""

BLAMED = (StoreError, MisuseError, *UNSTORABLE)
"""All that one job alone is to blame for."""


def transact(db: apsw.Connection, jobs: Sequence[Job]) -> bool:
    """Do a group of jobs in one transaction; those to blame are left out.

    Mostly none is. Then savepoints would be for nothing, and they are a third of the
    processor time that the commits of one message take (measured with 64 writers):
    so the group is done without, and once more with them if that fails.

    Returns:
        Whether anything was written.

    Raises:
        apsw.Error: the disk, or damage on it; nothing of the group is written.
    """
    db.execute("BEGIN IMMEDIATE")
    before = db.total_changes()
    try:
        for job in jobs:
            job.run(db)
    except BLAMED:
        db.execute("ROLLBACK")
        db.execute("BEGIN IMMEDIATE")
        before = db.total_changes()
        for job in jobs:
            attempt(db, job)
    db.execute("COMMIT")
    return db.total_changes() > before


def attempt(db: apsw.Connection, job: Job) -> None:
    """Do one job of a group; if it is to blame, undo it alone and keep its error.

    Raises:
        apsw.Error: the disk, or damage on it.
    """
    db.execute("SAVEPOINT job")
    try:
        job.run(db)
    except (StoreError, MisuseError) as error:
        job.error = error
    except UNSTORABLE as error:
        job.error = MisuseError(
            f"this can never be stored: {error}; see `Store.commit`"
        )
        job.error.__cause__ = error
    if job.error is not None:
        db.execute("ROLLBACK TO job")
    db.execute("RELEASE job")
