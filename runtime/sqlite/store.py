"""The durable store in one SQLite file (apsw): its two threads, and the store of them.

Each thread is a pykka `ThreadingActor` that owns its connection from its first job to
its end. One only reads. The other one puts all that waits into one transaction and
answers only after the COMMIT: the one flush to the disk is shared by the group, and a
job that fails is undone alone.

`transact` does a group of jobs in one transaction and undoes alone those that fail. It
knows nothing of threads or files; the caller translates errors of the disk.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import apsw

from runtime.errors import MisuseError, StoreError, StoreUnavailableError
from runtime.sql.store import SqlStore
from runtime.sql.vectors import LOOKUP
from runtime.sqlite.errors import DAMAGED, DISK, translate
from runtime.sqlite.file import FileLock, SqliteFile, greet, size_of
from runtime.store.jobs import (
    DatabaseThread,
    Ended,
    GroupEnded,
    Job,
    JobQueue,
    Report,
    damage_of,
)
from runtime.store.rows import ANY_KIND
from runtime.telemetry.logs import EventLog

UNSTORABLE = (apsw.Error, OverflowError, TypeError, ValueError)
"""What SQLite says of a job that is itself to blame, unless the disk is."""

PASSING = (apsw.BusyError, apsw.LockedError)
"""What another program does to one read; it says nothing of the disk."""

BLAMED = (StoreError, MisuseError, *UNSTORABLE)
"""All that one job alone is to blame for, unless the disk is."""


def transact(db: apsw.Connection, jobs: Sequence[Job]) -> bool:
    """Do a group of jobs in one transaction; jobs that fail are left out.

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
            job.value = job.work(db)
    except (*DAMAGED, *DISK):
        raise
    except BLAMED:
        db.execute("ROLLBACK")
        db.execute("BEGIN IMMEDIATE")
        before = db.total_changes()
        for job in jobs:
            attempt(db, job)
    db.execute("COMMIT")
    return db.total_changes() > before


def attempt(db: apsw.Connection, job: Job) -> None:
    """Do one job of a group; if it fails, undo it alone and keep its error.

    Raises:
        apsw.Error: the disk, or damage on it.
    """
    db.execute("SAVEPOINT job")
    try:
        job.value = job.work(db)
    except (*DAMAGED, *DISK):
        raise
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


LOG = EventLog("store")

PAGE = 4096
"""Bytes."""

MOST_WAL_PAGES = 4000
"""Pages after which the WAL is copied even if the writer is busy."""

STUCK_WAL_PAGES = 4 * MOST_WAL_PAGES
"""Pages at which the writer makes readers wait, so that the WAL can begin anew."""

# Chosen: a read of this program takes less; a reader that takes longer would hold up
# every commit, and cannot be ended from here.
READERS_GO_WITHIN = 50
"""Milliseconds that the writer then waits for those who read an old state."""

MOST_READS = 16
"""Reads answered together; a long one holds up the others by as much."""


class ReaderThread(DatabaseThread[SqliteFile]):
    """The thread that runs reading jobs, one after the other."""

    # Not done: SQLite's interrupt for a search that nobody waits for any more. It
    # might hit the next job, and what is searched is bounded.

    @property
    def most(self) -> int:
        """How many jobs to take together."""
        return MOST_READS

    def open(self) -> apsw.Connection:
        """Open a connection that cannot write."""
        return self.file.open_reader()

    def run(self, db: apsw.Connection, jobs: Sequence[Job]) -> None:
        """Do the jobs that somebody still waits for."""
        failed: Job | None = None
        for job in jobs:
            if not job.is_abandoned:
                try:
                    job.value = job.work(db)
                except (*DAMAGED, *DISK) as error:
                    job.error = translate(error, self.file.path)
                    if not isinstance(error, PASSING):
                        failed = job
                except UNSTORABLE as error:
                    job.error = MisuseError(f"this can never be read: {error}")
        if failed is None:
            self.jobs.give_back(jobs)
            return
        damage = damage_of(jobs)
        ended = GroupEnded(healthy=None, failed_read=failed, damage=damage)
        self.jobs.give_back(jobs, partial(self._report, ended))


