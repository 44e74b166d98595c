"""Cuts the power at each moment of a workload, and looks at what is left on the disk.

The workload runs once while all its writes are listened to. From that record follow,
for each moment, the disks that a power cut could leave: whatever a flush has
confirmed is there; of the rest nothing, all, or any of its sectors. Each such disk is
opened, and must show what was acknowledged, and nothing that is half written.
"""

from __future__ import annotations

import random  # noqa: TID251  for dice with a seed alone
from pathlib import Path
from typing import Literal

import msgspec

from runtime.sqlite.store import SqliteStore
from tests.disk_faults.faults import (
    NAME,
    file_on,
    make_old_file,
    new_folder,
    quick_disk,
    refuse_damage,
)
from tests.disk_faults.workload import (
    Expected,
    Reopen,
    Workload,
    carry_out,
    expect,
    take_picture,
)
from tests.fakes.store.faulty_disk import Written
from tests.support.store.rows import accepting

SECTOR = 512
"""Bytes that reach the disk together or not at all."""

Survival = Literal["none", "all", "some"]
"""What a power cut leaves of what was not flushed."""


class Acknowledged(msgspec.Struct, frozen=True):
    """A step of the workload was done, and its caller knows."""

    step: int


class Begun(msgspec.Struct, frozen=True):
    """A step of the workload begins."""

    step: int


Moment = Written | Acknowledged | Begun


def dice_with_seeds(count: int) -> list[random.Random]:
    """Make dice that fall the same way in every run."""
    return [random.Random(seed) for seed in range(count)]  # noqa: S311  no secret


class Contents:
    """One file: what is surely on the disk, and what was written since."""

    def __init__(self, flushed: bytes = b"") -> None:
        self.flushed = flushed
        self.unflushed: list[Written] = []

    def flush(self) -> None:
        """Take all that was written for sure."""
        self.flushed = self.after_cut("all", None)
        self.unflushed.clear()

    def after_cut(self, survival: Survival, dice: random.Random | None) -> bytes:
        """Give what a power cut leaves."""
        left = bytearray(self.flushed)
        for written in self.unflushed if survival != "none" else ():
            for sector in sectors(written):
                if dice is None or dice.random() < 0.5:
                    apply(left, sector)
        return bytes(left)


def sectors(written: Written) -> list[Written]:
    """Take a write apart into what reaches the disk together."""
    if written.operation == "truncate":
        return [written]
    body, parts, at = written.body, list[Written](), written.offset
    while body:
        size = SECTOR - at % SECTOR
        parts.append(Written("write", written.file, at, body[:size]))
        body, at = body[size:], at + size
    return parts


def apply(left: bytearray, written: Written) -> None:
    """Do one write or truncation."""
    if written.operation == "truncate":
        del left[written.offset :]
        return
    left.extend(bytes(max(0, written.offset - len(left))))
    left[written.offset : written.offset + len(written.body)] = written.body


class Platter:
    """A folder on a disk whose power may be cut.

    Names are flushed with the next new file's first flush, as SQLite does it (it
    flushes the folder with a new journal or WAL); until then a removed file may be
    there again, and a new one may not.

    Args:
        files: what is on it for sure.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self._now = {name: Contents(body) for name, body in files.items()}
        self._named = dict(self._now)
        self._nameless: set[str] = set()

    def take(self, written: Written) -> None:
        """Follow one change."""
        name = written.file
        match written.operation:
            case "open":
                if name not in self._now:
                    self._now[name] = Contents()
                    self._nameless.add(name)
            case "rm":
                self._now.pop(name, None)
            case "sync":
                self._now[name].flush()
                if name in self._nameless:
                    self._named = dict(self._now)
                    self._nameless.clear()
            case _:
                self._now[name].unflushed.append(written)

    def after_cut(
        self, survival: Survival, dice: random.Random | None
    ) -> dict[str, bytes]:
        """Give the files that a power cut leaves."""
        names = {"none": self._named, "all": self._now}.get(survival)
        if names is None or dice is not None:
            names = dict(
                self._named if dice is None or dice.random() < 0.5 else self._now
            )
        return {name: file.after_cut(survival, dice) for name, file in names.items()}


def read_files(folder: Path) -> dict[str, bytes]:
    """Read the database, and what SQLite keeps beside it."""
    names = (NAME, f"{NAME}-wal", f"{NAME}-journal")
    files = [folder / name for name in names if (folder / name).exists()]
    return {file.name: file.read_bytes() for file in files}


async def record(
    workload: Workload, folder: Path
) -> tuple[dict[str, bytes], list[Moment]]:
    """Run a workload; gives the files it began with, and all that happened."""
    await make_old_file(workload, new_folder(folder))
    before = read_files(folder)
    moments: list[Moment] = []
    with quick_disk("recorded") as disk:
        disk.listener = moments.append
        file = file_on(disk, folder, workload)
        store = await SqliteStore.open(file)
        for number, step in enumerate(workload.steps):
            moments.append(Begun(number))
            if isinstance(step, Reopen):
                await store.aclose()
                store = await SqliteStore.open(file)
            else:
                await carry_out(store, step)
            moments.append(Acknowledged(number))
        await store.aclose()
    return before, moments


async def cut_everywhere(
    workload: Workload, folder: Path, dice: list[random.Random]
) -> int:
    """Cut the power after each change a workload makes.

    Args:
        workload: what is done.
        folder: a new one, for the files.
        dice: for each of these, one more disk per moment, with some of the sectors
            that were not flushed.

    Returns:
        How many different disks were opened.

    Raises:
        AssertionError: something did not hold.
    """
    expected = await expect(workload)
    before, moments = await record(workload, folder / "recorded")
    platter, cuts = Platter(before), Cuts(workload, expected, folder / "cut")
    for number, moment in enumerate(moments):
        match moment:
            case Acknowledged(step=step):
                cuts.acknowledged = expected.reached[step]
            case Begun(step=step):
                cuts.begun = expected.reached[step]
            case Written():
                platter.take(moment)
        left = [platter.after_cut("none", None), platter.after_cut("all", None)]
        left += [platter.after_cut("some", each) for each in dice]
        for files in left:
            try:
                await cuts.look_at(files)
            except AssertionError as error:
                text = f"{workload.name}: power cut after change {number}"
                raise AssertionError(text) from error
    return cuts.count


class Cuts:
    """Opens disks that a power cut has left.

    Args:
        workload: what was done.
        expected: how it must look.
        folder: where to put the files.
    """

    def __init__(self, workload: Workload, expected: Expected, folder: Path) -> None:
        self.acknowledged = 0
        """Number of the last picture that was acknowledged."""

        self.begun = 0
        """Number of the last picture that may be there already."""

        self.count = 0
        self._workload = workload
        self._expected = expected
        self._folder = folder
        self._seen: set[int] = set()

    async def look_at(self, files: dict[str, bytes]) -> None:
        """Open one disk, unless it looks like one that was opened before."""
        looks = hash((self.acknowledged, self.begun, *sorted(files.items())))
        if looks in self._seen:
            return
        self._seen.add(looks)
        self.count += 1
        new_folder(self._folder)
        for name, body in files.items():
            (self._folder / name).write_bytes(body)
        with quick_disk("cut") as disk:
            file = file_on(disk, self._folder, self._workload)
            store = await SqliteStore.open(file)
            found = await take_picture(store)
            await store.commit(accepting("after the cut"))
            await store.aclose()
        refuse_damage(self._folder / NAME)
        allowed = self._expected.pictures[self.acknowledged : self.begun + 1]
        assert found in allowed
