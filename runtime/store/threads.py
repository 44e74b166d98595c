"""The threads of an engine that keeps rows outside this process: one writes, one reads.

Each is a pykka `ThreadingActor` that owns its connection from its first job to its
end. It knows no engine: those of SQLite are in `runtime/sqlite/store.py`, those of
PostgreSQL in `runtime/postgresql/threads.py`.
"""

from __future__ import annotations

import abc
import contextlib
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import pykka
import trio

from runtime.errors import CorruptError, FencedError, StoreError
from runtime.store.jobs import Job, JobQueue
from runtime.telemetry.logs import EventLog

LOG = EventLog("store")


class ThreadOptions(Protocol):
    """How much an engine's thread takes in."""

    @property
    def max_queued(self) -> int:
        """Most jobs that wait for it."""
        ...

    @property
    def max_queued_bytes(self) -> int:
        """Most bytes that waiting jobs hold together."""
        ...

    @property
    def idle_after(self) -> float:
        """Seconds without a job after which it rests."""
        ...


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
                # Not by `aclose`: pykka's registry can stop any actor. Whoever asks
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
    @abc.abstractmethod
    def most(self) -> int:
        """How many jobs to take together."""

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
