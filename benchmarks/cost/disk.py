"""The database of the ledger: a real one, on a disk that takes virtual time.

Both threads of the store work on the trio thread, one group at a time, so that in each
run the same commits share a transaction. A flush takes `FLUSH` seconds of virtual time,
and all else takes none: the time a message takes says how many flushes it waited for.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import apsw
import trio

from runtime.store.jobs import LINGER, JobQueue, WorkingThread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.cost.counting import Ledger
    from runtime.sqlite.file import SqliteFile
    from runtime.store.jobs import DatabaseThread, Job, Report

FLUSH = 0.001
"""Seconds of virtual time that a flush takes."""


class SteppedQueue(JobQueue):
    """A queue that rings two events of trio, and gives back when it is told to.

    Args:
        file: has the bounds.
    """

    def __init__(self, file: SqliteFile) -> None:
        options = file.options
        super().__init__(options.max_queued, options.max_queued_bytes, lambda: None)
        self.come = trio.Event()
        self.urgent = trio.Event()
        """Set while there is a job that may not wait for others."""

        self._done: list[Callable[[], None]] = []

    @property
    def has_jobs(self) -> bool:
        """Whether anything waits; unlike `depth` it counts for nobody."""
        return bool(self._jobs)

    def close(self, refusal: str) -> None:
        """Refuse new jobs; do what waits at once."""
        super().close(refusal)
        self.urgent.set()

    def take_all(self, most: int) -> list[Job]:
        """Take what waits, in order."""
        self.come, self.urgent = trio.Event(), trio.Event()
        taken = self.take(most, 0.0)
        if self.has_jobs:
            self.come.set()
            self.urgent.set()
        return taken

    def give_back(
        self, jobs: Sequence[Job], note: Callable[[], object] | None = None
    ) -> None:
        """Keep what is done until it is on the disk."""
        self._done.append(partial(super().give_back, jobs, note))

    def release(self) -> None:
        """Tell those who wait that it is."""
        done, self._done = self._done, []
        for tell in done:
            tell()

    def _put(self, job: Job, *, may_wait: bool = False) -> None:
        self._bytes_in += job.size
        self._jobs.append(job)
        self.come.set()
        if not may_wait:
            self.urgent.set()


class SteppedThread(WorkingThread):
    """One of the two threads of the store, as a task of trio; see `WorkingThread`."""

    def __init__(
        self, kind: type[DatabaseThread[SqliteFile]], file: SqliteFile, report: Report
    ) -> None:
        self.jobs: SteppedQueue = SteppedQueue(file)
        self._works = kind(file, self.jobs, report, lambda _thread: None)
        self._idle_after = file.options.idle_after
        self._is_stopped = False
        self._has_ended = trio.Event()
        trio.lowlevel.spawn_system_task(self._run, name=kind.__name__)

    async def stop(self, refusal: str) -> None:
        """End it when it has done what waits."""
        self._is_stopped = True
        self.jobs.close(refusal)
        self.jobs.come.set()
        await self._has_ended.wait()

    async def _run(self) -> None:
        """Do what `DatabaseThread` and `JobQueue.take` do, in the same order."""
        works, jobs = self._works, self.jobs
        most = works.most
        while not (self._is_stopped and not jobs.has_jobs):
            await within(LINGER, jobs.urgent)
            if not jobs.has_jobs:
                await within(self._idle_after - LINGER, jobs.come)
            if not jobs.has_jobs and not self._is_stopped:
                if works.db is not None:
                    works.rest(works.db)
                    jobs.release()
                await jobs.come.wait()
            elif jobs.has_jobs:
                works._in_hand = taken = jobs.take_all(most)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
                db = works.db or works._opened(taken)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
                if db is not None:
                    flushes = CountingFile.flushes
                    works.run(db, taken)
                    await trio.sleep(FLUSH * (CountingFile.flushes - flushes))
                jobs.release()
        if works.db is not None:
            works.close(works.db)
        jobs.release()
        self._has_ended.set()


async def within(seconds: float, event: trio.Event) -> None:
    """Wait for an event, but not for longer."""
    with trio.move_on_after(seconds):
        await event.wait()


class CountingDisk(apsw.VFS):
    """Counts what is written and flushed; waits for no real disk.

    Args:
        ledger: where that is counted.
    """

    name = "counting"

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: Any) -> CountingFile:  # noqa: N802, ANN401
        """Open a file."""
        return CountingFile(self.ledger, name, flags)


class CountingFile(apsw.VFSFile):
    """One of the database's files."""

    flushes = 0
    """Of all files, so far."""

    def __init__(self, ledger: Ledger, name: Any, flags: Any) -> None:  # noqa: ANN401
        self._ledger = ledger
        super().__init__("", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802, ANN401
        """Count the bytes."""
        self._ledger.now.bytes_written += len(data)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        """Count a flush."""
        del flags
        CountingFile.flushes += 1
        self._ledger.now.syncs += 1
