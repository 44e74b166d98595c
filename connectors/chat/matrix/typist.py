"""Shows that an account is writing, in the background and as well as it goes."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import trio

from connectors.chat.faults import PlatformError
from connectors.chat.limits import LIMITS
from connectors.chat.matrix.homeserver import Call, path_of
from runtime.logs import EventLog

if TYPE_CHECKING:
    from connectors.chat.matrix.account import MatrixAccount

LOG = EventLog("matrix")

# Chosen: short, so that it does not stand for long should this process be killed.
TYPING_FOR = LIMITS["matrix"].typing_for
"""Seconds after which the server stops showing it by itself."""

TYPING_TIMEOUT = 5.0
"""Seconds a request may take; later, it would be wrong."""

MOST_ROOMS = 1_000
"""Rooms that may wait to be told; for further ones nothing is shown."""


class Typist:
    """Tells the server of one account's typing; the newest word counts.

    Args:
        account: whose.
    """

    def __init__(self, account: MatrixAccount) -> None:
        self._account = account
        self._wanted: dict[str, bool] = {}
        self._shown: OrderedDict[str, None] = OrderedDict()
        self._news = trio.Event()

    def show(self, room_id: str) -> None:
        """Have it shown that the account is writing."""
        if len(self._wanted) < MOST_ROOMS:
            self._want(room_id, is_typing=True)

    def stop(self, room_id: str) -> None:
        """Have it no longer shown, if it was."""
        if room_id in self._shown or room_id in self._wanted:
            self._want(room_id, is_typing=False)

    def _want(self, room_id: str, *, is_typing: bool) -> None:
        self._wanted[room_id] = is_typing
        self._news.set()

    async def run(self) -> None:
        """Tell the server until cancelled."""
        while True:
            await self._news.wait()
            self._news = trio.Event()
            while self._wanted:
                room_id, is_typing = self._wanted.popitem()
                await self._tell(room_id, is_typing=is_typing)

    async def _tell(self, room_id: str, *, is_typing: bool) -> None:
        if is_typing:
            self._shown[room_id] = None
        else:
            self._shown.pop(room_id, None)
        while len(self._shown) > MOST_ROOMS:
            self._shown.popitem(last=False)  # it has ended by itself
        call = Call(
            method="PUT",
            path=path_of("rooms", room_id, "typing", self._account.user),
            body={"typing": True, "timeout": int(TYPING_FOR * 1000)}
            if is_typing
            else {"typing": False},
            timeout=TYPING_TIMEOUT,
        )
        try:
            await self._account.ask(call)
        except PlatformError as error:
            # It ends by itself, and nobody waits for it.
            LOG.info("typing not shown", account=self._account.user, why=str(error))
