"""Hears one bot: the listener of that bot, by asking or by webhook."""

from __future__ import annotations

import hmac
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import trio

from connectors.chat.faults import RefusedError, ShutOutError
from connectors.chat.telegram.arrivals import Arrivals
from connectors.chat.telegram.errors import ConflictError
from connectors.chat.telegram.hooked import Hooked, address_of, take_away
from connectors.chat.telegram.lease import leased
from connectors.chat.telegram.liveness import Liveness
from connectors.chat.telegram.patience import patiently
from connectors.chat.telegram.polling import Polling
from connectors.chat.telegram.wire import Malformed, read_update, whole
from connectors.chat.waits import Waits
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from actors.transport import Ingress
    from connectors.chat.telegram.bot import Bot
    from connectors.chat.telegram.shared import Shared
    from connectors.chat.telegram.typist import Typist
    from connectors.chat.telegram.wire import Update

LOG = EventLog("telegram")

SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105  a header's name

# Chosen: below the minute that Telegram waits for an answer.
TAKEN_WITHIN = 20.0
"""Seconds in which what a webhook brings is stored; else it is to be sent again."""


class BotListener:
    """One bot's listener, and the door of its webhook.

    Args:
        bot: which one.
        typist: shows that it is writing; runs as long as it listens.
        shared: what all bots share.
    """

    def __init__(self, bot: Bot, typist: Typist, shared: Shared) -> None:
        self._bot = bot
        self._typist = typist
        self._shared = shared
        self._arrivals = Arrivals(bot, shared)
        self._liveness = Liveness(bot, shared)
        self.taken_within = TAKEN_WITHIN
        self._ingress: Ingress | None = None
        """Where a webhook's messages go; None: it does not listen."""

        account = shared.config.accounts[bot.agent]
        secret = account.webhook_secret
        self._secret = "" if secret is None else secret.reveal().strip()

    async def listen(self, ingress: Ingress) -> None:
        """Hear the bot until cancelled, or until it is not let in."""
        with self._opened():
            async with self._bot.api, trio.open_nursery() as nursery:
                nursery.start_soon(self._typist.run)
                try:
                    await self._hear(ingress)
                except ShutOutError as error:
                    self._bot.refused = str(error)
                    self._tell_refused()
                nursery.cancel_scope.cancel()

    @contextmanager
    def _opened(self) -> Generator[None]:
        self._bot.refused = ""
        try:
            yield
        finally:
            self._bot.is_open = False
            self._ingress = None
            self._liveness.ended()

    def _tell_refused(self) -> None:
        name, agent = self._shared.connector, self._bot.agent
        LOG.error(
            "bot not let in; the others go on",
            bot=agent,
            why=self._bot.refused,
            what_to_do="ask @BotFather for a new token (/token), put it where"
            f" connectors.{name}.accounts.{agent} takes it from, and start again",
        )

    async def _hear(self, ingress: Ingress) -> None:
        bot, shared = self._bot, self._shared
        with ExitStack() as stack:
            await self._lease(stack)
            await patiently(bot.open, self._liveness.note)
            bot.is_open = True
            if shared.config.mode == "webhook":
                self._ingress = ingress
                url = address_of(shared.config, shared.connector, bot.agent)
                hooked = Hooked(bot, url, self._secret, self._liveness, shared.clock)
                place = shared.connector, bot.agent
                stack.enter_context(shared.gates.opened(place, self))
                await hooked.run()
            else:
                try:
                    await take_away(bot, self._liveness)
                except RefusedError as error:
                    # A stand-in that knows no webhooks; the polls will tell the rest.
                    LOG.info("webhook not known", bot=bot.agent, why=str(error))
                polling = Polling(bot, self._arrivals, self._liveness, shared)
                await polling.run(ingress)

    async def _lease(self, stack: ExitStack) -> None:
        """Wait until no other program of this machine hears the bot."""
        waits = Waits()
        while True:
            try:
                stack.enter_context(leased(self._shared.leases, self._bot.id))
            except ConflictError as error:
                self._liveness.note(error)
            else:
                return
            await trio.sleep(waits.next())

    def lets_in(self, headers: Mapping[str, str]) -> bool:
        """Tell whether a webhook's request comes from Telegram; fails closed.

        Called on the server's thread: looks at nothing that changes.
        """
        given = headers.get(SECRET_HEADER, "")
        # Why bytes: compare_digest refuses text that is not ASCII.
        is_right = hmac.compare_digest(given.encode(), self._secret.encode())
        return is_right and bool(self._secret)

    async def take(self, body: bytes) -> bool:
        """Have what a webhook brought stored.

        Returns:
            Whether Telegram may forget it.
        """
        ingress = self._ingress
        if ingress is None:
            return False
        try:
            update = read_one(body)
        except (ValueError, RecursionError) as error:
            # Telegram would bring it for a day, and nothing behind it.
            LOG.warning("update not understood", bot=self._bot.agent, why=str(error))
            self._shared.figures.update(self._bot.agent, "malformed")
            return True
        with trio.move_on_after(self.taken_within):
            try:
                await self._arrivals.take([update], ingress)
            except ShutOutError as error:
                LOG.warning("update waits", bot=self._bot.agent, why=str(error))
                return False
            self._liveness.heard()
            return True
        self._shared.figures.update(self._bot.agent, "later")
        return False


def read_one(body: bytes) -> Update | Malformed:
    """Read what a webhook brought.

    Raises:
        ValueError: it is no update.
    """
    try:
        found = read_update(body)
    except ValueError:
        return read_update(whole(body))
    return read_update(whole(body)) if isinstance(found, Malformed) else found
