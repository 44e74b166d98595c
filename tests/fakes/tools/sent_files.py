"""Files that agents send, on a folder that is there at its first use, and in memory."""

from __future__ import annotations

import hashlib
import shutil
import weakref
from collections.abc import Collection, Mapping
from pathlib import Path
from tempfile import mkdtemp

import trio

from actors.errors import DeliveryRefusedError, ToolError
from actors.journal.attachments import kind_of
from actors.messages.inbound import Image, SentFile
from connectors.config.tools import FilesConfig
from connectors.fetch.messages import media_type
from connectors.files.blobs import BlobFolder
from runtime.clock import Clock, SystemClock

DEFAULT = FilesConfig()


def described(content: bytes, name: str, **more: str) -> SentFile:
    """Describe a file, as it is sent."""
    kind = media_type(content)
    facts: dict[str, str] = {"kind": kind_of(kind), **more}
    return SentFile(
        hashlib.sha256(content).hexdigest(),
        name,
        kind,
        len(content),
        **facts,  # type: ignore[arg-type]
    )


class SentFiles(BlobFolder):
    """The real folder, for tests in virtual time: kept at once, and beside no thread.

    Args:
        limits: what differs from the defaults.
    """

    def __init__(
        self, clock: Clock | None = None, limits: FilesConfig = DEFAULT
    ) -> None:
        home = mkdtemp()
        weakref.finalize(self, shutil.rmtree, home, ignore_errors=True)
        folder = Path(home) / "not" / "there"
        super().__init__(folder, limits, clock or SystemClock())
        self.is_ill = False
        """Whether bytes are found that then cannot be read."""

    def find(self, file: SentFile) -> Path:
        """Give where a file's bytes lie."""
        found = super().find(file)
        return found.with_name("ill") if self.is_ill else found

    def sent(self, content: bytes, name: str = "a.txt", **more: str) -> SentFile:
        """Keep a file, and describe it."""
        kept = self._keep(lambda take: take(content))
        file = described(content, name, **more)
        assert (kept.digest, kept.size) == (file.digest, file.size)
        return file

    def files(self) -> list[Path]:
        """Give all that lies there."""
        return sorted(each for each in self._folder.rglob("*") if each.is_file())


class FakeEnclosures:
    """Folders in memory; implements both ports of `actors.ports`.

    Args:
        files: by path, what lies in every agent's folder.
    """

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.kept: dict[str, bytes] = {}
        """By digest."""

    async def enclose(
        self, agent: str, path: str, *, show_as: str = "", caption: str = ""
    ) -> SentFile:
        """Copy a file; see the port."""
        await trio.lowlevel.checkpoint()
        if path not in self.files:
            raise ToolError(f"{agent} has no file {path}")
        file = described(self.files[path], path.rpartition("/")[2], caption=caption)
        self.kept[file.digest] = self.files[path]
        return SentFile(
            file.digest,
            file.name,
            file.media_type,
            file.size,
            kind_of(file.media_type, show_as),
            caption,
        )

    async def watch(self, agent: str) -> FakeWatch:
        """Watch the folder; see the port."""
        await trio.lowlevel.checkpoint()
        return FakeWatch(self, agent)

    async def enclose_image(self, agent: str, image: Image, name: str) -> SentFile:
        """Keep a picture; see the port."""
        await trio.lowlevel.checkpoint()
        del agent
        file = described(image.content, name)
        self.kept[file.digest] = image.content
        return file

    async def sweep(self, needed: Collection[str], before: float) -> int:
        """Remove what is not needed; see the port."""
        await trio.lowlevel.checkpoint()
        del before
        gone = [each for each in self.kept if each not in needed]
        for each in gone:
            del self.kept[each]
        return len(gone)

    def content(self, file: SentFile | None) -> bytes:
        """Give what a transport would send.

        Raises:
            DeliveryRefusedError: nothing is there.
        """
        if file is None or file.digest not in self.kept:
            raise DeliveryRefusedError("its bytes are not kept any more")
        return self.kept[file.digest]


class FakeWatch:
    """Sees which pictures are new; implements `actors.ports.PictureWatch`."""

    def __init__(self, enclosures: FakeEnclosures, agent: str) -> None:
        self._enclosures = enclosures
        self._agent = agent
        self._before = dict(enclosures.files)
        self._taken: list[str] = []

    async def take(self, most: int) -> tuple[SentFile, ...]:
        """Copy what is new; see the port."""
        now = self._enclosures.files
        new = [path for path in now if self._before.get(path) != now[path]]
        self._taken = [path for path in new if path.endswith(".png")][:most]
        files = [
            await self._enclosures.enclose(self._agent, each) for each in self._taken
        ]
        return tuple(files)

    async def clear(self) -> None:
        """Remove what was taken; see the port."""
        await trio.lowlevel.checkpoint()
        for path in self._taken:
            del self._enclosures.files[path]

    def end(self) -> None:
        """Watch no longer; see the port."""
