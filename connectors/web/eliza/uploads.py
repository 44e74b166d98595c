"""Files that clients upload: kept in a folder, bounded in size and in number of bytes.

Called in threads, never on a loop. A file's name is made here; what a client calls it
is told back and never used.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import shutil
import threading
from typing import TYPE_CHECKING

from runtime.sqlite_pages import flush_file, flush_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KINDS = {
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/wav": "wav",
    "audio/ogg": "ogg",
    "audio/webm": "webm",
    "audio/mp4": "m4a",
    "audio/aac": "aac",
    "audio/flac": "flac",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/gif": "gif",
    "image/webp": "webp",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "application/pdf": "pdf",
    "text/plain": "txt",
}
"""What may be uploaded, and how its file's name ends. Source: the official server."""

OTHER = "bin"
"""How the name of a file ends that agents send, and nobody may upload."""

TYPES = {ending: kind for kind, ending in KINDS.items() if kind != "audio/mp3"} | {
    "webm": "video/webm",
    OTHER: "application/octet-stream",
}

NAME = re.compile(r"[0-9]{1,16}-[0-9a-f]{16}\.[a-z0-9]{2,4}")

PLACES = ("channels", "agents")

COARSE = 1.0
"""Seconds by which the times of files may be behind the clock."""


class FullError(Exception):
    """No more bytes may be kept."""


class Uploads:
    """The folder.

    Args:
        folder: where it is; made when it is first needed.
        limit: bytes of all files together.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._lock = threading.Lock()
        self._used: int | None = None
        """Bytes; None: not counted yet."""

    def save(self, place: str, owner: str, kind: str, content: bytes, now: int) -> str:
        """Keep a file; give its name when it is safe on the disk.

        Args:
            place: one of `PLACES`.
            owner: the id of the channel or agent; a UUID.
            kind: one of `KINDS`.
            content: all of it.
            now: milliseconds since 1970.

        Raises:
            FullError: there is no room for it.
            OSError: the disk fails.
        """
        with self._lock:
            used = self._count() if self._used is None else self._used
            if used + len(content) > self._limit:
                text = f"uploads may take {self._limit} bytes in all; delete channels"
                raise FullError(text)
            name = f"{now}-{secrets.token_hex(8)}.{KINDS[kind]}"
            self._used = None
            path = self._folder / place / owner / name
            self._put(path, lambda half: half.write_bytes(content))
            self._used = used + len(content)
            return name

    def keep(self, place: str, owner: str, name: str, file: Path) -> None:
        """Keep a file that an agent sends, under a name of its own.

        It is safe on the disk when this returns: that it was sent is put on record.

        Args:
            place: one of `PLACES`.
            owner: the id of the channel or agent; a UUID.
            name: as `name_of` makes it; what has it already is kept.
            file: where its bytes lie.

        Raises:
            FullError: there is no room for it.
            OSError: the disk fails.
        """
        with self._lock:
            path = self._folder / place / owner / name
            if path.is_file():
                self._settle(path.parent)  # a crash may have cut that off
                return
            used = self._count() if self._used is None else self._used
            size = file.stat().st_size
            if used + size > self._limit:
                raise FullError(f"uploads may take {self._limit} bytes in all")
            self._used = None
            self._put(path, lambda half: shutil.copyfile(file, half))
            self._used = used + size

    def find(self, place: str, owner: str, name: str) -> Path | None:
        """Give a file; None: there is none."""
        if place not in PLACES or not NAME.fullmatch(name):
            return None
        found = self._folder / place / owner / name
        return found if found.is_file() else None

    def tidy(self, channels: frozenset[str], listed: float, before: float) -> None:
        """Delete the files of channels that are gone, and what is too old.

        Args:
            channels: ids of those that there are.
            listed: Unix seconds of before they were listed: what came later may be of
                a channel that was made since.
            before: Unix seconds; what is older goes.

        Raises:
            OSError: the disk fails.
        """
        with self._lock:
            for folder in self._folder.glob("channels/*"):
                is_gone = folder.name not in channels
                if is_gone and folder.stat().st_mtime < listed - COARSE:
                    shutil.rmtree(folder)
            for file in self._folder.glob("*/*/*"):
                if file.stat().st_mtime < before:
                    file.unlink()
            self._used = self._count()

    def _put(self, path: Path, fill: Callable[[Path], object]) -> None:
        """Write a file, all of it or nothing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_name(f"{path.name}.part")
        fill(half)
        flush_file(half)
        half.replace(path)
        self._settle(path.parent)

    def _settle(self, folder: Path) -> None:
        for each in (folder, folder.parent, self._folder):
            flush_folder(each)

    def _count(self) -> int:
        files = self._folder.glob("*/*/*")
        return sum(each.stat().st_size for each in files)


def name_of(key: str, kind: str) -> str:
    """Name a file that an agent sends: the same for the same message.

    Args:
        key: tells the message from all others.
        kind: its media type.
    """
    digest = hashlib.sha256(key.encode()).hexdigest()
    return f"0-{digest[:16]}.{KINDS.get(kind, OTHER)}"
