"""The threads of an engine outside this process, and the work that they are handed.

One thread writes, one reads. Each is a pykka `ThreadingActor` that owns its connection
from its first job to its end. It knows no engine: those of SQLite are in
`runtime/sqlite/store.py`, those of PostgreSQL in `runtime/postgresql/threads.py`.

Knows connections only as what a job is given: each engine has its own. Both ways are
coalesced: a thread that is busy is not woken, and all results of a burst come back in
one hop to the trio thread (a hop for each costs more than the work; see `benchmarks`).
A job that may wait wakes nobody: it is taken with the next one, or alone after
`LINGER`.
"""

from __future__ import annotations

import abc
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Generic, Literal, Protocol, TypeVar

import msgspec
import pykka
import trio

from runtime.errors import (
    CorruptError,
    FencedError,
    MisuseError,
    StoreError,
    StoreUnavailableError,
)
from runtime.telemetry.logs import EventLog

T = TypeVar("T")

LOG = EventLog("store")

# Chosen: within it a quick model answers, and a person's program writes again; what
# the end of the process may take of what nobody waits for is as little.
LINGER = 0.01
"""Seconds that a job which may wait lies at most before the thread takes it."""


class Job(msgspec.Struct, eq=False):
    """One piece of work, and the task that waits for it."""

    work: Callable[[Any], Any]
    """Called in the thread with its connection."""

    size: int = 0
    """Bytes it holds while it waits."""

    task: trio.lowlevel.Task | None = None
    error: Exception | None = None
    value: Any = None
    """What the work gave, once it is done."""

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody waits for its result any more."""
        return self.task is None

    def wake(self) -> None:
        """Let the waiting task go on, on the trio thread."""
        task, self.task = self.task, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    def abandon(self, _: object) -> trio.lowlevel.Abort:
        """Let the waiting task leave; the job stays where it is."""
        self.task = None
        return trio.lowlevel.Abort.SUCCEEDED


class Told(Job, kw_only=True):
    """A job whose result is told to a function instead of a waiting task."""

    done: Callable[[Any], object]
    """Called on the trio thread with the value or the error; must not raise."""

    is_told: bool = False

    @property
    def is_abandoned(self) -> bool:
        """Never: `done` always wants the result."""
        return False

    def wake(self) -> None:
        """Tell the result, once, on the trio thread."""
        if self.is_told:
            return
        self.is_told = True
        self.done(self.error if self.error is not None else self.value)


class JobQueue:
    """The jobs that wait for one thread.

    `call`, `close` and the waking are for the trio thread; `take` and `give_back`
    for the one working thread.

    Args:
        max_jobs: most jobs that may wait.
        max_bytes: most bytes that waiting jobs may hold together.
        wake: called when the thread sleeps and there is something to take.
    """

    def __init__(self, max_jobs: int, max_bytes: int, wake: Callable[[], None]) -> None:
        self._max_jobs = max_jobs
        self._max_bytes = max_bytes
        self._wake = wake
        self._token = trio.lowlevel.current_trio_token()
        self._jobs: deque[Job] = deque()
        # Free while there is something to take at once. Only the trio thread frees
        # it, so that looking before is enough; only the working thread takes it.
        self._bell = threading.Lock()
        self._bell.acquire()
        self._refusal: str | None = None
        self._refused_as = StoreUnavailableError
        self.death = ""
        """Why the thread ended badly, so that nothing will ever be taken; empty as
        long as it lives."""

        self._is_asleep = True
        self._is_dozing = False
        self._has_more = False  # left behind by the last taking
        # Two counters, each written by one thread only, so that neither needs a
        # lock: bytes that came in, bytes that went out.
        self._bytes_in = 0
        self._bytes_out = 0

    @property
    def depth(self) -> int:
        """How many jobs wait."""
        return len(self._jobs)

    @property
    def is_closed(self) -> bool:
        """Whether nothing more is taken in."""
        return self._refusal is not None

    async def call(self, work: Callable[[Any], T], size: int = 0) -> T:
        """Have the thread do `work`, and wait for its result.

        A caller already cancelled asks for nothing; one that is cancelled while
        waiting leaves, and the work may still be done.

        Raises:
            StoreUnavailableError: too much waits already, or the queue is closed.
            MisuseError: `size` alone is more than the queue ever takes.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        self._refuse(size)
        job = Job(work, size)
        job.task = trio.lowlevel.current_task()
        self._put(job)
        if self.death:  # it may have died before it could see the job
            job.task = None  # or after: then it wakes whoever waits for this job
            raise self._refused_as(self.death)
        # Why here: one coroutine less for each of very many writers.
        await trio.lowlevel.wait_task_rescheduled(job.abandon)
        if job.error is not None:
            raise job.error
        value: T = job.value
        return value

    def submit(
        self,
        work: Callable[[Any], T],
        done: Callable[[T | Exception], object],
        size: int = 0,
        *,
        may_wait: bool = False,
    ) -> None:
        """Have the thread do `work` without waiting; `done` is called with the result.

        Jobs of one caller are done, and told of, in the order they were submitted.

        Args:
            work: called in the thread with its connection.
            done: see `Told`.
            size: bytes it holds while it waits.
            may_wait: whether it need not be done before the next job is, or `LINGER`
                is over.

        Raises:
            StoreUnavailableError: too much waits already, or the queue is closed.
            MisuseError: `size` alone is more than the queue ever takes.
        """
        waiting = self._bytes_in - self._bytes_out
        is_full = len(self._jobs) >= self._max_jobs or waiting + size > self._max_bytes
        if is_full or self._refusal is not None:
            self._refuse(size)
        job = Told(work, size, done=done)
        self._put(job, may_wait=may_wait)
        if self.death:  # it may have died before it could see the job
            job.error = self._refused_as(self.death)
            self._token.run_sync_soon(job.wake)

    def _put(self, job: Job, *, may_wait: bool = False) -> None:
        self._bytes_in += job.size
        self._jobs.append(job)
        # Order matters: the job stands before we look, and the thread looks for jobs
        # after it has said that it dozes or sleeps. At worst it wakes for nothing.
        if self._is_dozing or not may_wait:
            self._ring()
        if self._is_asleep:
            self._is_asleep = False
            self._wake()

    def _ring(self) -> None:
        if self._bell.locked():
            self._bell.release()

    def _refuse(self, size: int) -> None:
        if self._refusal is not None:  # as of a thread that has died
            raise self._refused_as(self._refusal)
        if size > self._max_bytes:
            raise MisuseError(
                f"a commit of {size} bytes is more than the store takes"
                f" ({self._max_bytes}); keep large content elsewhere"
            )
        waiting = self._bytes_in - self._bytes_out
        if len(self._jobs) >= self._max_jobs or waiting + size > self._max_bytes:
            raise StoreUnavailableError(
                f"the store is overloaded: {self.depth} commits with {waiting} bytes"
                " wait for the disk; nothing was written, try again later"
            )

    def close(self, refusal: str) -> None:
        """Refuse new jobs, saying why, and wake the thread."""
        self._refusal = self._refusal or refusal
        self._ring()

    def take(self, most: int, patience: float) -> list[Job]:
        """Take what waits, in order.

        Args:
            most: how many jobs at most.
            patience: seconds to wait for the first one.

        Returns:
            Nothing when none came, or the queue was closed: the thread may sleep,
            it will be woken.
        """
        while True:
            if not self._has_more:
                self._await_jobs(patience)
            taken: list[Job] = []
            while self._jobs and len(taken) < most:
                job = self._jobs.popleft()
                taken.append(job)
                self._bytes_out += job.size
            self._has_more = bool(self._jobs)
            if taken:
                return taken
            self._is_asleep = True
            if not self._jobs:
                return taken
            self._is_asleep = False

    def _await_jobs(self, patience: float) -> None:
        if self._refusal is not None or self._bell.acquire(
            timeout=min(LINGER, patience)
        ):
            return
        self._is_dozing = True
        if not self._jobs and patience > LINGER:
            self._bell.acquire(timeout=patience - LINGER)
        self._is_dozing = False

    def give_up(self, error: Exception, jobs: Sequence[Job]) -> None:
        """Fail `jobs` and all that wait or ever come: the thread is ending badly."""
        self._refusal = self.death = (
            f"the store's thread failed ({type(error).__name__}: {error}); nothing"
            " that waited was acknowledged. Start the program again"
        )
        if isinstance(error, FencedError):
            self._refused_as = FencedError  # others go on with what is waited for
        while jobs or (jobs := self.take(self._max_jobs, 0.0)):
            for job in jobs:
                job.error = self._refused_as(self.death)
            self.give_back(jobs)
            jobs = ()

    def give_back(
        self, jobs: Sequence[Job], note: Callable[[], object] | None = None
    ) -> None:
        """Wake those who wait for `jobs`, all in one hop to the trio thread.

        Args:
            jobs: done, or failed with their `error` set.
            note: called before, on the trio thread; must not raise.
        """
        with contextlib.suppress(trio.RunFinishedError):  # nobody is left to tell
            self._token.run_sync_soon(self._arrive, jobs, note)

    @staticmethod
    def _arrive(jobs: Sequence[Job], note: Callable[[], object] | None) -> None:
        calls = [job.wake for job in jobs]
        for call in calls if note is None else (note, *calls):
            try:
                call()
            except Exception as error:  # noqa: BLE001  a mistake of one caller's
                LOG.fault("what a job's end was told to failed", error)


class ThreadOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much an engine's threads take in, and how safely they keep it."""

    synchronous: Literal["full", "normal"] = "full"
    """`full`: a commit is on the disk before it is acknowledged. `normal`: a power cut,
    or a crash of a server, may take the last commits; the end of this process alone
    takes none."""

    max_queued: int = 10_000
    """Most commits that may wait; one more is refused."""

    max_queued_bytes: int = 67_108_864
    """Most bytes that may wait; also the most that one commit may have."""

    max_group: int = 1000
    """Most commits that share one transaction and its one flush to the disk."""

    idle_after: float = 0.1
    """Seconds without a commit after which the thread rests until it is woken."""

    close_within: float = 10.0
    """Seconds that closing may take, under cancellation too."""


class StorePlace(Protocol):
    """Where an engine keeps its rows: a file, or a server."""

    @property
    def options(self) -> ThreadOptions:
        """How it is used."""
        ...


P = TypeVar("P", bound=StorePlace)


class Wake(msgspec.Struct, frozen=True):
    """There are jobs to take."""


class GroupEnded(msgspec.Struct, frozen=True):
    """A thread's report to the store, on the trio thread."""

    healthy: bool | None
    """Whether the disk took it; None if nothing was written."""

    seconds: float = 0.0
    commits: int = 0
    """How many shared the transaction; 0 if there was none."""

    failed_read: Job | None = None
    """What the disk did not give, for the reader to try again."""

    wal_bytes: int = 0
    """How large the WAL is; it grows while somebody reads an old state."""

    damage: str = ""
    """What was found to be damaged in the file; empty: nothing."""


