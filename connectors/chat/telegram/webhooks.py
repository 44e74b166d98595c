"""Keeps a bot's webhook set, and reports when Telegram cannot reach it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from connectors.chat.errors import BusyError, RefusedError
from connectors.chat.requests import LONGEST_WAIT, until_answered
from connectors.chat.telegram.api import TelegramCall
from connectors.chat.telegram.errors import ConflictError
from connectors.chat.telegram.events import KINDS
from connectors.chat.telegram.types import WebhookState
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from connectors.chat.telegram.account import TelegramAccount, TelegramHealth
    from connectors.chat.telegram.platform import TelegramConfig
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
    """Return the address at which Telegram reaches the webhook of a bot."""
    return f"{config.webhook_url.rstrip('/')}/platforms/{connector}/{agent}"


class TelegramWebhook:
    """The webhook of one bot.

    Args:
        bot: whose.
        url: where Telegram is to reach it.
        secret: what it is to say there.
        health: takes note of how it goes.
        clock: gives Unix seconds.
    """

    def __init__(
        self,
        bot: TelegramAccount,
        url: str,
        secret: str,
        health: TelegramHealth,
        clock: Clock,
    ) -> None:
        self._bot = bot
        self._url = url
        self._secret = secret
        self._health = health
        self._clock = clock

    async def run(self) -> None:
        """Look after it until cancelled.

        Raises:
            ShutOutError: the bot is not let in.
        """
        await until_answered(self._put, self._health.note)
        LOG.info("webhook set", bot=self._bot.agent, url=self._url)
        while True:
            await until_answered(self._look, self._health.note)
            await trio.sleep(LOOK_EVERY)

    async def _put(self) -> None:
        params = {
            "url": self._url,
            "secret_token": self._secret,
            "allowed_updates": KINDS,
            "max_connections": ONE_AT_A_TIME,
            "drop_pending_updates": False,
        }
        call = TelegramCall(
            method="setWebhook", params=params, timeout=self._bot.timeout
        )
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
            self._health.note(error)
            await self._put()
            return
        since = self._clock.wall() - found.last_error_date
        if found.pending_update_count and since < RECENT:
            self._health.note(
                BusyError(f"Telegram cannot reach us: {found.last_error_message}")
            )
            return
        self._health.heard()


async def known_webhook(bot: TelegramAccount) -> WebhookState:
    """Ask what webhook a bot has; raises as `TelegramAccount.ask`."""
    call = TelegramCall(method="getWebhookInfo", timeout=bot.timeout)
    return await bot.ask(call, WebhookState)


async def take_away(bot: TelegramAccount, health: TelegramHealth) -> None:
    """Take a webhook away, because with one there is no asking; nothing is dropped.

    Raises:
        ShutOutError: the bot is not let in.
        RefusedError: this is no Bot API.
    """
    found = await until_answered(partial(known_webhook, bot), health.note)
    if not found.url:
        return
    LOG.warning("webhook taken away: this program asks", bot=bot.agent)
    params = {"drop_pending_updates": False}
    call = TelegramCall(method="deleteWebhook", params=params, timeout=bot.timeout)
    await until_answered(partial(bot.do, call), health.note)
