"""Proves that folders of programs' conversations go when they are old, not before."""

from __future__ import annotations

import os
from pathlib import Path

from connectors.models.program import (
    DAY,
    LEAVING,
    LOOK_EVERY,
    Folders,
    remove_unused,
    touch,
)

NOW = 1_700_000_000.0


def home(folder: Path, name: str, days: float) -> Path:
    """Make a conversation's folder that was last used so many days ago."""
    path = folder / "anna" / name
    (path / "inbox" / "deep").mkdir(parents=True)
    (path / "session.json").write_text("{}")
    os.utime(path, (NOW - days * DAY, NOW - days * DAY))
    return path


async def test_what_is_old_goes_and_is_counted(tmp_path: Path) -> None:
    old, young = home(tmp_path, "old", 91), home(tmp_path, "young", 89)
    counted: list[int] = []
    clock = [NOW]
    folders = Folders(tmp_path, 90 * DAY, lambda: clock[0], counted.append)
    await folders.tidy()
    assert (old.exists(), young.exists(), counted) == (False, True, [1])
    clock[0] += 2 * DAY
    await folders.tidy()
    assert (young.exists(), counted) == (False, [1, 1])
    again = home(tmp_path, "again", 200)
    clock[0] += LOOK_EVERY / 2
    await folders.tidy()
    assert again.exists()  # not looked at each time


def test_what_is_used_stays(tmp_path: Path) -> None:
    used = home(tmp_path, "used", 500)
    touch(used)
    assert remove_unused(tmp_path, NOW) == 0
    assert used.exists()


def test_what_was_begun_is_gone_on_with_and_links_are_left_alone(
    tmp_path: Path,
) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    work = tmp_path / "cli"
    half = home(work, f"half{LEAVING}", 0)
    (work / "anna" / "link").symlink_to(other)
    (work / "bert").symlink_to(tmp_path)
    inside = home(work, "inside", 400)
    (inside / "inbox" / "out").symlink_to(other)
    assert remove_unused(work, NOW) == 2
    assert not half.exists()
    assert not inside.exists()
    assert other.exists()
    assert remove_unused(tmp_path / "none", NOW) == 0
