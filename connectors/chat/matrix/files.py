"""Fetches what came with a message, because only the account may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.messages import Attachment
from connectors.chat.matrix.errors import MatrixError, RefusedError, TokenError
from connectors.chat.matrix.homeserver import Call, path_of

if TYPE_CHECKING:
    from connectors.chat.matrix.account import MatrixAccount
    from connectors.chat.matrix.events import File

AUTHENTICATED = "/_matrix/client/v1/media/download"
"""Source: spec v1.11; what came before it (v3) asks for no token."""

NOT_FOUND = 404


async def fetch_file(
    file: File, account: MatrixAccount, most: int
) -> tuple[Attachment | None, str]:
    """Fetch a file.

    Args:
        file: which.
        account: who may have it.
        most: bytes.

    Returns:
        The attachment, or why there is none.

    Raises:
        TokenError: the account is not let in.
    """
    if not file.media_id:
        return None, "it is encrypted, or has no address"
    if file.size > most:
        return None, f"it is above {most} bytes"
    path = path_of(file.server, file.media_id).removeprefix("/_matrix/client/v3")
    try:
        content, media_type = await _fetch(AUTHENTICATED + path, account, most)
    except TokenError:
        raise
    except RefusedError as error:
        too_much = f"it is above {most} bytes"
        return None, too_much if error.code == "TOO_MUCH" else str(error)
    except MatrixError as error:
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
    return await account.fetch(call)
