"""Fetches the messages of a room that a batch left out."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from connectors.chat.errors import BusyError, LostError, RefusedError
from connectors.chat.lenient_json import Json, tables, text
from connectors.chat.matrix.api import MatrixCall, path_of

if TYPE_CHECKING:
    from connectors.chat.matrix.account import MatrixAccount
    from connectors.chat.matrix.rooms import RoomDeadlines

PAGE = 100
"""Events of one request."""

TYPES = ["m.room.message", "m.room.encrypted", "m.room.redaction"]
"""What is fetched; how the room has changed meanwhile stands in the batch."""


class MatrixGap(msgspec.Struct, frozen=True):
    """The gap in a room's messages between two batches."""

    room_id: str
    since: str
    """Up to where the account has read."""

    before: str
    """From where it reads on."""


async def fetch(
    gap: MatrixGap,
    account: MatrixAccount,
    most: int,
    patience: RoomDeadlines,
) -> tuple[list[Json], bool]:
    """Fetch what lies in a gap.

    Args:
        gap: where.
        account: by whom.
        most: events; those before are left out.
        patience: how long each page is asked for.

    Returns:
        The events, oldest first, and whether these are all.

    Raises:
        ShutOutError: the account is not let in.
    """
    found: list[Json] = []
    token = gap.before
    while token and len(found) < most:
        page = partial(_page, gap, account, token, min(PAGE, most - len(found)))
        try:
            answer = await patience.ask(gap.room_id, page)
        except (BusyError, LostError, RefusedError) as error:
            patience.note(error)
            return found[::-1], False
        chunk = tables(answer.get("chunk"))
        found += chunk
        token = text(answer.get("end")) if chunk else ""
    return found[::-1], not token


async def _page(gap: MatrixGap, account: MatrixAccount, token: str, size: int) -> Json:
    query = {
        "dir": "b",
        "from": token,
        "to": gap.since,
        "limit": str(size),
        "filter": msgspec.json.encode({"types": TYPES}).decode(),
    }
    path = path_of("rooms", gap.room_id, "messages")
    call = MatrixCall(method="GET", path=path, query=query, timeout=account.timeout)
    return await account.ask(call)
