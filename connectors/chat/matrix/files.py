"""Files that come with messages, and those that agents send."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from actors.messages.inbound import Attachment, SentFile
from actors.rules.text.limits import RecentMap
from connectors.chat.errors import LostError, PlatformError, ShutOutError
from connectors.chat.lenient_json import text
from connectors.chat.matrix.api import MatrixBody, MatrixCall, path_of
from connectors.chat.requests import until_answered
from connectors.files.blobs import BlobFolder, bytes_of, seconds_for

if TYPE_CHECKING:
    from connectors.chat.matrix.account import MatrixAccount
    from connectors.chat.matrix.events import MatrixFile

AUTHENTICATED = "/_matrix/client/v1/media/download"
"""Source: spec v1.11; what came before it (v3) asks for no token."""

# Chosen: a server that is busy for a moment costs nobody a file, and one that is away
# holds a message, and all that follows it in its room, back for no longer than this.
TRIED_WITHIN = 20.0
"""Seconds after which no further try is begun; one try may take longer by itself."""


async def fetch_file(
    file: MatrixFile, account: MatrixAccount, most: int
) -> tuple[Attachment | None, str]:
    """Fetch a file; a server that has too much to do is asked again for a while.

    Args:
        file: which.
        account: who may have it.
        most: bytes.

    Returns:
        The attachment, or why there is none.

    Raises:
        ShutOutError: the account is not let in.
    """
    if not file.media_id:
        return None, "it is encrypted, or has no address"
    if file.size > most:
        return None, f"it is above {most} bytes"
    path = path_of(file.server, file.media_id).removeprefix("/_matrix/client/v3")
    path = AUTHENTICATED + path
    call = MatrixCall(method="GET", path=path, timeout=account.timeout, most=most)
    try:
        content, media_type = await until_answered(
            partial(account.fetch, call), lambda _: None, TRIED_WITHIN
        )
    except ShutOutError:
        raise
    except PlatformError as error:
        return None, str(error)
    return (
        Attachment(
            kind=file.kind,
            name=file.name,
            media_type=file.media_type or media_type,
            content=content,
        ),
        "",
    )


PATH = "/_matrix/media/v3/upload"

# Chosen: a delivery is tried again within minutes.
MOST_KNOWN = 200
"""Files of which it is remembered where they lie at the homeserver."""


class MatrixUploads:
    """Files that were uploaded to the homeserver recently.

    Args:
        blobs: has the bytes; None: nobody has.
    """

    def __init__(self, blobs: BlobFolder | None) -> None:
        self._blobs = blobs
        self._known: RecentMap[tuple[str, str, str], str] = RecentMap(MOST_KNOWN)

    async def bring(self, file: SentFile, account: MatrixAccount) -> str:
        """Return a file's `mxc` address, after it was brought there.

        Raises:
            DeliveryRefusedError: its bytes are gone.
            PlatformError: as `Homeserver.ask`.
        """
        key = (account.user, file.digest, file.name)
        if key in self._known:
            return self._known[key]
        path = bytes_of(self._blobs, file)
        call = MatrixCall(
            method="POST",
            path=PATH,
            query={"filename": file.name},
            file=MatrixBody(path, file.media_type, file.size),
            timeout=seconds_for(file.size, account.timeout),
            silence=account.timeout,
        )
        address = text((await account.ask(call)).get("content_uri"))
        if not address.startswith("mxc://"):
            raise LostError("the homeserver says no address of the file")
        self._known[key] = address
        return address
