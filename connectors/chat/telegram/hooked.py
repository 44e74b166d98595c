"""Keeps a bot's webhook where it belongs, and says when Telegram cannot reach it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from connectors.chat.faults import BusyError, RefusedError
from connectors.chat.telegram.api import Call
from connectors.chat.telegram.errors import ConflictError
from connectors.chat.telegram.patience import patiently
from connectors.chat.telegram.polling import KINDS
from connectors.chat.telegram.wire import WebhookState
from connectors.chat.waits import LONGEST_WAIT
from runtime.logs import EventLog

if TYPE_CHECKING:
    from connectors.chat.telegram.bot import Bot
    from connectors.chat.telegram.liveness import Liveness
    from connectors.telegram_config import TelegramConfig
    from runtime.clock import Clock

LOG = EventLog("telegram")

LOOK_EVERY = 60.0
"""Seconds between two looks at what Telegram says of the webhook."""

RECENT = 180.0
"""Seconds for which a failure to reach us counts, while something waits."""

ONE_AT_A_TIME = 1
"""Connections that Telegram opens to us: more could bring a chat's messages in another
order than they were written."""


def address_of(config: TelegramConfig, connector: str, agent: str) -> str:
    """Give the address at which Telegram reaches the webhook of a bot."""
    return f"{config.webhook_url.rstrip('/')}/platforms/{connector}/{agent}"


class Hooked:
    """The webhook of one bot.

    Args:
        bot: whose.
        url: where Telegram is to reach it.
        secret: what it is to say there.
        liveness: takes note of how it goes.
        clock: gives Unix seconds.
    """

    def __init__(
        self, bot: Bot, url: str, secret: str, liveness: Liveness, clock: Clock
    ) -> None:
        self._bot = bot
        self._url = url
        self._secret = secret
        self._liveness = liveness
        self._clock = clock

    async def run(self) -> None:
        """Look after it until cancelled.

        Raises:
            ShutOutError: the bot is not let in.
        """
        await patiently(self._put, self._liveness.note)
        LOG.info("webhook set", bot=self._bot.agent, url=self._url)
        while True:
            await patiently(self._look, self._liveness.note)
            await trio.sleep(LOOK_EVERY)

    async def _put(self) -> None:
        params = {
            "url": self._url,
            "secret_token": self._secret,
            "allowed_updates": KINDS,
            "max_connections": ONE_AT_A_TIME,
            "drop_pending_updates": False,
        }
        call = Call(method="setWebhook", params=params, timeout=self._bot.timeout)
        try:
            await self._bot.do(call)
        except RefusedError as error:
            raise BusyError(
                f"Telegram does not take the webhook {self._url}: {error}", LONGEST_WAIT
            ) from error

    async def _look(self) -> None:
        """See whether it is still set, and reached.

        Raises:
            BusyError: it is not.
        """
        found = await known_webhook(self._bot)
        if found.url != self._url:
            error = ConflictError(
                "another program took the webhook away; it is set again"
            )
            self._liveness.note(error)
            await self._put()
            return
        since = self._clock.wall() - found.last_error_date
        if found.pending_update_count and since < RECENT:
            self._liveness.note(
                BusyError(f"Telegram cannot reach us: {found.last_error_message}")
            )
            return
        self._liveness.heard()


async def known_webhook(bot: Bot) -> WebhookState:
    """Ask what webhook a bot has; raises as `Bot.ask`."""
    call = Call(method="getWebhookInfo", timeout=bot.timeout)
    return await bot.ask(call, WebhookState)


async def take_away(bot: Bot, liveness: Liveness) -> None:
    """Take a webhook away, because with one there is no asking; nothing is dropped.

    Raises:
        ShutOutError: the bot is not let in.
        RefusedError: this is no Bot API.
    """
    found = await patiently(partial(known_webhook, bot), liveness.note)
    if not found.url:
        return
    LOG.warning("webhook taken away: this program asks", bot=bot.agent)
    params = {"drop_pending_updates": False}
    call = Call(method="deleteWebhook", params=params, timeout=bot.timeout)
    await patiently(partial(bot.do, call), liveness.note)
