"""Fetches what came with a message, because only the account may."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors.messages import Attachment
from connectors.chat.faults import (
    BusyError,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
)
from connectors.chat.matrix.homeserver import Call, path_of
from connectors.chat.waits import Waits

if TYPE_CHECKING:
    from connectors.chat.matrix.account import MatrixAccount
    from connectors.chat.matrix.events import File

AUTHENTICATED = "/_matrix/client/v1/media/download"
"""Source: spec v1.11; what came before it (v3) asks for no token."""

# Chosen: a server that is busy for a moment costs nobody a file, and one that is away
# holds a message, and all that follows it in its room, back for no longer than this.
TRIED_WITHIN = 20.0
"""Seconds after which no further try is begun; one try may take longer by itself."""


async def fetch_file(
    file: File, account: MatrixAccount, most: int
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
    try:
        content, media_type = await _fetch(AUTHENTICATED + path, account, most)
    except ShutOutError:
        raise
    except RefusedError as error:
        too_much = f"it is above {most} bytes"
        return None, too_much if error.code == "TOO_MUCH" else str(error)
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


async def _fetch(path: str, account: MatrixAccount, most: int) -> tuple[bytes, str]:
    call = Call(method="GET", path=path, timeout=account.timeout, most=most)
    until = trio.current_time() + TRIED_WITHIN
    waits = Waits()
    while True:
        try:
            return await account.fetch(call)
        except (BusyError, LostError) as error:
            asked = error.retry_after if isinstance(error, BusyError) else None
            wait = waits.next(asked)
            if trio.current_time() + wait > until:
                raise
        await trio.sleep(wait)
