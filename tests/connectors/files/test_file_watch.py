"""Proves that a change of a file is noticed however it is made, and nothing else is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from connectors.files.personas import look, wait_changed

OFTEN = 0.005
PATIENCE = 30.0


def write(file: Path) -> None:
    file.write_text("other words", encoding="utf-8")


def replace(file: Path) -> None:
    """Put another file of the same size and time in its place."""
    before = file.stat()
    beside = file.with_name("beside")
    beside.write_text("new", encoding="utf-8")
    os.utime(beside, ns=(before.st_atime_ns, before.st_mtime_ns))
    beside.rename(file)


def remove(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize("change", [write, replace, remove])
async def test_a_change_is_noticed(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    files = [tmp_path / "one", tmp_path / "two"]
    for file in files:
        file.write_text("old", encoding="utf-8")
    known = look(files)
    change(files[1])
    with trio.fail_after(PATIENCE):
        seen = await wait_changed(known, every=OFTEN)
    assert seen == look(files)
    assert seen[files[0]] == known[files[0]]
    assert seen[files[1]] != known[files[1]]


async def test_a_link_that_points_elsewhere_now_is_a_change(tmp_path: Path) -> None:
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "key").write_text(name, encoding="utf-8")
    current = tmp_path / "current"
    current.symlink_to("first")
    known = look([current / "key"])
    swapped = tmp_path / "swapped"
    swapped.symlink_to("second")
    swapped.rename(current)
    with trio.fail_after(PATIENCE):
        assert await wait_changed(known, every=OFTEN) != known


async def test_a_file_that_appears_is_a_change(tmp_path: Path) -> None:
    file = tmp_path / "one"
    known = look([file])
    assert known == {file: None}
    write(file)
    with trio.fail_after(PATIENCE):
        assert (await wait_changed(known, every=OFTEN))[file] is not None


async def test_without_a_change_it_returns_in_time(tmp_path: Path) -> None:
    file = tmp_path / "one"
    write(file)
    known = look([file])
    with trio.fail_after(PATIENCE):
        assert await wait_changed(known, within=0.02, every=OFTEN) == known
