"""Work handed from trio tasks to one thread, and its results handed back.

Knows connections only as what a job is given: each engine has its own. Both ways are
coalesced: a thread that is busy is not woken, and all results of a burst come back in
one hop to the trio thread (a hop for each costs more than the work; see `benchmarks`).
A job that may wait wakes nobody: it is taken with the next one, or alone after
`LINGER`.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
import trio

from runtime.errors import FencedError, MisuseError, StoreUnavailableError
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
        self.death = ""
        self._refused_as = StoreUnavailableError
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
