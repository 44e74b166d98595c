"""What the operator wrote of the projects that people work on, one text for each.

A project is `<name>.md`, or `<name>/PROJECT.md`, in the settings' folder. Names come
from models, so none is ever made a path: the folder is listed, and what is there is
compared. Nothing is followed: a link is no project, whatever it leads to.
"""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import trio

from actors.ports import Jot
from actors.rules.prompt.skills import plain
from actors.rules.text.cleaning import clean, one_line
from actors.rules.text.similarity import did_you_mean, near_misses

PROJECT_FILE = "PROJECT.md"
ENDING = ".md"
LONGEST_NAME = 64
MOST_PROJECTS = 200
MOST_ENTRIES = 1_000
MOST_KEPT = 20
"""Texts that are kept, not to be read again with every message."""

MOST_BYTES = 65_536
"""As much as a file of a persona: both are sent with every message."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Why not to wait: a pipe with a file's name would be waited for, for ever.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Seen = tuple[int, int, int]
"""What changes with a file: inode, time of its last change in ns, bytes."""


class ProjectError(Exception):
    """A project cannot be had; the text says why, to people."""


class Projects:
    """The projects of one folder.

    Args:
        folder: the operator's; what changes there counts at once.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[str, tuple[Seen, str]] = {}

    async def find(self, name: str) -> Jot:
        """Give a project's own name, if its text can be read."""
        return await self._ask(name, is_text_wanted=False)

    async def read(self, name: str) -> Jot:
        """Give a project's text."""
        return await self._ask(name, is_text_wanted=True)

    async def _ask(self, name: str, *, is_text_wanted: bool) -> Jot:
        try:
            kept = dict(self._kept)
            found = await trio.to_thread.run_sync(look_up, self._folder, name, kept)
        except ProjectError as error:
            return Jot(why=str(error))
        own, seen, text = found
        self._kept.pop(own, None)  # so that those used last stand last
        self._kept[own] = (seen, text)
        while len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return Jot(text if is_text_wanted else own)


def names_in(folder: Path) -> tuple[str, ...]:
    """List the names of all projects; it blocks.

    Raises:
        ProjectError: the folder cannot be read.
    """
    try:
        place = os.open(folder, FOLDER)
        try:
            return tuple(listed(place))
        finally:
            os.close(place)
    except OSError as error:
        raise ProjectError(f"it cannot be read: {error.strerror}") from error


def look_up(
    folder: Path, name: str, kept: dict[str, tuple[Seen, str]]
) -> tuple[str, Seen, str]:
    """Find a project by its name, and read it unless it is kept; it blocks.

    Returns:
        Its own name, what was seen of its file, its text.

    Raises:
        ProjectError: there is none of that name, or it cannot be read.
    """
    try:
        with ExitStack() as opened:
            place = os.open(folder, FOLDER)
            opened.callback(os.close, place)
            own, way = chosen(name, listed(place))
            for part in way[:-1]:
                place = os.open(part, FOLDER | os.O_NOFOLLOW, dir_fd=place)
                opened.callback(os.close, place)
            file = os.open(way[-1], FILE, dir_fd=place)
            opened.callback(os.close, file)
            state = os.fstat(file)
            if not stat.S_ISREG(state.st_mode):
                raise ProjectError("this is no plain file")
            seen = (state.st_ino, state.st_mtime_ns, state.st_size)
            known = kept.get(own)
            if known is not None and known[0] == seen:
                return own, seen, known[1]
            return own, seen, text_of(file)
    except OSError as error:
        raise ProjectError(f"it cannot be read: {error.strerror}") from error


def listed(place: int) -> dict[str, tuple[str, ...]]:
    """Give the way to each project's file, by the project's name."""
    found: dict[str, tuple[str, ...]] = {}
    way: tuple[str, ...]
    with os.scandir(place) as entries:
        known = sorted(islice(entries, MOST_ENTRIES), key=_name)
    for entry in known:
        if entry.is_dir(follow_symlinks=False):
            name, way = entry.name, (entry.name, PROJECT_FILE)
            is_one = is_plain(place, way)
        else:
            name, way = entry.name.removesuffix(ENDING), (entry.name,)
            is_one = entry.name.endswith(ENDING) and entry.is_file(
                follow_symlinks=False
            )
        if is_one and is_name(name) and len(found) < MOST_PROJECTS:
            found.setdefault(name, way)
    return found


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


def is_plain(place: int, way: tuple[str, ...]) -> bool:
    """Tell whether a plain file stands in a folder."""
    try:
        state = os.stat("/".join(way), dir_fd=place, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(state.st_mode)


def is_name(name: str) -> bool:
    """Tell whether people can call a project so."""
    is_seen = name.isprintable() and name == name.strip() and name[:1] != "."
    return is_seen and 0 < len(name) <= LONGEST_NAME


def chosen(name: str, there: dict[str, tuple[str, ...]]) -> tuple[str, tuple[str, ...]]:
    """Choose the project that is meant: of that very name, or in other cases.

    Raises:
        ProjectError: there is none.
    """
    if name in there:
        return name, there[name]
    wanted = plain(name[: LONGEST_NAME + 1])
    for own, way in there.items():
        if plain(own) == wanted:
            return own, way
    near = did_you_mean(near_misses(one_line(name, LONGEST_NAME), there))
    raise ProjectError(f"there is no such project.{near}")


def text_of(file: int) -> str:
    """Read an open file.

    Raises:
        ProjectError: it is too long, empty, or no text.
        OSError: it cannot be read.
    """
    with os.fdopen(os.dup(file), "rb") as reading:
        content = reading.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ProjectError(f"its file is above {MOST_BYTES:,} bytes")
    try:
        text = clean(content.decode("utf-8-sig"), MOST_BYTES)
    except UnicodeDecodeError as error:
        raise ProjectError("its file is no text in UTF-8") from error
    if not text:
        raise ProjectError("its file is empty")
    return text


def is_folder(path: Path) -> bool:
    """Whether there is a folder; False also where nobody may look.

    Why not raise: one unreadable folder would hide all other mistakes in the settings.
    """
    try:
        return path.is_dir()
    except OSError:
        return False


def read_whole(file: int, most: int) -> bytes:
    """Read an open file up to one byte above the bound."""
    with os.fdopen(os.dup(file), "rb") as reading:
        return reading.read(most + 1)
