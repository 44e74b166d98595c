"""One file that holds all that a company keeps on disk, each part with its checksum.

A compressed tar archive, which `tar` can read, too. Its last member, `manifest.json`,
names every file with its size and SHA-256; what is not in it, or differs, is damage.
Blocks; knows nothing of settings or databases.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

import msgspec

MANIFEST = "manifest.json"
PRIVATE = 0o600
PIECE = 1 << 20
IN_MEMORY = 16 << 20
"""Bytes of a file that are held in memory before a temporary one takes them."""

Advance = Callable[[int], object]
"""Told how many bytes are done."""


class ArchiveError(Exception):
    """It is no archive of ours, or damaged; the text says which and where."""


class ArchivePart(msgspec.Struct, frozen=True):
    """A file or folder, and what it is called in the archive."""

    name: str
    path: Path


class ArchivedFile(msgspec.Struct, frozen=True):
    """One file in an archive."""

    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an archive holds."""

    release: str
    made_at: float
    """Unix seconds."""

    parts: dict[str, str]
    """By name, where it was."""

    files: dict[str, ArchivedFile]
    left_out: tuple[str, ...] = ()
    """What could not be read: gone meanwhile, a socket, not permitted."""

    @property
    def bytes(self) -> int:
        """How large all its files are."""
        return sum(each.size for each in self.files.values())


class FoundFile(msgspec.Struct, frozen=True):
    """A file that is to be archived, and its name there."""

    name: str
    path: Path
    size: int


def files_in(parts: Iterable[ArchivePart]) -> list[FoundFile]:
    """List all files of some parts; a part that is not there has none.

    Links, and folders that cannot be read, are among them, so that they are told.
    """
    found: list[FoundFile] = []
    for part in parts:
        for path in sorted(paths_of(part.path)):
            below = path.relative_to(part.path).as_posix()
            name = part.name if below == "." else f"{part.name}/{below}"
            try:
                size = path.lstat().st_size
            except FileNotFoundError:
                continue
            found.append(FoundFile(name, path, size))
    return found


def paths_of(part: Path) -> set[Path]:
    """Give all files below a folder, and all that hides some; of a file, itself."""
    if not part.is_dir():
        return {part}
    closed: list[OSError] = []
    found: set[Path] = set()
    for at, folders, names in os.walk(part, onerror=closed.append):
        found |= {Path(at, each) for each in names}
        found |= {Path(at, x) for x in folders if Path(at, x).is_symlink()}
    return found | {Path(each.filename) for each in closed}


def write_archive(
    target: Path, parts: Iterable[ArchivePart], about: Manifest, advance: Advance
) -> Manifest:
    """Write an archive and read it again; it has its name only if it is whole.

    Args:
        target: the archive; replaced if it exists.
        about: its manifest, without files.
        advance: told how many bytes are done, those read again included.

    Raises:
        ArchiveError: what was written is not what was read.
        OSError: the disk does not take it.
    """
    parts = tuple(parts)
    half = target.with_name(f".{target.name}.half")
    half.unlink(missing_ok=True)
    try:
        opened = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        with os.fdopen(opened, "wb") as file:
            with tarfile.open(fileobj=file, mode="w:gz", compresslevel=6) as tar:
                packing = Packing(tar, about, advance, target.parent)
                made = packing.pack(parts)
            file.flush()
            os.fsync(file.fileno())
        read_archive(half, advance)
        half.replace(target)
    finally:
        half.unlink(missing_ok=True)
    return made


class Packing:
    """Writes the members of one archive.

    Args:
        about: its manifest, without files.
        advance: told how many bytes are done.
        beside: a folder with room for a copy of each file.
    """

    def __init__(
        self, tar: tarfile.TarFile, about: Manifest, advance: Advance, beside: Path
    ) -> None:
        self._tar = tar
        self._beside = beside
        self._about = about
        self._advance = advance
        self._files: dict[str, ArchivedFile] = {}
        self._left_out: list[str] = []

    def pack(self, parts: tuple[ArchivePart, ...]) -> Manifest:
        """Write all files, and the manifest behind them."""
        for each in files_in(parts):
            self._add(each)
        made = msgspec.structs.replace(
            self._about,
            parts={each.name: str(each.path.absolute()) for each in parts},
            files=self._files,
            left_out=tuple(self._left_out),
        )
        body = msgspec.json.format(msgspec.json.encode(made))
        self._tar.addfile(member(MANIFEST, len(body), about=made), io.BytesIO(body))
        return made

    def _add(self, found: FoundFile) -> None:
        try:
            file = opened(found.path)
        except OSError:  # gone, a link, a socket, not permitted
            self._left_out.append(found.name)
            return
        # Why copied first: a file that grows or shrinks meanwhile would spoil the rest.
        with (
            file,
            tempfile.SpooledTemporaryFile(IN_MEMORY, dir=str(self._beside)) as copy,
        ):
            seen = os.fstat(file.fileno())
            size, digest = copied(file, copy, self._advance)
            copy.seek(0)
            info = member(found.name, size, seen)
            self._tar.addfile(info, copy)
        self._files[found.name] = ArchivedFile(size, digest)