class WriterThread(DatabaseThread[SqliteFile]):
    """Commits jobs in groups; the only one that writes."""

    def __init__(
        self, file: SqliteFile, jobs: JobQueue, report: Report, ended: Ended
    ) -> None:
        super().__init__(file, jobs, report, ended)
        self._lock: FileLock | None = None
        self._is_behind = False
        self._names: dict[Path, tuple[int, int] | None] = {}
        """Device and inode of the files that are open, by path; None for a WAL that
        there is not yet."""

        self._wal_pages = 0  # since it was copied last
        self._wal_bytes = 0
        self._copy_at = MOST_WAL_PAGES
        self._is_held = False

    def open(self) -> apsw.Connection:
        """Claim the file, open it, and bring it up to date."""
        lock = self.file.lock()
        with contextlib.ExitStack() as stack:
            stack.callback(lock.release)
            is_behind = self._look_behind(lock)
            db = self.file.open_writer()
            stack.callback(db.close)
            self.file.refuse_damage(db, is_unclean=bool(lock.behind))
            stack.pop_all()
        self._lock = lock
        self._note(is_behind=is_behind)
        file = self.file
        self._names = {file.path: file.identity(), lock.path: lock.identity}
        self._names[file.wal_path] = None
        db.set_wal_hook(self._count_pages)  # in place of SQLite's own checkpoints
        return db

    def run(self, db: apsw.Connection, jobs: Sequence[Job]) -> None:
        """Commit a group; its callers go on when it is on the disk."""
        lost = self._lost_name()
        if lost is not None:
            self._refuse_all(jobs, lost)
            return
        started = time.perf_counter()
        try:
            has_written = transact(db, jobs)
        except (*DAMAGED, *DISK) as error:
            if db.in_transaction:  # SQLite may have rolled back by itself
                db.execute("ROLLBACK")
            if isinstance(error, DAMAGED) and len(jobs) > 1:
                self._run_alone(db, jobs)
                return
            self._fail(jobs, error)
            ended = GroupEnded(healthy=False, damage=damage_of(jobs))
        else:
            ended = GroupEnded(
                True if has_written else None,
                time.perf_counter() - started,
                len(jobs),
                wal_bytes=self._wal_bytes,
            )
            if has_written and not self._is_behind:
                self._note(is_behind=True)
        self.jobs.give_back(jobs, partial(self._report, ended))
        if self._wal_pages >= self._copy_at:
            self._bound_wal(db)

    def _bound_wal(self, db: apsw.Connection) -> None:
        """Copy a WAL that has grown, and have it begin anew if it is far too large.

        While another program reads an old state it cannot, and then the next try comes
        when it has grown by as much again.
        """
        pages = self._wal_pages
        if pages < STUCK_WAL_PAGES:
            self._checkpoint(db, apsw.SQLITE_CHECKPOINT_PASSIVE)
        else:
            db.set_busy_timeout(READERS_GO_WITHIN)
            is_free = self._checkpoint(db, apsw.SQLITE_CHECKPOINT_RESTART)
            db.set_busy_timeout(int(self.file.options.busy_timeout * 1000))
            if not is_free and not self._is_held:
                LOG.warning(
                    "another program keeps the -wal of the database from being reused",
                    bytes=pages * PAGE,
                    path=str(self.file.wal_path),
                    hint="it reads an old state: end that program's transaction",
                )
            self._is_held = not is_free
        self._copy_at = pages + MOST_WAL_PAGES

    def _fail(self, jobs: Sequence[Job], error: apsw.Error) -> None:
        for job in jobs:
            job.error = translate(error, self.file.path)
            job.error.__cause__ = error

    def _run_alone(self, db: apsw.Connection, jobs: Sequence[Job]) -> None:
        """Commit each job of a group by itself.

        Why: most damage is in one place, such as a page of an index, and those who
        do not need it must not lose their work. Not by savepoints: an index of words
        writes to its pages no sooner than at the COMMIT.
        """
        for at, job in enumerate(jobs):
            self._in_hand = jobs[at:]  # what came before is told already
            job.error = None
            self.run(db, (job,))

    def rest(self, db: apsw.Connection) -> None:
        """Copy a long WAL into the database, so that no commit has to wait for that."""
        if self._wal_pages >= self.file.options.idle_pages:
            self._checkpoint(db, apsw.SQLITE_CHECKPOINT_PASSIVE)

    def close(self, db: apsw.Connection) -> None:
        """Copy the WAL, close, and let the next process in."""
        try:
            self._checkpoint(db, apsw.SQLITE_CHECKPOINT_TRUNCATE)
            db.close()
        finally:
            if self._lock is not None:
                self._lock.release()

    def _lost_name(self) -> Path | None:
        """Name which of the three files was removed or replaced; usually none.

        Without the database's name, or the WAL's, SQLite would go on writing into a
        file that nobody finds again; without the lock's, another process may write too.
        """
        for path, known in self._names.items():
            try:
                # Why not `path.stat()`: three calls more, for each file of each commit.
                file = os.stat(path)  # noqa: PTH116
                found = file.st_dev, file.st_ino
            except OSError:
                found = None
            if known is None:
                self._names[path] = found  # SQLite makes it with the first write
            elif found != known:
                return path
        return None

    def _look_behind(self, lock: FileLock) -> bool:
        """Check whether commits stand in the WAL alone; log it if some are lost."""
        with self.file.told():
            if self.file.has_lost_wal(lock.behind):
                LOG.warning(
                    "what was stored last may be missing",
                    why="the last process was killed, and the -wal is gone",
                    path=str(self.file.wal_path),
                    hint="if it was moved away, stop, and put it back",
                )
            return size_of(self.file.wal_path) > 0

    def _note(self, *, is_behind: bool, anew: bool = False) -> None:
        """Note beside the database whether there are commits in its WAL alone.

        Args:
            anew: whether the database was written to.
        """
        if self._lock is not None and (anew or is_behind != self._is_behind):
            self._lock.mark(self.file.age() if is_behind else "")
            self._is_behind = is_behind

    def _refuse_all(self, jobs: Sequence[Job], lost: Path) -> None:
        for job in jobs:
            job.error = StoreUnavailableError(
                f"{lost} was removed or replaced while it was in use; nothing is"
                " stored any more. Put it back, or restart Callboard"
            )
        self.jobs.give_back(jobs, partial(self._report, GroupEnded(healthy=False)))

    def _count_pages(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self._wal_pages = pages
        self._wal_bytes = pages * PAGE
        if pages + MOST_WAL_PAGES < self._copy_at:  # it has begun anew
            self._copy_at = MOST_WAL_PAGES
        return apsw.SQLITE_OK

    def _checkpoint(self, db: apsw.Connection, mode: int) -> bool:
        """Copy the WAL as far as readers allow.

        Returns:
            False if a reader did not let it.
        """
        is_free = True
        try:
            pages, copied = db.wal_checkpoint(mode=mode)
            self._note(is_behind=pages != copied, anew=True)
        except PASSING:  # what could be copied has been
            is_free = False
        except (*DAMAGED, *DISK) as error:
            # Nothing is lost, the WAL keeps it all; but the disk is not well.
            is_damaged = isinstance(error, DAMAGED)
            damage = str(translate(error, self.file.path)) if is_damaged else ""
            ended = GroupEnded(healthy=False, damage=damage)
            self.jobs.give_back((), partial(self._report, ended))
        self._wal_pages = 0
        return is_free


class SqliteStore(SqlStore[SqliteFile]):
    """Rows in one file; see `runtime.store.Store` for what may be relied on."""

    writing = WriterThread
    reading = ReaderThread
    lookup = LOOKUP
    versions_at_writer = True  # there our own commits do not count
    reads_stop_commits = True
    greet = staticmethod(greet)

    def versions(self, db: apsw.Connection) -> dict[str, int]:
        """Give a number that changes when another connection has written."""
        return {ANY_KIND: db.pragma("data_version")}

    async def _write_something(self) -> None:
        await self._writer.jobs.call(probe)
        await self._writer.jobs.call(end_probe)


def probe(db: apsw.Connection) -> None:
    """Take room on the disk, as a commit would."""
    db.execute("INSERT OR REPLACE INTO probe VALUES (1, zeroblob(65536))")


def end_probe(db: apsw.Connection) -> None:
    """Give back what `probe` took."""
    db.execute("DELETE FROM probe")
