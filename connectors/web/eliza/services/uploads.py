"""Files that clients upload or agents send: a folder with a limit of bytes.

Called in threads, never on a loop. File names are made here; a client's name for a file
is only shown again, and never used on the disk.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import structs

from actors.messages.inbound import Attachment
from connectors.web.eliza.messages import ElizaMessage
from runtime.disk import flush_file, flush_folder
from runtime.fairness import most_of_one

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
"""Media types that may be uploaded, and their file endings. Source: the official
server."""

OTHER = "bin"
"""The ending of files that agents send, of types that nobody may upload."""

TYPES = {ending: kind for kind, ending in KINDS.items() if kind != "audio/mp3"} | {
    "webm": "video/webm",
    OTHER: "application/octet-stream",
}

HERE = "/media/uploads"
"""Path of all uploads on this server."""

# Chosen: as large as on chat platforms.
LARGEST_SHOWN = 10_485_760
"""Bytes of one file that an agent is shown; `[media]` has more limits."""

MOST_SHOWN = 4
"""Files whose bytes are read for one message."""

MOST_LINKED = 16
"""Files of one message that its agents are told of."""

NAME = re.compile(r"[0-9]{1,16}-[0-9a-f]{16}\.[a-z0-9]{2,4}")

PLACES = ("channels", "agents")

COARSE = 1.0
"""Seconds by which file times may be behind the clock."""


class FullError(Exception):
    """The folder is full."""


class UploadFolder:
    """The folder.

    Args:
        folder: its path; created when it is first needed.
        limit: bytes of all files together; one channel or agent has a share.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._lock = threading.Lock()
        self._used: int | None = None
        """Bytes; None: not counted yet."""

    def save(self, place: str, owner: str, kind: str, content: bytes, now: int) -> str:
        """Store a file; give its name once it is safe on the disk.

        Args:
            place: one of `PLACES`.
            owner: the id of the channel or agent; a UUID.
            kind: one of `KINDS`.
            now: milliseconds since 1970.

        Raises:
            FullError: the folder is full.
            OSError: the disk fails.
        """
        with self._lock:
            used = self._room_for(len(content), place, owner)
            name = f"{now}-{secrets.token_hex(8)}.{KINDS[kind]}"
            self._used = None
            path = self._folder / place / owner / name
            self._put(path, lambda half: half.write_bytes(content))
            self._used = used + len(content)
            return name

    def keep(self, place: str, owner: str, name: str, file: Path) -> None:
        """Store a file that an agent sends, under a given name.

        It is safe on the disk when this returns.

        Args:
            place: one of `PLACES`.
            owner: the id of the channel or agent; a UUID.
            name: as `name_of` makes it; an existing file is kept.

        Raises:
            FullError: the folder is full.
            OSError: the disk fails.
        """
        with self._lock:
            path = self._folder / place / owner / name
            if path.is_file():
                self._settle(path.parent)  # a crash may have prevented that
                return
            size = file.stat().st_size
            used = self._room_for(size, place, owner)
            self._used = None
            self._put(path, lambda half: shutil.copyfile(file, half))
            self._used = used + size

    def find(self, place: str, owner: str, name: str) -> Path | None:
        """Give the path of a file; None: it does not exist."""
        if place not in PLACES or not NAME.fullmatch(name):
            return None
        found = self._folder / place / owner / name
        return found if found.is_file() else None

    def tidy(self, channels: frozenset[str], listed: float, before: float) -> None:
        """Delete files of deleted channels, and old files.

        Args:
            listed: Unix seconds before they were listed: later folders may belong to
                channels that were created since.
            before: Unix seconds; older files are deleted.

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

    def _room_for(self, size: int, place: str, owner: str) -> int:
        """Give the bytes that are used, if there is room for some more."""
        used = self._count() if self._used is None else self._used
        share = most_of_one(self._limit)
        is_above = self._count(f"{place}/{owner}/*") + size > share
        if is_above or used + size > self._limit:
            text = f"uploads may take {self._limit} bytes in all, those of one channel"
            raise FullError(f"{text} {share}; delete channels")
        return used

    def _count(self, of: str = "*/*/*") -> int:
        files = self._folder.glob(of)
        return sum(each.stat().st_size for each in files)


def name_of(key: str, kind: str) -> str:
    """Make the name of a file that an agent sends: the same for the same delivery."""
    digest = hashlib.sha256(key.encode()).hexdigest()
    return f"0-{digest[:16]}.{KINDS.get(kind, OTHER)}"


class LinkedFile(msgspec.Struct, frozen=True):
    """A file that a message links, as clients and bridges of ElizaOS name it."""

    url: str = ""
    title: str = ""
    content_type: str = msgspec.field(default="", name="contentType")
    media_type: str = msgspec.field(default="", name="mediaType")


def links_of(message: ElizaMessage) -> list[LinkedFile]:
    """Give the files that a message links, each address once."""
    named: list[object] = []
    for fields in (message.metadata, message.raw):
        listed = fields.get("attachments")
        named += cast("list[object]", listed) if isinstance(listed, list) else ()
    found: dict[str, LinkedFile] = {}
    for each in named:
        asked = {"url": each} if isinstance(each, str) else each
        try:
            link = msgspec.convert(asked, LinkedFile)
        except msgspec.ValidationError:
            link = LinkedFile()
        found.setdefault(link.url, link)
    return list(found.values())[:MOST_LINKED]


def linked_files(folder: UploadFolder, message: ElizaMessage) -> list[Attachment]:
    """Give the files that a message links, for the agents that hear it.

    Uploads of its channel are read here, under a path or an address of any host name
    that this server may have. Other addresses are fetched by `[fetch]`'s rules when the
    agent's turn begins. A file that cannot be read has neither bytes nor an address, so
    that the agent is told of it.
    """
    found = [_linked(folder, message.channel, each) for each in links_of(message)]
    total = 0
    for place, each in enumerate(found):
        total += bool(each.content)
        if total > MOST_SHOWN and each.content:
            found[place] = structs.replace(each, content=b"")
    return found


def _linked(folder: UploadFolder, channel: str, link: LinkedFile) -> Attachment:
    path = urlsplit(link.url).path if link.url[:5] != "data:" else ""
    own = path.removeprefix(f"{HERE}/channels/{channel}/")
    kept = folder.find("channels", channel, own) if own != path else None
    media_type = TYPES[kept.suffix[1:]] if kept is not None else link.media_type
    kind = _kind_of(media_type or link.content_type)
    name = link.title or own.rpartition("/")[2] or kind
    empty = Attachment(kind, name, media_type)
    if kept is not None:
        is_long = kept.stat().st_size > LARGEST_SHOWN
        return empty if is_long else structs.replace(empty, content=kept.read_bytes())
    if link.url[:5] == "data:":
        return structs.replace(empty, content=_bytes_in(link.url))
    if link.url[:8].lower().startswith(("https://", "http://")):
        return structs.replace(empty, url=link.url)
    return empty


def _kind_of(media_type: str) -> Literal["image", "audio", "document"]:
    first = media_type.partition("/")[0].lower()
    if first == "image":
        return "image"
    return "audio" if first == "audio" else "document"


def _bytes_in(url: str) -> bytes:
    """Decode a `data:` address in base64; empty: it is another, or too long."""
    if len(url) > LARGEST_SHOWN * 4 // 3:
        return b""
    try:
        return base64.b64decode(url.partition(";base64,")[2], validate=True)
    except ValueError:
        return b""
