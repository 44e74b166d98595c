"""The operator's files that agents read or extend: projects, bugs, daily logs.

A project is `<name>.md`, or `<name>/PROJECT.md`, in the settings' folder: one text for
each that people work on. Names come from models, so none is ever made a path: the
folder is listed, and what is there is compared. Nothing is followed: a link is no
project, whatever it leads to.

What agents add is written at once and not with the answer's commit: a file is in no
transaction. So the same thing twice is one line, and a turn that is tried again changes
nothing.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import ExitStack, contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from actors.errors import ToolError
from actors.ports import Jot
from actors.rules.prompt.skills import plain
from actors.rules.text.cleaning import clean, one_line
from actors.rules.text.similarity import did_you_mean, near_misses
from runtime.config.loader import Complaint

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from connectors.config.app import AppConfig
    from connectors.skills.lessons import Lessons


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


OWNER_ONLY = 0o700
LONGEST_REPORT = 2_000
"""Characters; a longer one is cut, and says so."""

MOST_OF_BUGS = 1_048_576
"""Bytes of the file; it is read with each report, and somebody is to read it."""

STAMP = "- YYYY-MM-DD HH:MM UTC "
"""The form of what stands before a report, and is not compared."""

APPEND = (
    os.O_RDWR
    | os.O_CREAT
    | os.O_APPEND
    | os.O_NOFOLLOW
    | os.O_NONBLOCK  # a pipe with the file's name would be waited for, for ever
    | os.O_CLOEXEC
)


class FileNotebook:
    """Keeps bugs, skills' lessons and projects as files.

    Args:
        bugs: the file of reports; made, with its folder, by the first one.
        lessons: writes to skills; None: there are none.
        projects: reads projects; None: there are none.
    """

    def __init__(
        self, bugs: Path, lessons: Lessons | None, projects: Projects | None
    ) -> None:
        self._bugs = bugs
        self._lessons = lessons
        self._projects = projects
        self._writing = trio.Lock()

    async def improve_skill(
        self, agent: str, skill: str, lesson: str, *, is_owner: bool
    ) -> Jot:
        """Add a lesson to a skill; see the port."""
        if self._lessons is None:
            return Jot(why="there are no skills here")
        return await self._lessons.add(agent, skill, lesson, is_owner=is_owner)

    async def report_bug(self, agent: str, at: float, text: str) -> Jot:
        """Add a report to the file; see the port."""
        report = one_line(text, LONGEST_REPORT)
        if not report:
            return Jot(why="there is nothing to report in it")
        moment = datetime.fromtimestamp(at, UTC)
        stamp = f"- {moment:%Y-%m-%d %H:%M} UTC "
        line = f"{agent}: {report}"
        async with self._writing:
            try:
                why = await trio.to_thread.run_sync(add_report, self._bugs, stamp, line)
            except OSError as error:
                why = f"the file of bugs cannot be written: {error.strerror}"
        return Jot(why=why) if why else Jot(report)

    async def find_project(self, name: str) -> Jot:
        """Give a project's own name; see the port."""
        return await (self._projects.find(name) if self._projects else no_projects())

    async def read_project(self, name: str) -> Jot:
        """Give a project's text; see the port."""
        return await (self._projects.read(name) if self._projects else no_projects())


async def no_projects() -> Jot:
    """Say that there are none."""
    await trio.lowlevel.checkpoint()
    return Jot(why="there are no projects here")


def make_notebook(app: AppConfig, lessons: Lessons | None) -> FileNotebook:
    """Make the notebook that the settings describe."""
    folder = app.projects.folder
    projects = None if folder is None else Projects(folder)
    return FileNotebook(bug_file_of(app), lessons, projects)


def bug_file_of(app: AppConfig) -> Path:
    """Say where bugs are reported."""
    named = app.notebook.bug_file
    return Path(named) if named else Path(app.store.path).parent / "bugs.md"