Report = Callable[[GroupEnded], None]
Ended = Callable[[threading.Thread], None]


def damage_of(jobs: Sequence[Job]) -> str:
    """Give what the first job that met damage says of it; empty: none did."""
    damages = (str(job.error) for job in jobs if isinstance(job.error, CorruptError))
    return next(damages, "")


class DatabaseThread(pykka.ThreadingActor, abc.ABC, Generic[P]):
    """A thread with one connection, which it opens for its first job.

    Takes: `Wake`.
    Sends: results to the waiting tasks.
    Keeps: the connection.
    Fails: on a bug only; all that waits is told, the store must be opened again.
    Ends: when stopped; jobs that came before are done first.
    """

    # A disk that no longer answers must not keep the process from ending; what was
    # acknowledged is on it already.
    use_daemon_thread = True

    def __init__(self, file: P, jobs: JobQueue, report: Report, ended: Ended) -> None:
        super().__init__()
        self.file = file
        self.jobs = jobs
        self.db: Any | None = None
        self._report = report
        self._ended = ended
        self._in_hand: Sequence[Job] = ()

    def on_receive(self, message: Wake) -> None:
        """Work until nothing has come for a while."""
        del message
        try:
            self._work(self.file.options.idle_after)
        except FencedError as error:
            self._give_way(error)
            self.stop()
            return
        if self.db is not None:
            self.rest(self.db)

    def on_stop(self) -> None:
        """Do what still waits, then close."""
        try:
            if not self.jobs.death:
                self._work(0.0)
            if not self.jobs.is_closed:
                # Not by `aclose`: pykka's registry can stop any actor. Jobs that come
                # later would wait for ever.
                self.jobs.give_up(RuntimeError("stopped from outside"), ())
        except FencedError as error:
            self._give_way(error)
        finally:
            self._end()

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Tell everybody who waits, then close; see pykka."""
        del exception_type, traceback
        error = exception_value if isinstance(exception_value, Exception) else None
        self.jobs.give_up(error or RuntimeError("unknown"), self._in_hand)
        self._end()

    def _give_way(self, error: FencedError) -> None:
        """Tell everybody who waits that another process has the database.

        Why it is not left to `on_failure`: that is no bug, and pykka logs a traceback.
        """
        LOG.warning("this process writes no longer", why=str(error))
        self.jobs.give_up(error, self._in_hand)

    def drop(self) -> None:
        """Close the connection as it is; the next job opens a new one."""
        if self.db is not None:
            self.db.close()
        self.db = None

    def _work(self, patience: float) -> None:
        most = self.most
        while jobs := self.jobs.take(most, patience):
            self._in_hand = jobs
            db = self.db or self._opened(jobs)
            if db is not None:
                self.run(db, jobs)
            self._in_hand = ()

    def _opened(self, jobs: Sequence[Job]) -> Any | None:
        try:
            self.db = self.open()
        except FencedError:
            raise  # never again: the thread ends
        except StoreError as error:
            for job in jobs:
                job.error = type(error)(str(error))
                job.error.__cause__ = error.__cause__
            self.jobs.give_back(jobs)
        return self.db

    def _end(self) -> None:
        try:
            if self.db is not None:
                self.close(self.db)
        finally:
            thread = threading.current_thread()
            self.jobs.give_back((), lambda: self._ended(thread))

    @property
    def most(self) -> int:
        """How many jobs to take together."""
        return self.file.options.max_group

    @abc.abstractmethod
    def open(self) -> Any:
        """Open the connection, or raise a `StoreError`."""

    @abc.abstractmethod
    def run(self, db: Any, jobs: Sequence[Job]) -> None:
        """Do the jobs and give them back."""

    def rest(self, db: Any) -> None:
        """Called when no job has come for a while."""

    def close(self, db: Any) -> None:
        """Close the connection."""
        db.close()


class WorkingThread:
    """One of the two threads as trio tasks see it.

    Args:
        report: told of each group, of a disk that fails, and of a bad end.
    """

    def __init__(
        self, kind: type[DatabaseThread[Any]], file: StorePlace, report: Report
    ) -> None:
        self.jobs = JobQueue(
            file.options.max_queued, file.options.max_queued_bytes, self._wake
        )
        self._report = report
        self._has_ended = trio.Event()
        self._thread: threading.Thread | None = None
        self._ref = kind.start(file, self.jobs, report, self._ended)

    async def stop(self, refusal: str) -> None:
        """End the thread when it has done what waits."""
        self.jobs.close(refusal)
        self._ref.stop(block=False)
        await self._has_ended.wait()
        if self._thread is not None:
            # It has said its last word; a few microseconds of pykka's own remain.
            self._thread.join(1.0)

    def _wake(self) -> None:
        with contextlib.suppress(pykka.ActorDeadError):  # the job is failed by then
            self._ref.tell(Wake())

    def _ended(self, thread: threading.Thread) -> None:
        self._thread = thread
        self._has_ended.set()
        if self.jobs.death:
            self._report(GroupEnded(healthy=False))
