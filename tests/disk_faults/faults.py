"""Fails each step that a disk can be asked for, one run of a workload for each.

What must hold, whichever step fails: a commit that was refused is not there, one
that was acknowledged is; the store says that it is not well until it has written
again; and when the fault ends it goes on, with the same store or after a restart.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import itertools
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import apsw
import msgspec

from runtime.errors import StoreUnavailableError
from runtime.sqlite.file import SqliteFile, SqliteOptions
from runtime.sqlite.store import SqliteStore
from tests.disk_faults.workload import (
    Expected,
    Look,
    Outcome,
    Reopen,
    Step,
    Together,
    Workload,
    carry_out,
    expect,
    take_picture,
)
from tests.fakes.store.faulty_disk import FaultyDisk, Operation

NAME = "callboard.db"


class Fault(msgspec.Struct, frozen=True):
    """One way for a disk to fail."""

    operation: Operation
    code: int
    """SQLite's (extended) result code."""

    is_lasting: bool = False
    """Every later such step fails as well, until the disk is mended."""

    @property
    def text(self) -> str:
        """Name it in a line of a report."""
        lasting = ", lasting" if self.is_lasting else ""
        names = {**apsw.mapping_result_codes, **apsw.mapping_extended_result_codes}
        return f"{self.operation} {names[self.code]}{lasting}"


# Not done: BUSY from a write. No disk says that, and SQLite takes it for a reader in
# the way of a checkpoint, which is then no failure. It belongs to locks.
PASSING = (
    Fault("read", apsw.SQLITE_IOERR_READ),
    Fault("write", apsw.SQLITE_IOERR_WRITE),
    Fault("write", apsw.SQLITE_FULL),
    Fault("sync", apsw.SQLITE_IOERR_FSYNC),
    Fault("sync", apsw.SQLITE_FULL),
    Fault("truncate", apsw.SQLITE_IOERR_TRUNCATE),
    Fault("size", apsw.SQLITE_IOERR_FSTAT),
    Fault("lock", apsw.SQLITE_IOERR_LOCK),
    Fault("lock", apsw.SQLITE_BUSY),
    Fault("open", apsw.SQLITE_CANTOPEN),
    Fault("rm", apsw.SQLITE_IOERR_DELETE),
)
LASTING = tuple(msgspec.structs.replace(fault, is_lasting=True) for fault in PASSING)

FULL_DISK = Fault("write", apsw.SQLITE_FULL, is_lasting=True)
DEAD_DISK = Fault("sync", apsw.SQLITE_IOERR_FSYNC, is_lasting=True)

ORDINARY = (
    *(fault for fault in PASSING if fault.code != apsw.SQLITE_FULL),
    FULL_DISK,
    DEAD_DISK,
)
"""What the test suite tries on the standard workload: full and dead disks last."""

FEW = (
    Fault("read", apsw.SQLITE_IOERR_READ),
    FULL_DISK,
    DEAD_DISK,
    Fault("lock", apsw.SQLITE_BUSY),
)
"""What it tries on the other workloads."""


@contextmanager
def quick_disk(name: str) -> Generator[FaultyDisk]:
    """Make a disk that does not wait for the real one; gone after the block."""
    disk = FaultyDisk(name, counts=(), flushes=False)
    try:
        yield disk
    finally:
        disk.unregister()


def file_on(disk: FaultyDisk, folder: Path, workload: Workload) -> SqliteFile:
    """Say how a workload uses the database in a folder."""
    options = SqliteOptions(
        synchronous=workload.synchronous,
        # The quiet is not used: the same steps come in the same order each time.
        idle_after=3600.0,
        busy_timeout=0.01,
        # SQLite goes on when it cannot look how large the WAL is; apsw raises what a
        # disk made in Python raised, after the commit was done.
        wal_kept=-1,
    )
    return SqliteFile(folder / NAME, options, disk.name, workload.migrations)


async def make_old_file(workload: Workload, folder: Path) -> None:
    """Write what a workload begins with into a folder."""
    if not workload.before:
        return
    with quick_disk("old") as disk:
        older = msgspec.structs.replace(workload, migrations=workload.migrations[:-1])
        store = await SqliteStore.open(file_on(disk, folder, older))
        for step in workload.before:
            assert set(await carry_out(store, step)) == {None}
        await store.aclose()