def check_notebook(app: AppConfig) -> Iterator[Complaint]:
    """Check that the files can be what they are for."""
    bugs, database = bug_file_of(app), Path(app.store.path)
    if bugs.resolve() == database.resolve():
        text = f"{bugs} is the database"
        yield Complaint(("notebook", "bug_file"), text, 'for example "var/bugs.md"')
    elif is_folder(bugs):
        text = f"{bugs} is a folder"
        yield Complaint(("notebook", "bug_file"), text, 'for example "var/bugs.md"')
    folder = app.projects.folder
    if folder is not None and not is_folder(folder):
        hint = "the path starts at the folder of the settings file"
        yield Complaint(("projects", "folder"), f"there is no folder {folder}", hint)
    if folder is not None and not app.memory.enabled:
        text = "nobody can remember who works on which project"
        hint = "set enabled = true under [memory]"
        yield Complaint(("projects", "folder"), text, hint, is_warning=True)


@contextmanager
def appending(file: Path) -> Generator[int]:
    """Open a file to add to its end; it and its folder are made if they are missing.

    Raises:
        OSError: the disk says no, or it is no plain file.
    """
    file.parent.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
    handle = os.open(file, APPEND, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file")
        yield handle
    finally:
        os.close(handle)


def add(handle: int, new: bytes) -> None:
    """Write to the end of an open file, and wait for the disk.

    Raises:
        OSError: the disk says no, or took only a part.
    """
    if os.write(handle, new) != len(new):
        raise OSError(errno.ENOSPC, "the disk is full")
    os.fsync(handle)


def add_report(file: Path, stamp: str, line: str) -> str:
    """Add a line to the file, unless it stands there already; it blocks.

    Returns:
        Why it is not there; empty: it is.

    Raises:
        OSError: the disk says no.
    """
    with appending(file) as handle:
        there = read_whole(handle, MOST_OF_BUGS)
        known = (each[len(STAMP) :] for each in there.split(b"\n"))
        entry = line.encode("utf-8", "replace")
        if entry in known:
            return ""
        # A line that a full disk has cut off is ended first.
        before = b"" if there[-1:] in (b"", b"\n") else b"\n"
        new = before + stamp.encode() + entry + b"\n"
        if len(there) + len(new) > MOST_OF_BUGS:
            return "the file of bugs is full: somebody has to read it, and empty it"
        add(handle, new)
    return ""


DAY = re.compile(r"\d{4}-\d\d-\d\d\.md", re.ASCII)
MOST_AT_ONCE = 1_000
"""Files that are removed in one go; the others wait for the next."""

MOST_OF_DAY = 16 * 1024 * 1024
"""Bytes of one day's file; what would be more is refused."""


class FileLogBook:
    """Keeps the files of all agents.

    Args:
        folder: where they lie; made when the first entry comes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def append(self, agent: str, at: float, text: str) -> None:
        """Add an entry to an agent's file of that day; see the port."""
        moment = datetime.fromtimestamp(at, UTC)
        entry = f"- [{moment:%H:%M}] {' '.join(text.split())}\n"
        file = self._folder / agent / "memory" / f"{moment:%Y-%m-%d}.md"
        try:
            await trio.to_thread.run_sync(partial(add_line, file, entry))
        except OSError as error:
            raise ToolError(f"{file} cannot be written: {error}") from error

    async def prune(self, agent: str, before: float) -> int:
        """Remove the files of days long past; see the port."""
        folder = self._folder / agent / "memory"
        last = datetime.fromtimestamp(before, UTC).date() - timedelta(days=1)
        try:
            return await trio.to_thread.run_sync(remove_until, folder, last)
        except OSError as error:
            raise ToolError(f"{folder} cannot be tidied: {error}") from error


def remove_until(folder: Path, last: date) -> int:
    """Remove the files of all days up to one; it blocks.

    Raises:
        OSError: the disk says no.
    """
    try:
        with os.scandir(folder) as found:
            names = [x.name for x in found if x.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return 0
    old = sorted(x for x in names if DAY.fullmatch(x) and x[:-3] <= last.isoformat())
    for name in old[:MOST_AT_ONCE]:
        (folder / name).unlink(missing_ok=True)
    return len(old[:MOST_AT_ONCE])


def add_line(file: Path, entry: str) -> None:
    """Add a line to a file; it blocks.

    Raises:
        OSError: the disk says no, or the file is as long as it may be.
    """
    with appending(file) as handle:
        if os.fstat(handle).st_size + len(entry.encode()) > MOST_OF_DAY:
            raise OSError(f"the day's file has its {MOST_OF_DAY} bytes")
        add(handle, entry.encode())
