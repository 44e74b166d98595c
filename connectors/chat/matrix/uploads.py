"""Brings files to the homeserver, before the event that shows them.

Source: spec, "Content repository", `POST /media/v3/upload`. An upload that is repeated
leaves one there that nobody sees; the event, which has a transaction id, is one.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from connectors.blobs import bytes_of, seconds_for
from connectors.chat.faults import LostError
from connectors.chat.loose_json import text
from connectors.chat.matrix.homeserver import Body, Call

if TYPE_CHECKING:
    from actors.messages import SentFile
    from connectors.blobs import BlobFolder
    from connectors.chat.matrix.account import MatrixAccount

PATH = "/_matrix/media/v3/upload"

# Chosen: a delivery is tried again within minutes.
MOST_KNOWN = 200
"""Files of which it is remembered where they lie at the homeserver."""


class Uploads:
    """What was brought to one homeserver of late.

    Args:
        blobs: has the bytes; None: nobody has.
    """

    def __init__(self, blobs: BlobFolder | None) -> None:
        self._blobs = blobs
        self._known: OrderedDict[tuple[str, str, str], str] = OrderedDict()

    async def bring(self, file: SentFile, account: MatrixAccount) -> str:
        """Give a file's `mxc` address, after it was brought there.

        Raises:
            DeliveryRefusedError: its bytes are gone.
            PlatformError: as `Homeserver.ask`.
        """
        key = (account.user, file.digest, file.name)
        if key in self._known:
            return self._known[key]
        path = bytes_of(self._blobs, file)
        call = Call(
            method="POST",
            path=PATH,
            query={"filename": file.name},
            file=Body(path, file.media_type, file.size),
            timeout=seconds_for(file.size, account.timeout),
            silence=account.timeout,
        )
        address = text((await account.ask(call)).get("content_uri"))
        if not address.startswith("mxc://"):
            raise LostError("the homeserver says no address of the file")
        self._known[key] = address
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return address
