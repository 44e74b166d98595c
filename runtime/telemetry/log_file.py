"""The file of a log, which never grows beyond a bound, and how it is read again.

When it is full it becomes `<file>.1`, in place of the one before; where its folder does
not allow that, it grows on, for a line that is lost is worse. Other programs that
rotate it must copy and truncate it (logrotate's `copytruncate`), or end the process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Self

import msgspec

LINE_END = ord("\n")

PRIVATE = 0o600


class LogFile:
    """A file that lines are appended to.

    Args:
        path: where it is; its folder is made if it is missing.
        most: bytes above which a new one begins.

    Raises:
        OSError: it cannot be written.
    """

    def __init__(self, path: Path, most: int) -> None:
        self._path = path
        self._most = most
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            raise OSError(
                f"the log's file {path} is no plain file; without a file, lines go to"
                " standard error"
            )
        self._file = self._open()
        self._is_torn = is_cut_off(path)
        """Whether a full disk has cut the last line off: the next stands alone."""

    def write(self, text: str, /) -> int:
        """Append whole lines; a new file begins before them if the old one is full.

        Raises:
            OSError: it cannot be written.
        """
        body = text.encode("utf-8", "backslashreplace")
        size = self._file.tell()
        if size and size + len(body) > self._most:
            self._make_way()
        if self._is_torn:
            body = b"\n" + body
        while body:  # a disk that becomes full takes a part
            if written := self._file.write(body) or 0:
                self._is_torn = body[written - 1] != LINE_END
            body = body[written:]
        return len(text)

    def flush(self) -> None:
        """Do nothing: all has been given to the system."""

    def close(self) -> None:
        """Close it."""
        self._file.close()

    def _make_way(self) -> None:
        """Begin a new file; where the folder does not let us, the old one goes on."""
        with suppress(OSError):
            with suppress(FileNotFoundError):
                self._path.replace(older(self._path))
            new = self._open()
            self._file.close()
            self._file, self._is_torn = new, False

    def _open(self) -> BinaryIO:
        how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        file = os.fdopen(os.open(self._path, how, PRIVATE), "ab", buffering=0)
        file.seek(0, os.SEEK_END)
        return file


@contextmanager
def log_file(path: Path, most: int) -> Generator[LogFile]:
    """Have a file for a log during the block.

    Raises:
        OSError: it cannot be written.
    """
    file = LogFile(path, most)
    try:
        yield file
    finally:
        file.close()


def is_cut_off(path: Path) -> bool:
    """Whether the last line of a file has no end."""
    with suppress(OSError), path.open("rb") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            return file.read(1)[0] != LINE_END
    return False


def older(path: Path) -> Path:
    """Say where what was in a file before is."""
    return path.with_name(f"{path.name}.1")


def read_lines(path: Path) -> Iterator[str]:
    """Give all lines that are kept, the oldest first.

    Raises:
        OSError: there is no such file, or it cannot be read.
    """
    with suppress(FileNotFoundError):
        yield from lines_of(older(path))
    yield from lines_of(path)


def lines_of(path: Path) -> Iterator[str]:
    """Give the lines of one file."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            yield line.rstrip("\n")


LogFields = dict[str, str | int | float | bool | None]
"""Of one line: time, level, part, event, and what the event has."""

TEXT_LINE = re.compile(r"(\d{4}-\S+Z) ([A-Z]+) (\S+) (.*)")
FIELD = re.compile(r' ([A-Za-z_][A-Za-z0-9_]*)=("(?:[^"\\]|\\.)*"|[^" ]+)')
PRIORITY = re.compile(r"<[0-7]>")


def fields_of(line: str) -> LogFields | None:
    """Read a line as `logs` writes it, in either shape; None: it is none.

    Values of a line for eyes are texts.
    """
    line = PRIORITY.sub("", line, count=1) if line.startswith("<") else line
    if line.startswith("{"):
        try:
            return msgspec.json.decode(line, type=LogFields)
        except (msgspec.MsgspecError, UnicodeEncodeError):
            return None
    whole = TEXT_LINE.fullmatch(line)
    if whole is None:
        return None
    time, level, part, rest = whole.groups()
    found = [*FIELD.finditer(rest)]
    event = rest[: found[0].start()] if found else rest
    fields: LogFields = {"time": time, "level": level, "part": part, "event": event}
    for each in found:
        name, value = each.groups()
        fields[name] = unquoted(value)
    return fields


def unquoted(value: str) -> str:
    """Read a value of a line for eyes."""
    if not value.startswith('"'):
        return value
    try:
        return msgspec.json.decode(value, type=str)
    except msgspec.MsgspecError:
        return value


class Follower:
    """Gives the lines appended to a file from now on, also after it was begun anew.

    Use it in a `with` block, which closes the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""
        with suppress(FileNotFoundError):
            self._file = path.open("rb", buffering=0)
            self._file.seek(0, os.SEEK_END)

    def __enter__(self) -> Self:
        """Nothing is to be begun."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def read(self) -> list[str]:
        """Give what has been appended since; without waiting.

        Raises:
            OSError: it cannot be read.
        """
        found = self._rest + self._appended()
        *lines, self._rest = found.split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]

    def _appended(self) -> bytes:
        if self._file is None:
            try:
                self._file = self._path.open("rb", buffering=0)
            except FileNotFoundError:
                return b""
        held = os.fstat(self._file.fileno())
        if held.st_size < self._file.tell():  # emptied by another program
            self._file.seek(0)
        found = self._file.read()
        with suppress(FileNotFoundError):
            if not os.path.samestat(held, self._path.stat()):
                found += self._file.read()
                self._file.close()
                self._file = self._path.open("rb", buffering=0)
                found += self._file.read()
        return found
