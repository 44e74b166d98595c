"""Fetches what came with a message, at once: its address holds for an hour."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from actors.messages.inbound import Attachment
from connectors.chat.errors import PlatformError, RefusedError, ShutOutError
from connectors.chat.requests import until_answered
from connectors.chat.telegram.api import TelegramCall
from connectors.chat.telegram.types import FilePath

if TYPE_CHECKING:
    from connectors.chat.telegram.account import TelegramAccount
    from connectors.chat.telegram.events import TelegramAttachment

# Chosen: a Telegram that is busy for a moment costs nobody a file, and one that is away
# holds a message, and all that follows it in its chat, back for no longer than this.
TRIED_WITHIN = 20.0
"""Seconds after which no further try is begun; one try may take longer by itself."""


async def fetch_file(
    file: TelegramAttachment, bot: TelegramAccount, most: int
) -> tuple[Attachment | None, str]:
    """Fetch a file; a Telegram that has too much to do is asked again for a while.

    Args:
        file: which.
        bot: who may have it.
        most: bytes.

    Returns:
        The attachment, or why there is none.

    Raises:
        ShutOutError: the bot is not let in.
    """
    too_much = f"it is above {most} bytes"
    if file.size > most:
        return None, too_much
    try:
        content = await until_answered(
            partial(_fetch, file, bot, most), lambda _: None, TRIED_WITHIN
        )
    except ShutOutError:
        raise
    except PlatformError as error:
        is_large = isinstance(error, RefusedError) and error.says("too big", "above")
        return None, too_much if is_large else str(error)
    return (
        Attachment(
            kind=file.kind,
            name=file.name,
            media_type=file.media_type,
            content=content,
        ),
        "",
    )


async def _fetch(file: TelegramAttachment, bot: TelegramAccount, most: int) -> bytes:
    params = {"file_id": file.file_id}
    call = TelegramCall(method="getFile", params=params, timeout=bot.timeout)
    place = await bot.ask(call, FilePath)
    if not place.file_path:
        raise RefusedError("Telegram says no place of it")
    return await bot.api.fetch(place.file_path, bot.timeout, most)