def new_folder(folder: Path) -> Path:
    """Make a folder that is empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


async def explore(workload: Workload, fault: Fault, folder: Path) -> int:
    """Run a workload once for each step that this fault can hit.

    Args:
        workload: what is done.
        fault: how the disk fails.
        folder: a new one, for the files.

    Returns:
        How many runs there were in which the disk failed.

    Raises:
        AssertionError: something did not hold; says at which step.
    """
    expected = await expect(workload)
    old, run = new_folder(folder / "old"), folder / "run"
    await make_old_file(workload, old)
    with quick_disk("exploring") as disk:
        for number in itertools.count(1):
            shutil.rmtree(run, ignore_errors=True)
            shutil.copytree(old, run)
            file = file_on(disk, run, workload)
            trial = Trial(disk, file, fault, number)
            try:
                await trial.run(workload, expected)
            except AssertionError as error:
                text = f"{workload.name}: {fault.text}: step {number}"
                raise AssertionError(text) from error
            if not disk.failed:
                return number - 1
    raise AssertionError("unreachable: the last step is followed by one too many")


class Trial:
    """One run of a workload in which one step of the disk fails.

    Args:
        disk: reset for this run.
        file: the database on that disk.
        fault: how it fails.
        number: which step of that kind, from 1.
    """

    def __init__(
        self, disk: FaultyDisk, file: SqliteFile, fault: Fault, number: int
    ) -> None:
        self._disk = disk
        self._file = file
        disk.steps = disk.failed = 0
        disk.counts = (fault.operation,)
        disk.code = fault.code
        disk.fails_at = range(number, 2**63) if fault.is_lasting else (number,)

    async def run(self, workload: Workload, expected: Expected) -> None:
        """Carry out the workload, and check what must hold."""
        store = await self._open()
        for number, step in enumerate(workload.steps):
            if isinstance(step, Reopen):
                await store.aclose()
                store = await self._open()
            else:
                before = expected.pictures[
                    expected.reached[number - 1] if number else 0
                ]
                await self._step(store, step, before, expected.outcomes[number])
        await store.aclose()
        self._mend()
        store = await SqliteStore.open(self._file)
        assert await take_picture(store) == expected.pictures[-1]
        await store.aclose()
        refuse_damage(self._file.path)

    def _mend(self) -> None:
        self._disk.fails_at = ()

    async def _open(self) -> SqliteStore:
        try:
            return await SqliteStore.open(self._file)
        except StoreUnavailableError:
            self._mend()
            return await SqliteStore.open(self._file)

    async def _step(
        self,
        store: SqliteStore,
        step: Step,
        before: object,
        expected: list[Outcome],
    ) -> None:
        outcomes = await carry_out(store, step)
        if StoreUnavailableError not in outcomes:
            assert outcomes == expected
            return
        assert self._disk.failed
        if not isinstance(step, Look):
            assert not store.healthy
        self._mend()
        if set(outcomes) == {StoreUnavailableError}:
            assert await take_picture(store) == before
        again = await self._repeat(store, step, outcomes)
        assert again == expected
        if not store.healthy:
            # Nothing was written: the step had nothing to write.
            assert None not in expected or isinstance(step, Look)
            await store.probe()
        assert store.healthy

    async def _repeat(
        self, store: SqliteStore, step: Step, outcomes: list[Outcome]
    ) -> list[Outcome]:
        """Do again what was refused; gives all outcomes of the step."""
        if not isinstance(step, Together):
            return await carry_out(store, step)
        refused = [
            n for n, each in enumerate(outcomes) if each is StoreUnavailableError
        ]
        again = Together(tuple(step.commits[number] for number in refused))
        results = dict(zip(refused, await carry_out(store, again), strict=True))
        return [results.get(number, each) for number, each in enumerate(outcomes)]


def refuse_damage(path: Path) -> None:
    """Check a database that nobody has open."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    found = db.pragma("integrity_check")
    db.close()
    assert found == "ok", found
