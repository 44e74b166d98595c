"""The two threads of the PostgreSQL engine: one writes in groups, one reads.

The writer puts all that waits into one transaction and answers only after the COMMIT.
Only one process writes: it holds a session's advisory lock, which keeps a second
`serve` out, and has raised the number in its row of `writer`, which each transaction
compares. So a process that was stopped, lost its session and goes on later cannot
commit: its transactions raise `FencedError`. Nodes of one company (`nodes.py`) share
that lock; each has a row of its own, and its transactions name the leases under which
it writes: those of its seat, and those of the chats whose rows a commit adds.

When the connection is lost, nobody knows whether the last COMMIT was done. The writer
connects anew, raises its number, which waits for a transaction that is still under way
and refuses one that comes later, and reads which group its row names: if it is the one
in doubt, that is durable; if not, it never will be, and is written once more.

The same is done when the answer of a COMMIT does not come, as while a synchronous
standby is away: until the wait in the old session has ended, nobody else may write.
And when somebody cancels that wait, for which the server reports success with a
warning: raising the number waits for the standby, too, which then has all before it.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import partial

import psycopg

from runtime.errors import (
    FencedError,
    KernelError,
    MisuseError,
    StoreError,
    StoreUnavailableError,
)
from runtime.nodes.hints import encode
from runtime.nodes.rows import Fence
from runtime.nodes.statements import application_name
from runtime.postgresql.migrations import migrate
from runtime.postgresql.server import (
    FENCED,
    NOTIFY,
    Db,
    PostgresqlServer,
    awaits_standby,
    blames_input,
    is_away,
    plain,
    rows_of,
)
from runtime.postgresql.session import Session
from runtime.store.jobs import (
    DatabaseThread,
    Ended,
    GroupEnded,
    Job,
    JobQueue,
    Report,
    damage_of,
)
from runtime.store.rows import Commit
from runtime.telemetry.logs import EventLog

LOG = EventLog("store")

SERVING = 4_811_302_731_902
"""Key of the advisory lock that the process that serves holds."""

MOST_READS = 16
"""Reads answered together; a long one holds up the others by as much."""

WRITE_WITHIN = 10.0
"""Seconds that one statement of the writer may take."""

READ_WITHIN = 30.0
"""Seconds that one statement of the reader may take."""

PAUSE = 0.2
"""Seconds between two tries to connect to a server that is away."""

LET_GO_WITHIN = 2.0
"""Seconds until the server has noticed that a process was killed."""

NODE = "main"

HOLDER = """SELECT holder.pid, holder.application_name, host(holder.client_addr),
        holder.wait_event IS NOT DISTINCT FROM 'SyncRep'
    FROM pg_locks JOIN pg_stat_activity AS holder USING (pid)
    WHERE locktype = 'advisory' AND granted AND objsubid = 1
    AND (classid::bigint << 32 | objid::bigint) = %s
    AND pg_locks.database = (SELECT oid FROM pg_database
        WHERE datname = current_database())"""
SAME_ROLE = """ FROM pg_stat_activity WHERE application_name = %s
    AND datname = current_database() AND pid <> pg_backend_pid()"""
AWAITING = f"SELECT pid {SAME_ROLE} AND wait_event = 'SyncRep'"
# Why not one that waits for a standby: its commit would become visible on the primary
# alone.
END = f"""SELECT pg_terminate_backend(pid) {SAME_ROLE}
    AND wait_event IS DISTINCT FROM 'SyncRep'"""
FENCE = "SELECT fence(%s::text, %s::bigint, %s::bigint, %s::text[], %s::bigint[])"
RAISE = """UPDATE writer SET fence = greatest(fence, %s) + %s WHERE node = %s
    AND (fence = ANY(%s) OR %s) RETURNING fence, last_group"""
MOST_RAISED = 2**31

CHANGED = "UPDATE change SET version = version + 1 WHERE topic = 'rows'"
"""Tells all who work with the database that rows have changed; see `Store`."""

MOVED = """INSERT INTO change(topic, node, version) VALUES (%s, %s, 1)
    ON CONFLICT(topic, node) DO UPDATE SET version = change.version + 1"""

WARNED = "01000"
"""SQLSTATE of a warning that says nothing by itself, as that of a wait that was
cancelled. Its text is in the server's language."""

BLAMED = (StoreError, MisuseError, OverflowError, TypeError, ValueError)
"""All that one job alone may be to blame for."""


def is_held(db: Db) -> bool:
    """Whether a process serves with this database."""
    return bool(rows_of(db, HOLDER, (SERVING,)))


