"""Fetches what came with a message, because only the app may."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors.messages import Attachment
from connectors.chat.faults import BusyError, LostError, PlatformError
from connectors.chat.waits import Waits

if TYPE_CHECKING:
    from connectors.chat.slack.account import SlackAccount
    from connectors.chat.slack.events import File

# Chosen: a moment's trouble costs nobody a file, and a longer one holds a message, and
# all that follows it in its channel, back for no longer than this.
TRIED_WITHIN = 20.0
"""Seconds after which no further try is begun; one try may take longer by itself."""


async def fetch_file(
    file: File, account: SlackAccount, most: int
) -> tuple[Attachment | None, str]:
    """Fetch a file; a server that has too much to do is asked again for a while.

    Args:
        file: which.
        account: who may have it.
        most: bytes.

    Returns:
        The attachment, or why there is none.
    """
    if not file.url:
        return None, "Slack does not have it"
    if file.size > most:
        return None, f"it is above {most} bytes"
    try:
        content, media_type = await _fetch(file.url, account, most)
    except PlatformError as error:
        return None, str(error)
    if media_type == "text/html" and file.media_type != "text/html":
        # Why: without the scope, Slack answers with the page of its login.
        return None, "the app may not: give it the scope files:read"
    return (
        Attachment(
            kind=file.kind,
            name=file.name,
            media_type=file.media_type or media_type,
            content=content,
        ),
        "",
    )


async def _fetch(url: str, account: SlackAccount, most: int) -> tuple[bytes, str]:
    until = trio.current_time() + TRIED_WITHIN
    waits = Waits()
    while True:
        try:
            return await account.fetch(url, most)
        except (BusyError, LostError) as error:
            asked = error.retry_after if isinstance(error, BusyError) else None
            wait = waits.next(asked)
            if trio.current_time() + wait > until:
                raise
        await trio.sleep(wait)
