"""The bytes of files that agents send, kept apart until they have gone out.

Each is copied whole at the moment it is sent, under the SHA-256 of its bytes, so that
no later change of an agent's folder changes what people get, and the same bytes lie
there once, as whoever sent them first. No agent has all the room. A row of the outbox
names the digest. What no row that is still to go out names is swept away after a while:
what was delivered, and what a crash left behind between the copy and the commit.

Blocking work is done beside the kernel's thread. All of it is the owner's alone.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
import trio

from actors.errors import DeliveryRefusedError
from actors.journal.attachments import size_of
from actors.messages.deliveries import Delivery
from actors.messages.inbound import SentFile
from connectors.config.app import AppConfig
from connectors.config.tools import FilesConfig
from connectors.fetch.messages import LOOKED_AT
from runtime.clock import Clock
from runtime.fairness import most_of_one
from runtime.telemetry.logs import EventLog

HALF = ".half-"
"""What a file begins with that is only half written."""

OWNER_ONLY = 0o700

PEOPLE = "+page"
"""Owner of the files that people send on the page; no agent has such a name."""

LOG = EventLog("files")


class BlobError(Exception):
    """It cannot be kept; the text says why, and names no place."""


def copy_failed(error: OSError) -> BlobError:
    """Say that the disk did not take a copy, also to operators."""
    LOG.warning("file not copied", why=str(error))
    return BlobError(f"the copy failed: {error.strerror}")


class Kept(msgspec.Struct, frozen=True):
    """What was kept."""

    digest: str
    size: int
    head: bytes
    """Its beginning, by which it is told what it is."""


def folder_of(config: AppConfig) -> Path:
    """Say where they lie: as the settings have it, else beside the database."""
    if config.files.path:
        return Path(config.files.path)
    database = Path(config.store.path)
    # A path without a name is no database; who opens it says so.
    return database.with_suffix(".files") if database.name else database / ".files"


class BlobFolder:
    """The folder; implements `actors.ports.Blobs`.

    Args:
        folder: made when something is kept first.
        config: how much may be in it.
    """

    def __init__(self, folder: Path, config: FilesConfig, clock: Clock) -> None:
        self._folder = folder
        self._config = config
        self._clock = clock
        # One at a time: each counts what the others have written, and nothing is
        # swept that somebody has just found to be there.
        self._lock = trio.Lock()

    async def keep(
        self, fill: Callable[[Callable[[bytes], object]], object], owner: str = ""
    ) -> Kept:
        """Keep what is handed in piece by piece.

        Args:
            fill: is given what takes the pieces; runs beside the kernel's thread.
            owner: who sends it, and has a share of the room: an agent, or `PEOPLE`;
                nobody in particular if empty.

        Returns:
            When it is safe on the disk.

        Raises:
            BlobError: there is no room for it, or the disk does not take it.
        """
        async with self._lock:
            return await trio.to_thread.run_sync(self._keep, fill, owner)

    async def sweep(self, needed: Collection[str], before: float) -> int:
        """Remove what nobody needs any more; see the port."""
        async with self._lock:
            work = partial(self._sweep, frozenset(needed), before)
            return await trio.to_thread.run_sync(work)

    def find(self, file: SentFile) -> Path:
        """Give where a file's bytes lie.

        Raises:
            DeliveryRefusedError: they are not there (any more).
        """
        path = self._place(file.digest)
        try:
            is_whole = path.stat().st_size == file.size
        except OSError:
            is_whole = False
        if not is_whole:
            raise DeliveryRefusedError("its bytes are not kept any more")
        return path

    def _place(self, digest: str, owner: str = "") -> Path:
        """Say where it lies, or would lie if an owner kept it."""
        if len(digest) != 64 or not digest.isalnum():
            raise DeliveryRefusedError("it has no bytes")
        folder = self._folder / digest[:2]
        return next(folder.glob(f"{digest}*"), folder / f"{digest}.{owner}")

    # --- beside the kernel's thread -------------------------------------------------

    def _keep(
        self, fill: Callable[[Callable[[bytes], object]], object], owner: str = ""
    ) -> Kept:
        try:
            self._folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
            room = self._room_of(owner)
            half, path = tempfile.mkstemp(prefix=HALF, dir=self._folder)
        except OSError as error:
            raise copy_failed(error) from error
        try:
            with open(half, "wb") as file:  # noqa: PTH123 - made by mkstemp
                sink = Sink(file.write, self._config.max_file_bytes, room)
                fill(sink.take)
                file.flush()
                os.fsync(file.fileno())
            kept = Kept(sink.digest, sink.size, sink.head)
            self._put(Path(path), self._place(kept.digest, owner))
        except OSError as error:
            raise copy_failed(error) from error
        finally:
            with suppress(FileNotFoundError):
                Path(path).unlink()
        return kept

    def _room_of(self, owner: str) -> int:
        """Give the bytes that are free in the folder for an owner; perhaps none."""
        used = own = 0
        for path, size, _ in self._all():
            used += size
            own += size if path.name.partition(".")[2] == owner else 0
        free = self._config.max_bytes - used
        share = most_of_one(self._config.max_bytes) - own
        return min(free, share) if owner else free

    def _put(self, half: Path, place: Path) -> None:
        place.parent.mkdir(mode=OWNER_ONLY, exist_ok=True)
        now = self._clock.wall()
        os.utime(half, (now, now))
        half.replace(place)  # whatever lies there has the same bytes, or is damaged
        for folder in (place.parent, self._folder):
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _sweep(self, needed: frozenset[str], before: float) -> int:
        count = 0
        for path, _, kept_at in self._all():
            is_half = path.name.startswith(HALF)  # none is being written now
            is_old = kept_at < before and path.name.partition(".")[0] not in needed
            if is_half or is_old:
                with suppress(FileNotFoundError):
                    path.unlink()
                    count += 1
        return count

    def _all(self) -> Iterator[tuple[Path, int, float]]:
        """Give each file, its bytes, and when it was kept last (Unix seconds)."""
        folders = [self._folder]
        with suppress(FileNotFoundError):
            folders += [x for x in self._folder.iterdir() if is_ours(x)]
        for folder in folders:
            with suppress(FileNotFoundError), os.scandir(folder) as scan:
                for entry in scan:
                    if entry.is_file(follow_symlinks=False):
                        found = entry.stat(follow_symlinks=False)
                        yield Path(entry.path), found.st_size, found.st_mtime


class Sink:
    """Takes the pieces of one file: counts them, and reckons their digest.

    Args:
        write: where they go.
        most: bytes of a file.
        room: bytes that are free in the folder.
    """

    def __init__(self, write: Callable[[bytes], object], most: int, room: int) -> None:
        self._write = write
        self._most = most
        self._room = room
        self._hash = hashlib.sha256()
        self.size = 0
        self.head = b""

    @property
    def digest(self) -> str:
        """Give the digest of what was taken."""
        return self._hash.hexdigest()

    def take(self, piece: bytes) -> None:
        """Take the next piece.

        Raises:
            BlobError: it is one too many, or the disk does not take it.
        """
        self.size += len(piece)
        if self.size > self._most:
            raise BlobError(f"it is above {self._most} bytes, the most that is sent")
        if self.size > self._room:
            raise BlobError(
                "there is no room for it: too many files wait to be sent; try later"
            )
        self.head = (self.head + piece[:LOOKED_AT])[:LOOKED_AT]
        self._hash.update(piece)
        try:
            self._write(piece)
        except OSError as error:
            # Why here: who hands the piece in would take it for a fault of its own.
            raise copy_failed(error) from error


def is_ours(folder: Path) -> bool:
    """Whether a folder is one that files are put into here."""
    return len(folder.name) == 2 and folder.is_dir() and not folder.is_symlink()


# Chosen: 2 Mbit/s, a slow line's way up.
SLOWEST = 250_000
"""Bytes of a file in a second."""

LONGEST = 1_200.0
"""Seconds for one file, whatever its size: below a courier's deadline."""


def seconds_for(size: int, timeout: float) -> float:
    """Say how long it may take to hand a file to a platform.

    Args:
        size: of the file, in bytes.
        timeout: seconds that any request may take.
    """
    return min(timeout + size / SLOWEST, max(LONGEST, timeout))


def with_path(delivery: Delivery, blobs: BlobFolder | None) -> Delivery:
    """Say in words where a delivery's file lies, for who sits at this machine.

    Raises:
        DeliveryRefusedError: its bytes are gone.
    """
    file = delivery.file
    if file is None:
        return delivery
    path = bytes_of(blobs, file).absolute()
    told = f"[{file.name}, {size_of(file.size)}: {path}]"
    text = f"{delivery.text}\n{told}".strip()
    return msgspec.structs.replace(delivery, text=text, file=None)


def bytes_of(blobs: BlobFolder | None, file: SentFile) -> Path:
    """Give where a file's bytes lie; raises as `BlobFolder.find`."""
    if blobs is None:
        raise DeliveryRefusedError("no files are kept here")
    return blobs.find(file)
