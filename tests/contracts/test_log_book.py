"""Proves that every log book keeps what the port `LogBook` promises."""

from __future__ import annotations

import os
import resource
import stat
from pathlib import Path

import pytest
import trio

from actors.errors import ToolError
from connectors.files.notebook import MOST_OF_DAY, FileLogBook

NOON = 1_767_268_800.0  # 2026-01-01 12:00 UTC
DAY = 86_400.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "memory"


# Files are so small here that a test may wait for them.
def content(folder: Path, day: str, agent: str = "bot") -> str:
    return (folder / agent / "memory" / f"{day}.md").read_text(encoding="utf-8")


async def test_entries_have_their_time_and_each_day_its_file(folder: Path) -> None:
    book = FileLogBook(folder)
    await book.append("bot", NOON, "first\nof two lines")
    await book.append("bot", NOON + 60, "second ☕")
    await book.append("bot", NOON + DAY, "third")
    await book.append("cat", NOON, "its own")
    assert content(folder, "2026-01-01") == (
        "- [12:00] first of two lines\n- [12:01] second ☕\n"
    )
    assert content(folder, "2026-01-02") == "- [12:00] third\n"
    assert content(folder, "2026-01-01", "cat") == "- [12:00] its own\n"


async def test_nobody_else_may_read_them(folder: Path) -> None:
    await FileLogBook(folder).append("bot", NOON, "secret")
    file = folder / "bot" / "memory" / "2026-01-01.md"
    assert mode(file) == 0o600
    assert mode(file.parent) == 0o700


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_entries_at_once_are_all_there_and_whole(folder: Path) -> None:
    book = FileLogBook(folder)
    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(book.append, "bot", NOON, f"entry {number}")
    lines = content(folder, "2026-01-01").splitlines()
    assert sorted(lines) == sorted(f"- [12:00] entry {n}" for n in range(50))


def block(folder: Path, how: str) -> None:
    place = folder / "bot" / "memory"
    if how == "no folder":
        folder.write_text("in the way")
        return
    place.mkdir(parents=True)
    file = place / "2026-01-01.md"
    if how == "a link":
        file.symlink_to("/dev/null")
    elif how == "a pipe":
        os.mkfifo(file)  # to open it for writing would wait for a reader
    elif how == "full":
        with file.open("wb") as day:
            day.truncate(MOST_OF_DAY)


@pytest.mark.parametrize("how", ["no folder", "a link", "a pipe", "full"])
async def test_what_cannot_be_written_is_told(folder: Path, how: str) -> None:
    block(folder, how)
    with pytest.raises(ToolError, match="cannot be written"):
        await FileLogBook(folder).append("bot", NOON, "words")


async def test_an_entry_that_a_full_disk_cuts_off_is_told(folder: Path) -> None:
    book = FileLogBook(folder)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12, before[1]))
    try:
        with pytest.raises(ToolError, match="the disk is full"):
            await book.append("bot", NOON, "more words than there is room for")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_days_long_past_are_removed_and_nothing_else(folder: Path) -> None:
    book = FileLogBook(folder)
    for day in range(5):
        await book.append("bot", NOON + day * DAY, "x")
    await book.append("cat", NOON, "its own")
    place = folder / "bot" / "memory"
    (place / "2020-01-01.md.bak").write_text("somebody's")
    (place / "2020-01-02.md").symlink_to(folder)
    assert await book.prune("bot", NOON + 3 * DAY) == 3
    left = sorted(x.name for x in place.iterdir())
    kept = ["2020-01-01.md.bak", "2020-01-02.md", "2026-01-04.md", "2026-01-05.md"]
    assert left == kept
    assert content(folder, "2026-01-01", "cat")
    assert await book.prune("bot", NOON + 3 * DAY) == 0


async def test_there_is_nothing_to_remove_before_the_first_entry(folder: Path) -> None:
    assert await FileLogBook(folder).prune("bot", NOON) == 0


async def test_what_cannot_be_removed_is_told(folder: Path) -> None:
    block(folder, "no folder")
    with pytest.raises(ToolError, match="cannot be tidied"):
        await FileLogBook(folder).prune("bot", NOON)
