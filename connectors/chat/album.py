"""How much may come along with one message; pure.

Each file has a bound of its own, in the settings. All of one message have this one, as
they are stored with its words: the store takes them as a whole or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.messages import Attachment, Inbound
from connectors.chat.limits import MIB

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

# Chosen: four of the largest that are fetched by default. In base64 it is 53 MiB, and
# the store takes 64 MiB at once (`SqliteOptions.max_queued_bytes`).
MOST_IN_ALL = 40 * MIB
"""Bytes of all files of one message; also the most of one, whatever settings say."""

NO_ROOM = f"all files of a message may have {MOST_IN_ALL} bytes"
NOT_STORED = "it could not be stored"

Found = tuple[Attachment | None, str]
"""A file; or None, and why it could not be had."""


class Album:
    """The room that is left for the files of one message, given to them in order."""

    def __init__(self) -> None:
        self._left = MOST_IN_ALL

    async def fill(self, size: int, fetch: Callable[[], Awaitable[Found]]) -> Found:
        """Fetch the next file, if there is room for it.

        Args:
            size: bytes, as its platform says; 0: it does not say.
            fetch: fetches it.
        """
        if not self.claim(size):
            return None, NO_ROOM
        return self.settle(size, await fetch())

    def claim(self, size: int) -> bool:
        """Take room for the next file, before it is fetched; False: there is none.

        Args:
            size: bytes, as its platform says; 0: it does not say.
        """
        if size > self._left:
            return False
        self._left -= size
        return True

    def settle(self, size: int, found: Found) -> Found:
        """Give back what a file did not take; leave it out if it is larger than said.

        Args:
            size: as it was claimed.
            found: what was fetched.
        """
        attachment, why = found
        self._left += size
        if attachment is None:
            return None, why
        if not self.claim(len(attachment.content)):
            return None, NO_ROOM
        return found


def left_out(kind: str, name: str, why: str) -> str:
    """Say in a message that a file of it is not there."""
    return f"[{kind} {name or 'without a name'} was not fetched: {why}]"


def without_files(inbound: Inbound) -> Inbound:
    """Give a message with a line in the place of each file."""
    notes = (left_out(x.kind, x.name, NOT_STORED) for x in inbound.attachments)
    lines = (inbound.text, *notes)
    text = "\n".join(line for line in lines if line)
    return msgspec.structs.replace(inbound, text=text, attachments=())
