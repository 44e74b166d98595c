"""Brings files to Meta, before the message that shows them.

Source: Meta, "Media, upload media". An upload that is repeated leaves one there that
nobody sees, and that Meta removes after 30 days.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors.rules.text.limits import RecentMap
from connectors.chat.errors import RefusedError
from connectors.chat.whatsapp import content
from connectors.chat.whatsapp.errors import MissingError
from connectors.files.blobs import bytes_of

if TYPE_CHECKING:
    from actors.messages.inbound import SentFile
    from connectors.chat.whatsapp.account import WhatsAppAccount
    from connectors.files.blobs import BlobFolder

# Chosen: what waits for a person waits for a day.
KNOWN_FOR = 86_400.0
"""Seconds in which a file is not brought again; Meta has it for 30 days."""

MOST_KNOWN = 200
"""Files of which it is remembered what Meta calls them."""

BAD_PARAMETER = "100"
"""Meta's number, also for a file of a type that it does not take."""

TAKEN = (
    content.PICTURES
    | content.VIDEOS
    | content.SOUNDS
    | frozenset(content.OFFICE_FILES.values())
    | {"application/pdf", "text/plain"}
)
"""Types that Meta takes for sure; of others it is asked."""


class WhatsAppUploads:
    """Files that were uploaded to Meta recently.

    Args:
        blobs: has the bytes; None: nobody has.
    """

    def __init__(self, blobs: BlobFolder | None) -> None:
        self._blobs = blobs
        self._known: RecentMap[tuple[str, str, str, str], tuple[str, float]] = (
            RecentMap(MOST_KNOWN)
        )

    async def bring(self, file: SentFile, number: WhatsAppAccount) -> content.Media:
        """Return what Meta calls a file, after it was brought there.

        Raises:
            DeliveryRefusedError: its bytes are gone.
            PlatformError: as `WhatsAppAccount.upload`.
        """
        kind, now = content.type_of(file), trio.current_time()
        key = (number.id, file.digest, kind, file.name)
        media_id, until = self._known.get(key, ("", now))
        if now >= until:
            media_id = await self._bring(file, kind, number)
            self._known[key] = media_id, now + KNOWN_FOR
        return content.Media(media_id, file)

    async def _bring(self, file: SentFile, kind: str, number: WhatsAppAccount) -> str:
        path = bytes_of(self._blobs, file)
        try:
            return await number.upload(file, path)
        except RefusedError as error:
            is_missing = isinstance(error, MissingError)
            if error.code != BAD_PARAMETER or is_missing or kind in TAKEN:
                raise
            # Meta's own words list all types that it takes.
            text = f"WhatsApp takes no files of the type {kind}"
            raise RefusedError(text, error.code) from error