def claim(db: Db, name: str, *, is_node: bool = False) -> None:
    """Keep every other process from serving, as long as the connection lives.

    Args:
        name: how the database is named for people.
        is_node: let other nodes in, and nobody else.

    Raises:
        StoreUnavailableError: one does.
    """
    end = time.monotonic() + LET_GO_WITHIN
    lock = "pg_try_advisory_lock_shared" if is_node else "pg_try_advisory_lock"
    while not rows_of(db, f"SELECT {lock}(%s)", (SERVING,))[0][0]:
        if time.monotonic() > end:
            break
        threading.Event().wait(PAUSE)
    else:
        return
    rows = rows_of(db, HOLDER, (SERVING,))
    pid, role, host, awaits = rows[0] if rows else ("?", "?", None, False)
    if awaits:
        raise awaits_standby(name)
    raise StoreUnavailableError(
        f"{name} is in use by another Callboard process ({role}, on {host or 'its'}"
        f"{'' if host else ' own machine'}; session {pid} of the server): end that one"
        " first. If it is gone, the server notices within a minute;"
        f" SELECT pg_terminate_backend({pid}) ends its session at once"
    )


class PostgresqlReader(DatabaseThread[PostgresqlServer]):
    """The thread that runs reading jobs, one after the other."""

    @property
    def most(self) -> int:
        """How many jobs to take together."""
        return MOST_READS

    def open(self) -> Db:
        """Open a connection that cannot write."""
        db = self.file.connect("callboard reader", READ_WITHIN)
        with self.file.told():
            db.execute("SET default_transaction_read_only = on")
        return db

    def run(self, db: Db, jobs: Sequence[Job]) -> None:
        """Do the jobs that somebody still waits for."""
        failed: Job | None = None
        for job in jobs:
            if not job.is_abandoned and not self._attempt(job):
                failed = failed or job
        del db
        damage = damage_of(jobs)
        ended = GroupEnded(healthy=None, failed_read=failed, damage=damage)
        has_news = failed is not None or damage
        self.jobs.give_back(jobs, (lambda: self._report(ended)) if has_news else None)

    def _attempt(self, job: Job) -> bool:
        """Do a job, with a new connection if the old one is lost; False: it failed."""
        for is_last in (False, True):
            try:
                if self.db is None or self.db.closed:
                    self.db = self.open()
                job.value = job.work(Session(self.db))
            except psycopg.Error as error:
                if is_away(error) and not is_last:
                    self.drop()
                    continue
                job.error = self.file.translate(error)
                job.error.__cause__ = error
                return isinstance(job.error, MisuseError)
            except StoreError as error:
                job.error = error
                return False
            except (OverflowError, TypeError, ValueError) as error:
                job.error = MisuseError(f"this can never be read: {error}")
            return True
        return True


