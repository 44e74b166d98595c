"""Asks Telegram for what is new, and confirms it when it is stored.

The question itself confirms: with `offset`, all before is forgotten by Telegram. So the
offset is sent only after everything below it was accepted, and only until an answer has
come; then there is nothing to confirm. Why not always: after a week in which nothing
happens, Telegram counts on from anywhere, and an offset that is kept would be wrong.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from connectors.chat.faults import BusyError, RefusedError
from connectors.chat.telegram.api import Call
from connectors.chat.telegram.errors import ConflictError
from connectors.chat.telegram.patience import patiently
from connectors.chat.telegram.wire import read_updates
from connectors.chat.waits import LONGEST_WAIT
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.transport import Ingress
    from connectors.chat.telegram.arrivals import Arrivals
    from connectors.chat.telegram.bot import Bot
    from connectors.chat.telegram.liveness import Liveness
    from connectors.chat.telegram.shared import Shared
    from connectors.chat.telegram.wire import Malformed, Update

LOG = EventLog("telegram")

GRACE = 5.0
"""Seconds that Telegram may take beyond what it was asked to wait (F021)."""

MOST = 100
"""Updates of one answer; Telegram gives no more."""

# Chosen: a server that does not wait for news, as some stand-ins, is not asked in a
# row without end.
LEAST_PAUSE = 1.0
"""Seconds between two questions that brought nothing new."""

KINDS = ("message", "edited_message", "callback_query", "my_chat_member")
"""What is asked for. Edits are counted only, so that it is seen that they are left."""

CONFLICT_HINT = "only one program may hear a bot: end the other, or take another bot"

Updates = tuple["Update | Malformed", ...]


class Polling:
    """The questions of one bot.

    Args:
        bot: which one.
        arrivals: where goes what came.
        liveness: takes note of how it goes.
        shared: what all bots share.
    """

    def __init__(
        self, bot: Bot, arrivals: Arrivals, liveness: Liveness, shared: Shared
    ) -> None:
        self._bot = bot
        self._arrivals = arrivals
        self._liveness = liveness
        self._shared = shared

    async def run(self, ingress: Ingress) -> None:
        """Ask until cancelled.

        Raises:
            ShutOutError: the bot is not let in.
        """
        offset = await self._bookmark()
        LOG.info("bot listens", bot=self._bot.agent, offset=offset)
        while True:
            asked_at, was_away = trio.current_time(), bool(self._bot.trouble)
            poll = partial(self._poll, offset)
            updates = await patiently(poll, self._liveness.note)
            # Whatever ignores the offset gives again what was confirmed.
            fresh = tuple(each for each in updates if each.update_id >= offset)
            if fresh:
                await self._arrivals.take(fresh, ingress)
                offset = max(each.update_id for each in fresh) + 1
                await self._keep(offset)
                continue
            offset = offset if updates else 0
            if not was_away:
                await trio.sleep_until(asked_at + LEAST_PAUSE)

    async def _poll(self, offset: int) -> Updates:
        """Ask for news.

        Raises:
            BusyError: not now; ConflictError: somebody else asks, too.
            ShutOutError: the bot is not let in.
        """
        # Why not held after trouble: whether it is over is to be known at once.
        hold = 0.0 if self._bot.trouble else self._shared.config.poll_timeout
        params: dict[str, object] = {
            "timeout": int(hold),
            "limit": MOST,
            "allowed_updates": KINDS,
        }
        if offset:
            params["offset"] = offset
        silence = hold + GRACE
        call = Call(
            method="getUpdates", params=params, timeout=4 * silence, silence=silence
        )
        try:
            answer = read_updates(await self._bot.api.ask_raw(call))
        except ConflictError as error:
            raise ConflictError(f"{error} ({CONFLICT_HINT})") from error
        except RefusedError as error:
            # Why not given up: a proxy in trouble refuses, too, and messages wait.
            raise BusyError(f"it gives no updates: {error}", LONGEST_WAIT) from error
        except (ValueError, RecursionError) as error:
            raise BusyError("getUpdates: its answer makes no sense") from error
        if not answer.ok or answer.result is None:
            raise BusyError("getUpdates: its answer holds no updates")
        self._liveness.heard()
        return answer.result

    async def _bookmark(self) -> int:
        while True:
            try:
                return await self._shared.bookmarks.read(self._bot.id)
            except StoreError as error:
                LOG.warning("place not read yet", why=str(error))
                await trio.sleep(1.0)

    async def _keep(self, offset: int) -> None:
        """Note how far the bot was heard."""
        try:
            await self._shared.bookmarks.write(self._bot.id, offset)
        except StoreError as error:
            # After a restart more is heard again, and known to the database.
            LOG.warning("place not kept", bot=self._bot.agent, why=str(error))
