"""Fetches what came with a message, at once: its address ends after a day."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import httpx
import trio

from actors.messages.inbound import Attachment

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from connectors.chat.discord.events import DiscordFile

OK, SERVER_FAULT = 200, 500

# Chosen: a short fault costs nobody a file, and a longer one holds a message, and all
# that follows it in its channel, back for no longer than this.
TRIED_WITHIN = 20.0
"""Seconds in all."""

BETWEEN = 1.0
"""Seconds between two tries."""


async def fetch_file(
    file: DiscordFile, places: Iterable[str], most: int
) -> tuple[Attachment | None, str]:
    """Fetch a file.

    Args:
        file: which.
        places: addresses of servers from which files are fetched, and no others.
        most: bytes.

    Returns:
        The attachment, or why there is none.
    """
    if not is_within(file.url, places):
        return None, "it lies elsewhere than Discord's files do"
    if file.size > most:
        return None, f"it is above {most} bytes"
    why = f"not done after {TRIED_WITHIN:g} s"
    with trio.move_on_after(TRIED_WITHIN):
        while True:
            content, media_type, why, is_final = await try_once(file.url, most)
            if content is not None:
                attachment = Attachment(
                    kind=file.kind,
                    name=file.name,
                    media_type=file.media_type or media_type,
                    content=content,
                )
                return attachment, ""
            if is_final:
                return None, why
            await trio.sleep(BETWEEN)
    return None, why


def is_within(url: str, places: Iterable[str]) -> bool:
    """Return whether an address is at one of some servers."""
    try:
        asked = urlsplit(url)
        return any(
            (asked.scheme, asked.hostname, asked.port)
            == (each.scheme, each.hostname, each.port)
            for each in map(urlsplit, places)
        )
    except ValueError:
        return False


async def try_once(url: str, most: int) -> tuple[bytes | None, str, str, bool]:
    """Ask once.

    Returns:
        The bytes and their type; or None, why, and whether that is final. The address
        is in no text: it is signed.
    """
    try:
        async with (
            httpx.AsyncClient(trust_env=False, timeout=TRIED_WITHIN) as client,
            client.stream("GET", url, headers={"Accept-Encoding": "identity"}) as got,
        ):
            if got.status_code != OK:
                is_final = got.status_code < SERVER_FAULT
                return None, "", f"HTTP {got.status_code}", is_final
            content = await read(got, most)
            if content is None:
                return None, "", f"it is above {most} bytes", True
            media_type = got.headers.get("content-type", "").partition(";")[0]
            return content, media_type, "", True
    except httpx.InvalidURL:
        return None, "", "its address is wrong", True
    except httpx.HTTPError as error:
        return None, "", type(error).__name__, False


async def read(response: httpx.Response, most: int) -> bytes | None:
    """Read a body; None: there is more than so many bytes."""
    pieces: list[bytes] = []
    size = 0
    # Left half read, a generator is found by the collector, which complains.
    async with aclosing(cast("AsyncGenerator[bytes]", response.aiter_raw())) as body:
        async for piece in body:
            size += len(piece)
            if size > most:
                return None
            pieces.append(piece)
    return b"".join(pieces)
