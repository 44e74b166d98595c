"""The folder that an agent's files live in, and out of which nothing leads.

Every path is walked name by name, each opened inside the folder that was opened
before it and never through a link, so there is no moment between looking and doing
in which a program could put a link in the way. Writes are whole or not at all.
Everything here blocks; `files.py` runs it beside the kernel's thread.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO

import msgspec

from connectors.config.tools import WorkspaceConfig

MAX_PATH = 1_024
"""Characters."""

MAX_NAME_BYTES = 255
"""What file systems take."""

MAX_DEPTH = 16
"""Folders inside each other."""

OWN = ".callboard-"
"""What files begin with that are only half written."""


class WorkspaceError(Exception):
    """It cannot be done in the workspace; the text tells the model why."""


def read_path(path: str) -> tuple[str, ...]:
    """Part a path into names; none at all is the workspace itself.

    Raises:
        WorkspaceError: it leads, or could lead, out of the workspace.
    """
    if len(path) > MAX_PATH:
        raise WorkspaceError(f"the path is above {MAX_PATH} characters")
    if path.startswith(("/", "~")):
        raise refused(path, "paths start in your own folder, as in notes/today.md")
    if "\\" in path:
        raise refused(path, "write / between folders")
    names = tuple(name for name in path.split("/") if name not in {"", "."})
    if len(names) > MAX_DEPTH:
        raise refused(path, f"it is above {MAX_DEPTH} folders deep")
    for name in names:
        why = why_bad_name(name)
        if why:
            raise refused(path, why)
    return names


def why_bad_name(name: str) -> str:
    """Say what is wrong with one name; empty: nothing."""
    if name == "..":
        return "it leads out of your folder"
    if not name.isprintable():
        return "it holds invisible characters"
    try:
        size = len(name.encode("utf-8"))
    except UnicodeEncodeError:
        return "it holds half a character"
    if size > MAX_NAME_BYTES:
        return f"a name in it is above {MAX_NAME_BYTES} bytes"
    if name.startswith(OWN):
        return f"names that begin with {OWN} are taken"
    return ""


def shown(path: str) -> str:
    """Write a path so that it can stand in a text."""
    text = path.encode("utf-8", "replace").decode("utf-8")
    return "".join(c if c.isprintable() else "?" for c in text)[:200]


def refused(path: str, why: str) -> WorkspaceError:
    """Make the error."""
    return WorkspaceError(f"{shown(path)!r} is refused: {why}")


FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Why O_NONBLOCK: opening a pipe would wait for its other end.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
OWNER_ONLY = 0o700

DEEPEST = MAX_DEPTH + 16
"""Folders inside each other that are counted; programs may make deeper ones."""


HALF = f"{OWN}half"
"""The file that is being written, in its folder."""

MOST_IN_FOLDER = 100_000
"""Names of one folder that are looked at."""


PIECE = 256 * 1024
"""Bytes of a long file that are read at once."""


Mark = tuple[int, int, int]
"""By which it is known whether a file has changed: its number on the disk, its bytes,
and when it was changed last (nanoseconds)."""


class Entry(msgspec.Struct, frozen=True):
    """Something in a folder."""

    names: tuple[str, ...]
    """From the folder that was listed."""

    kind: str
    """`file`, `folder`, `link` or `special`."""

    size: int
    mark: Mark = (0, 0, 0)


class SpaceLeft(msgspec.Struct, frozen=True):
    """How much more may be in a folder."""

    left: int
    """Bytes; never below 0."""

    fault: str
    """Why it is too full, for a model; empty: it is not."""


class Workspace:
    """One agent's folder.

    Args:
        root: the folder of all agents' folders; made when it is missing.
        agent: its name, which its folder has too.
        limits: how much may be in it.
    """

    def __init__(self, root: Path, agent: str, limits: WorkspaceConfig) -> None:
        self._root = root
        self._agent = agent
        self._limits = limits

    @property
    def path(self) -> Path:
        """Where it is, as a program is told; perhaps not made yet."""
        return self._root.absolute() / self._agent

    def read(self, names: Sequence[str]) -> bytes:
        """Read a whole file.

        Raises:
            WorkspaceError: there is none, it is no plain file, or it is too long.
        """
        path = "/".join(names)
        with translated(path), self._folder(names[:-1]) as folder:
            return self._read(folder, names[-1], path)

    def copy(self, names: Sequence[str], take: Callable[[bytes], object]) -> None:
        """Hand out a whole file piece by piece, however long it is.

        Raises:
            WorkspaceError: there is none, or it is no plain file.
        """
        path = "/".join(names)
        with (
            translated(path),
            self._folder(names[:-1]) as folder,
            plain_file(folder, names[-1], path) as file,
        ):
            while piece := file.read(PIECE):
                take(piece)

    def write(self, names: Sequence[str], text: bytes, *, append: bool) -> int:
        """Write a whole file, or add to its end; folders are made.

        Returns:
            The file's bytes afterwards.

        Raises:
            WorkspaceError: it is no plain file, or there is no room for it.
        """
        path = "/".join(names)
        with translated(path):
            used, count = self._used()
            with self._folder(names[:-1], is_made=count < self._limits.max_files) as at:
                found = look(at, names[-1], path)
                if found is not None and append:
                    text = self._read(at, names[-1], path) + text
                self._check_room(
                    len(text), used - size_of(found), count + (found is None)
                )
                replace(at, names[-1], text, found)
        return len(text)

    def marks(self, endings: tuple[str, ...]) -> dict[tuple[str, ...], Mark]:
        """Give what tells whether files have changed, of those with such names.

        Raises:
            WorkspaceError: the folder cannot be read.
        """
        with translated(""), self._folder(()) as folder:
            found = islice(walk(folder, (), DEEPEST), self._limits.max_files)
            return {
                each.names: each.mark
                for each in found
                if each.kind == "file" and each.names[-1].lower().endswith(endings)
            }

    def remove(self, names: Sequence[str], mark: Mark) -> None:
        """Remove a file that has not changed since.

        Raises:
            WorkspaceError: it cannot be removed.
        """
        path = "/".join(names)
        with translated(path), self._folder(names[:-1]) as folder:
            found = look(folder, names[-1], path)
            if found is not None and mark_of(found) == mark:
                os.unlink(names[-1], dir_fd=folder)

    def entries(self, names: Sequence[str], *, is_deep: bool, most: int) -> list[Entry]:
        """List a folder.

        Args:
            names: which; none is the workspace itself.
            is_deep: whether folders inside are listed too.
            most: entries after which it stops.

        Raises:
            WorkspaceError: there is no such folder.
        """
        found: list[Entry] = []
        with translated("/".join(names)), self._folder(names) as folder:
            for entry in walk(folder, (), DEEPEST if is_deep else 1):
                found.append(entry)
                if len(found) >= most:
                    break
        return found

    def room(self) -> SpaceLeft:
        """Count what is in the folder, which is made if it is missing.

        One that cannot be counted counts as too full.
        """
        limits = self._limits
        try:
            used, count = self._used()
        except OSError as error:
            return SpaceLeft(0, f"your folder cannot be looked into: {error.strerror}")
        fault = ""
        if used > limits.max_bytes:
            fault = f"your folder is full: {used} of {limits.max_bytes} bytes are used"
        elif count > limits.max_files:
            fault = f"your folder is full: more than {limits.max_files} files"
        return SpaceLeft(max(0, limits.max_bytes - used), fault)

    @contextmanager
    def _folder(self, names: Sequence[str], *, is_made: bool = False) -> Generator[int]:
        """Open a folder inside, name by name; give its descriptor."""
        self._root.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
        # The operator may have made this one a link; what is inside may not be.
        at = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for depth, name in enumerate((self._agent, *names)):
                if is_made or depth == 0:
                    with suppress(FileExistsError):
                        os.mkdir(name, OWNER_ONLY, dir_fd=at)
                inner = os.open(name, FOLDER, dir_fd=at)
                os.close(at)
                at = inner
            yield at
        finally:
            os.close(at)

    def _read(self, folder: int, name: str, path: str) -> bytes:
        with plain_file(folder, name, path) as file:
            content = file.read(self._limits.max_file_bytes + 1)
        if len(content) > self._limits.max_file_bytes:
            raise refused(path, f"it is above {self._limits.max_file_bytes} bytes")
        return content

    def _used(self) -> tuple[int, int]:
        """Count bytes and files; stops when there are too many."""
        size = count = 0
        with self._folder(()) as folder:
            for entry in walk(folder, (), DEEPEST):
                size += entry.size if entry.kind == "file" else 0
                count += 1
                if count > self._limits.max_files:
                    break
        return size, count

    def _check_room(self, size: int, others: int, count: int) -> None:
        limits = self._limits
        if size > limits.max_file_bytes:
            raise WorkspaceError(f"files may have {limits.max_file_bytes} bytes")
        if others + size > limits.max_bytes:
            raise WorkspaceError(
                f"your folder is full: {others} of {limits.max_bytes} bytes are used, "
                f"and this file needs {size}"
            )
        if count > limits.max_files:
            raise WorkspaceError(f"your folder is full: {limits.max_files} files")


def walk(folder: int, above: tuple[str, ...], depth: int) -> Iterator[Entry]:
    """Give what is in a folder, by name, each folder followed by what is in it."""
    for name, facts in inside(folder):
        names = (*above, name)
        yield Entry(names, kind_of(facts), facts.st_size, mark_of(facts))
        if stat.S_ISDIR(facts.st_mode) and depth > 1:
            # Gone meanwhile, or closed to us by a program of the agent's.
            with suppress(OSError), opened(name, folder) as inner:
                yield from walk(inner, names, depth - 1)


def inside(folder: int) -> list[tuple[str, os.stat_result]]:
    """Give the names in one folder, sorted, with what they stand for."""
    found: list[tuple[str, os.stat_result]] = []
    with os.scandir(folder) as scan:
        for entry in islice(scan, MOST_IN_FOLDER):
            if entry.name == HALF:
                continue
            with suppress(FileNotFoundError):  # gone meanwhile
                found.append((entry.name, entry.stat(follow_symlinks=False)))
    return sorted(found, key=itemgetter(0))


@contextmanager
def opened(name: str, folder: int) -> Generator[int]:
    """Open a folder inside another."""
    inner = os.open(name, FOLDER, dir_fd=folder)
    try:
        yield inner
    finally:
        os.close(inner)


@contextmanager
def plain_file(folder: int, name: str, path: str) -> Generator[BinaryIO]:
    """Open a plain file that has this one name.

    Raises:
        WorkspaceError: there is none, or it is something else.
    """
    # Looked at before it is opened, because opening a device can do something.
    if look(folder, name, path) is None:
        raise WorkspaceError(f"there is no file {path}")
    with open(os.open(name, READ, dir_fd=folder), "rb") as file:  # noqa: PTH123
        found = os.fstat(file.fileno())
        check_plain(found, path)
        if found.st_nlink > 1:
            raise refused(path, "the file has a second name, perhaps outside")
        yield file


def look(folder: int, name: str, path: str) -> os.stat_result | None:
    """Look at a plain file without opening it; None if there is nothing.

    Raises:
        WorkspaceError: it is something else.
    """
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    check_plain(found, path)
    return found


def check_plain(found: os.stat_result, path: str) -> None:
    """Refuse whatever is no plain file."""
    kind = kind_of(found)
    if kind != "file":
        what = {"link": "a link, which is not followed", "folder": "a folder"}
        raise refused(path, f"it is {what.get(kind, 'a special file')}")


def kind_of(found: os.stat_result) -> str:
    """Name a kind of file."""
    mode = found.st_mode
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "special"


def mark_of(found: os.stat_result) -> Mark:
    """Give what tells whether a file has changed."""
    return found.st_ino, found.st_size, found.st_mtime_ns


def size_of(found: os.stat_result | None) -> int:
    """Give a file's bytes; nothing has none."""
    return 0 if found is None else found.st_size


def replace(
    folder: int, name: str, content: bytes, found: os.stat_result | None
) -> None:
    """Put a whole file in a name's place; a reader sees the old one or the new one."""
    # One writer at a time: what stands there was left by one that was killed.
    with suppress(FileNotFoundError):
        os.unlink(HALF, dir_fd=folder)
    try:
        with open(os.open(HALF, CREATE, 0o600, dir_fd=folder), "wb") as file:  # noqa: PTH123
            file.write(content)
            if found is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(found.st_mode) & 0o777)
            file.flush()
            os.fsync(file.fileno())
        os.rename(HALF, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:  # whatever ends it, no half file stays
        with suppress(FileNotFoundError):
            os.unlink(HALF, dir_fd=folder)
        raise
    os.fsync(folder)


@contextmanager
def translated(path: str) -> Generator[None]:
    """Tell what the system refuses in words for a model, without places outside."""
    try:
        yield
    except FileNotFoundError as error:
        raise WorkspaceError(f"there is no folder for {path!r}") from error
    except NotADirectoryError as error:
        raise refused(path, "a part of it is a file or a link, no folder") from error
    except OSError as error:
        raise WorkspaceError(f"{path!r} failed: {error.strerror}") from error
