"""What the domain needs of whoever copies and keeps the files that agents send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection

    from actors.messages import Image, SentFile


class PictureWatch(Protocol):
    """Sees which pictures one turn leaves in an agent's folder."""

    async def take(self, most: int) -> tuple[SentFile, ...]:
        """Copy those that are new or changed, at most so many; never fails.

        None if another turn of the agent ran meanwhile: they may be anybody's.
        """
        ...

    async def clear(self) -> None:
        """Remove from the folder what was taken, unless it has changed since."""
        ...

    def end(self) -> None:
        """Watch no longer; called in any case."""
        ...


class Enclosures(Protocol):
    """Takes files that agents send: copies them at once, so that they stay the same.

    Implemented by `connectors/tools/sending.py`. What was copied and never goes out is
    swept away after a while (`Blobs`), so nobody has to give it back.
    """

    async def enclose(
        self, agent: str, path: str, *, show_as: str = "", caption: str = ""
    ) -> SentFile:
        """Copy a file of an agent's own folder.

        Args:
            agent: whose folder; nothing leads out of it.
            path: which file, as the agent wrote it.
            show_as: a kind of `SentFile`, which it gets if its bytes allow it; empty:
                by its bytes.
            caption: what the agent says of it.

        Raises:
            ToolError: it cannot be sent; the text says why.
        """
        ...

    async def watch(self, agent: str) -> PictureWatch:
        """Watch an agent's folder for pictures that appear from now on (F280)."""
        ...

    async def enclose_image(self, image: Image, name: str) -> SentFile:
        """Keep a picture that a tool gave; raises as `enclose`."""
        ...


class Blobs(Protocol):
    """Where the bytes of files lie until they have gone out.

    Implemented by `connectors/blobs.py`.
    """

    async def sweep(self, needed: Collection[str], before: float) -> int:
        """Remove what nobody needs any more.

        Args:
            needed: digests of what is still to go out.
            before: Unix seconds; what was kept, or kept again, since then stays.

        Returns:
            How many were removed.
        """
        ...