class PostgresqlWriter(DatabaseThread[PostgresqlServer]):
    """Commits jobs in groups; the only one that writes."""

    def __init__(
        self, file: PostgresqlServer, jobs: JobQueue, report: Report, ended: Ended
    ) -> None:
        super().__init__(file, jobs, report, ended)
        seat = file.options.seat
        self._is_node = seat is not None
        self._seat = seat or Fence(NODE, -1, 0)
        self._leases = file.options.leases
        writer = f"writer {uuid.uuid4().hex[:12]}"
        self._role = f"callboard {writer}"
        if self._is_node:  # so that who takes over finds it
            self._role = application_name(self._seat.node, writer)
        self._has_opened = False
        self._fence = self._seat.fence
        self._ours = [self._fence]  # what our row may have now, in rising order
        self._group = 0
        self._last = 0  # the last group that was durable when we connected
        self._pause = threading.Event()  # never set
        self._is_warned = False  # whether the server may not have replicated something

    def open(self) -> Db:
        """Claim the database, bring it up to date, and shut everybody else out.

        Raises:
            FencedError: another process did so since.
        """
        is_first = not self._has_opened
        db = self.file.connect(self._role, WRITE_WITHIN)
        with contextlib.ExitStack() as stack, self.file.told():
            stack.callback(db.close)
            db.add_notice_handler(self._hear)
            if is_first:
                claim(db, self.file.name, is_node=self._is_node)
                migrate(db, self.file.name)
            else:
                self._end_own(db)
                claim(db, self.file.name, is_node=self._is_node)
            may_be_any = is_first and not self._is_node
            self._is_warned = False
            # Why by so much: if the answer gets lost, the number found later tells
            # whether it was raised by us or by who takes over.
            ours, by = self._ours, 2 + secrets.randbelow(MOST_RAISED)
            self._ours = [*ours, ours[-1] + by]
            with db.patience(WRITE_WITHIN):
                claimed = (ours[-1], by, self._seat.node, ours, may_be_any)
                rows = rows_of(db, RAISE, claimed)
            if not rows:
                raise self._fenced()
            self._has_opened = True
            self._fence, self._last = rows[0]
            self._group = max(self._group, self._last)
            self._refuse_warned()  # then a fail-over may take back what was raised
            self._ours = [self._fence]
            stack.pop_all()
        return db

    def _hear(self, notice: psycopg.errors.Diagnostic) -> None:
        is_warning = notice.severity_nonlocalized == "WARNING"
        if is_warning and notice.sqlstate == WARNED:
            self._is_warned = True

    def _refuse_warned(self) -> None:
        """Take what the server has just reported as done for not known.

        Raises:
            psycopg.OperationalError: it warned that a standby may not have it.
        """
        if self._is_warned:
            raise psycopg.OperationalError(
                "somebody cancelled the wait for a standby: see pg_stat_replication"
            )

    def _fenced(self) -> FencedError:
        return FencedError(
            f"another process has taken {self.file.name} over; nothing was written"
        )

    def _end_own(self, db: Db) -> None:
        """End our lost session, which may still have the lock.

        Raises:
            FencedError: another process has taken over.
            StoreUnavailableError: it waits for a standby, which nobody may end.
        """
        found = rows_of(
            db, "SELECT fence FROM writer WHERE node = %s", (self._seat.node,)
        )
        if not found or found[0][0] not in self._ours:
            raise self._fenced()
        if rows_of(db, AWAITING, (self._role,)):
            raise awaits_standby(self.file.name)
        rows_of(db, END, (self._role,))

    def run(self, db: Db, jobs: Sequence[Job]) -> None:
        """Commit a group; its callers go on when it is durable."""
        del db  # it is another one after each loss
        started = time.perf_counter()
        try:
            is_done = self._commit(jobs)
        except psycopg.Error as error:
            if error.sqlstate == FENCED:
                raise self._fenced() from error
            self._roll_back()
            self._fail(jobs, self.file.translate(error), error)
        else:
            if is_done:
                seconds = time.perf_counter() - started
                ended = GroupEnded(healthy=True, seconds=seconds, commits=len(jobs))
                self.jobs.give_back(jobs, lambda: self._report(ended))

    def _commit(self, jobs: Sequence[Job]) -> bool:
        """Write a group until it is known to be durable.

        Returns:
            False: the server stays away, and those who wait have been told.

        Raises:
            psycopg.Error: the server is there, and could not do it.
            FencedError: another process has taken over.
        """
        while True:
            is_sent = False
            try:
                db = self._connected()
                self._write(db, jobs)
                self._is_warned, is_sent = False, True
                with db.patience(self.file.options.away_for):
                    db.execute("COMMIT")
                self._refuse_warned()
            except psycopg.Error as error:
                if not (is_away(error) or self._is_lost()):
                    raise
                self.drop()
                if not self._rejoin(jobs, error, is_in_doubt=is_sent):
                    return False
                if is_sent and self._last == self._group:
                    return True
            else:
                return True

    def _connected(self) -> Db:
        if self.db is None:
            raise psycopg.OperationalError("the connection is lost")
        db: Db = self.db
        return db

    def _is_lost(self) -> bool:
        return self.db is None or self.db.closed

    def _write(self, db: Db, jobs: Sequence[Job]) -> None:
        """Begin a transaction, and do a group of jobs in it.

        Mostly none fails. Then all is sent at once, without savepoints; the group is
        done once more, step by step and with savepoints, if that fails.

        Raises:
            psycopg.Error: the server; nothing of the group is written.
        """
        self._group += 1
        try:
            self._send(db, jobs)
        except psycopg.Error as error:
            if self._is_lost() or not blames_input(error):
                raise
        except BLAMED:
            pass
        else:
            return
        self._roll_back()
        held: dict[str, int] = {}
        able = [job for job in jobs if self._may_write(job, held)]
        self._begin(db, held)
        for job in able:
            self._attempt(db, job)
        self._tell_others(db, able)

    def _may_write(self, job: Job, held: dict[str, int]) -> bool:
        """Add the leases that a job needs; False: it may not be done, and is told."""
        try:
            held.update(self._held_for(job))
        except StoreError as error:
            job.error = error
            return False
        return True

    def _held_for(self, job: Job) -> Mapping[str, int]:
        """Give the leases under which a job writes, besides those of the seat.

        Raises:
            FencedError: this node has not got one of them.
        """
        commit = commit_of(job)
        return {} if self._leases is None or not commit else self._leases(commit)

    def _tell_others(self, db: Db, jobs: Sequence[Job]) -> None:
        """Have other nodes look at the rows again, if what is written concerns them."""
        asked = self.file.options.concerns_others
        if asked is None:
            return
        kinds = {kind for x in map(commit_of, jobs) if x for kind in asked(x)}
        if not kinds:
            return
        node = self._seat.node
        for kind in sorted(kinds):
            db.execute(MOVED, (kind, node))
        # Why not for all: at each COMMIT with a NOTIFY the server's others wait.
        if urgent := kinds - self.file.options.unhurried:
            db.execute(NOTIFY, (self.file.options.channel, encode(node, urgent)))

    def _begin(self, db: Db, held: Mapping[str, int]) -> None:
        held = dict(self._seat.leases) | dict(held)
        names, epochs = [*held], [*held.values()]
        claim = (self._seat.node, self._fence, self._group, names, epochs)
        db.execute("BEGIN")
        db.execute(FENCE, claim)

    def _send(self, db: Db, jobs: Sequence[Job]) -> None:
        held: dict[str, int] = {}
        for job in jobs:
            held.update(self._held_for(job))
        session = Session(db, is_sending=True)
        with db.pipeline():
            self._begin(db, held)
            for job in jobs:
                job.error = None
                job.value = job.work(session)
            self._tell_others(db, jobs)
        session.check()
        for job in jobs:
            job.value = session.settled(job.value)

    def _attempt(self, db: Db, job: Job) -> None:
        """Do one job of a group; if it fails, undo it alone and keep its error."""
        job.error = None
        db.execute("SAVEPOINT job")
        try:
            job.value = job.work(Session(db))
        except psycopg.Error as error:
            if self._is_lost() or not blames_input(error):
                raise
            job.error = self.file.translate(error)
            job.error.__cause__ = error
        except (StoreError, MisuseError) as error:
            job.error = error
        except (OverflowError, TypeError, ValueError) as error:
            job.error = MisuseError(
                f"this can never be stored: {error}; see `Store.commit`"
            )
        if job.error is not None:
            db.execute("ROLLBACK TO job")
        db.execute("RELEASE job")

    def _rejoin(
        self, jobs: Sequence[Job], lost: psycopg.Error, *, is_in_doubt: bool
    ) -> bool:
        """Connect to a server that went away.

        For a while everybody waits; then only a group whose COMMIT is in doubt does,
        for nobody can be told what became of it.

        Returns:
            False: the server stays away, and those who wait have been told.

        Raises:
            FencedError: another process has taken over.
        """
        LOG.warning("the connection to the database is lost", why=plain(lost))
        ended = GroupEnded(healthy=False)
        self.jobs.give_back((), lambda: self._report(ended))
        since = time.monotonic()
        while True:
            try:
                self.db = self.open()
            except FencedError:
                raise
            except StoreError as error:
                seconds = time.monotonic() - since
                if self.jobs.is_closed and seconds > self.file.options.away_for:
                    self._fail(jobs, in_doubt(error) if is_in_doubt else error)
                    return False
                if seconds < self.file.options.away_for:
                    self._pause.wait(PAUSE)
                elif not is_in_doubt:
                    self._fail(jobs, error)
                    return False
                else:
                    self._fail(self.jobs.take(self.most, PAUSE), error)
            else:
                LOG.info("the connection to the database is back")
                return True

    def _fail(
        self,
        jobs: Sequence[Job],
        error: KernelError,
        cause: BaseException | None = None,
    ) -> None:
        for job in jobs:
            job.error = type(error)(str(error))
            job.error.__cause__ = cause or error.__cause__
        ended = GroupEnded(healthy=False, damage=damage_of(jobs))
        self.jobs.give_back(jobs, lambda: self._report(ended))

    def _roll_back(self) -> None:
        if self.db is not None:
            try:
                self.db.rollback()
            except psycopg.Error:
                self.drop()

    def close(self, db: Db) -> None:
        """Let the next process in, and close."""
        with contextlib.suppress(psycopg.Error):
            # Closing alone lets go of the lock only when the server notices.
            db.execute("SELECT pg_advisory_unlock_all()")
        db.close()


def commit_of(job: Job) -> Commit | None:
    """Give the commit that a job writes; None: it does something else."""
    work = job.work
    found: Commit | None = (
        work.keywords.get("commit") if isinstance(work, partial) else None
    )
    return found


def in_doubt(error: StoreError) -> StoreUnavailableError:
    """Say that nobody knows whether something was stored."""
    return StoreUnavailableError(
        "the server went away while it stored this; the next start finds out whether"
        f" it did: {error}"
    )
