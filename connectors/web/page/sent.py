"""Files that agents send, as the page shows them.

The row of a message tells of its file; the bytes lie in the folder of all files that
are sent, and are gone from there after a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.errors import DeliveryRefusedError
from actors.rules.enclosing import SHOWN, size_of
from connectors.blobs import bytes_of

if TYPE_CHECKING:
    from pathlib import Path

    from actors.messages import SentFile
    from connectors.blobs import BlobFolder
    from connectors.web.page.messages import Message

FILES = "/files"
"""Where they are; the id of the message follows."""


class Enclosed(msgspec.Struct, frozen=True):
    """What `message.html` is told of a file."""

    path: str
    name: str
    size: str
    is_picture: bool
    """Whether it stands in the page; anything else is a link."""

    is_kept: bool
    """Whether its bytes are there (still)."""


def enclosed_in(message: Message, blobs: BlobFolder | None) -> Enclosed | None:
    """Tell of a message's file; None: it has none.

    Why no thread: it is one look at a folder of this machine, that opens nothing.
    """
    file = message.file
    if file is None:
        return None
    return Enclosed(
        path=f"{FILES}/{message.id}",
        name=file.name,
        size=size_of(file.size),
        is_picture=is_picture(file),
        is_kept=kept_bytes(file, blobs) is not None,
    )


def is_picture(file: SentFile) -> bool:
    """Whether browsers are to show it: by its bytes, and never one that has scripts."""
    return file.kind == "image" and file.media_type in SHOWN


def kept_bytes(file: SentFile, blobs: BlobFolder | None) -> Path | None:
    """Give where a file's bytes lie; None: they are not kept (any more)."""
    try:
        return bytes_of(blobs, file)
    except DeliveryRefusedError:
        return None