def member(
    name: str,
    size: int,
    seen: os.stat_result | None = None,
    about: Manifest | None = None,
) -> tarfile.TarInfo:
    """Describe a file in the archive; nobody in particular owns it there."""
    info = tarfile.TarInfo(name)
    info.size = size
    info.mode = PRIVATE if seen is None else stat.S_IMODE(seen.st_mode) & 0o700
    info.mtime = seen.st_mtime if seen else about.made_at if about else 0.0
    return info


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading.

    Raises:
        OSError: it cannot be, or is none that is read to an end: a link, a pipe.
    """
    how = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    number = os.open(path, how)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError("no plain file")
    return os.fdopen(number, "rb")


def copied(source: IO[bytes], target: IO[bytes], advance: Advance) -> tuple[int, str]:
    """Copy a file; gives its size and checksum."""
    size, digest = 0, hashlib.sha256()
    while piece := source.read(PIECE):
        target.write(piece)
        digest.update(piece)
        size += len(piece)
        advance(len(piece))
    return size, digest.hexdigest()


def is_archive(path: Path) -> bool:
    """Whether a file is a tar archive, ours or not.

    Raises:
        OSError: it cannot be read.
    """
    return tarfile.is_tarfile(path)


def read_archive(archive: Path, advance: Advance, into: Path | None = None) -> Manifest:
    """Read an archive to its end, check every file, and give its manifest.

    Args:
        advance: told how many bytes are done.
        into: an empty folder that its files are written to; None: nowhere.

    Raises:
        ArchiveError: it is damaged, or no archive of ours.
        OSError: the disk fails.
    """
    try:
        with gzip.open(archive, "rb") as raw:
            with tarfile.open(fileobj=raw, mode="r|") as tar:
                found, manifest = read_members(tar, advance, into)
            while raw.read(PIECE):  # to its end, where its checksum is
                pass
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ArchiveError(f"{archive} is damaged: {error}") from error
    except (ArchiveError, ValueError) as error:  # msgspec's are ValueErrors, too
        raise ArchiveError(f"{archive} is damaged: {error}") from error
    if manifest is None:
        raise ArchiveError(f"{archive} has no manifest: it is cut off, or not ours")
    wrong = sorted(
        name
        for name in manifest.files.keys() | found.keys()
        if manifest.files.get(name) != found.get(name)
    )
    if wrong:
        raise ArchiveError(f"{archive} is damaged: {', '.join(wrong[:5])}")
    return manifest


def read_members(
    tar: tarfile.TarFile, advance: Advance, into: Path | None
) -> tuple[dict[str, ArchivedFile], Manifest | None]:
    """Read all files of an archive, and its manifest, if it has one."""
    found: dict[str, ArchivedFile] = {}
    manifest: Manifest | None = None
    for info in tar:
        body = tar.extractfile(info) if is_harmless(info) else None
        if manifest is not None or body is None:
            raise ArchiveError(f"{info.name} does not belong in it")
        if info.name in found:
            raise ArchiveError(f"{info.name} is in it twice")
        if info.name == MANIFEST:
            manifest = msgspec.json.decode(body.read(), type=Manifest)
        else:
            place = None if into is None else into / info.name
            found[info.name] = unpacked(body, place, info.mode, advance)
    return found, manifest


def is_harmless(info: tarfile.TarInfo) -> bool:
    """Whether a member is a plain file below the folder it is unpacked in."""
    parts = Path(info.name).parts
    return info.isreg() and bool(parts) and parts[0] != "/" and ".." not in parts


def unpacked(
    body: IO[bytes], place: Path | None, mode: int, advance: Advance
) -> ArchivedFile:
    """Read one file, and write it somewhere if that is wanted."""
    size, digest = 0, hashlib.sha256()
    target: IO[bytes] | None = None
    try:
        if place is not None:
            make_private(place.parent)
            how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            target = os.fdopen(os.open(place, how, mode & 0o700), "wb")
        while piece := body.read(PIECE):
            size += len(piece)
            digest.update(piece)
            advance(len(piece))
            if target is not None:
                target.write(piece)
    finally:
        if target is not None:
            target.close()
    return ArchivedFile(size, digest.hexdigest())


def make_private(folder: Path) -> None:
    """Make a folder, and those above it, for its owner alone."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700)
