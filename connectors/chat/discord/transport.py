"""The transport of Discord: one bot for each agent.

Each bot has its own listener, so that each is supervised by itself. If several of them
hear a message, one submits it. An agent's answers go out by its own bot.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from actors.messages.deliveries import Abilities, Delivery, Typing
from actors.messages.inbound import Inbound
from connectors.chat.accounts import (
    AccountsTransport,
    ConnectorShelf,
    PlatformMetrics,
    prefixed,
)
from connectors.chat.discord import markup
from connectors.chat.discord.client import READY_AFTER, DiscordAccount, DiscordClient
from connectors.chat.discord.events import MOST_EVENTS, FileToSend
from connectors.chat.discord.inbound import METRICS, CommandChoice, DiscordShared
from connectors.chat.discord.listener import (
    DiscordBookmarks,
    DiscordListener,
    StoredDiscordBookmarks,
)
from connectors.chat.discord.platform import PLATFORM, DiscordConfig
from connectors.chat.discord.senders import (
    DiscordPresence,
    DiscordSenders,
    SentBefore,
    channel_of,
)
from connectors.chat.platforms import TransportParts
from connectors.chat.requests import PlatformError, RefusedError, translated
from connectors.files.blobs import bytes_of
from runtime.telemetry.logs import EventLog

LOG = EventLog("discord")

SHOWN_WITHIN = 5.0
"""Seconds that the first answer to a command waits for the place kept for it."""


class DiscordTransport(AccountsTransport[DiscordAccount, DiscordListener]):
    """The bots of one connector; see the port.

    Args:
        ready_after: seconds; see `client.READY_AFTER`.
        most_events: that may wait for one bot's listener.
    """

    needs_loop = True
    """discord.py lives behind the bridge."""

    def __init__(
        self,
        name: str,
        config: DiscordConfig,
        parts: TransportParts,
        bookmarks: DiscordBookmarks,
        *,
        ready_after: float = READY_AFTER,
        most_events: int = MOST_EVENTS,
    ) -> None:
        accounts = {
            agent: DiscordAccount(agent, account, parts.bridge, config.request_timeout)
            for agent, account in config.accounts.items()
        }
        self._shared = DiscordShared(
            connector=name,
            config=config,
            accounts=accounts,
            bridge=parts.bridge,
            bookmarks=bookmarks,
            metrics=PlatformMetrics(parts.once(METRICS), name),
            clock=parts.clock,
            ids=parts.ids,
            ready_after=ready_after,
            most_events=most_events,
        )
        self._blobs = parts.blobs
        self._name = parts.shown
        self._senders = DiscordSenders(accounts, self._shared.members)
        self.presence = DiscordPresence(
            self._senders, self._shared.choices, parts.shown
        )
        self._recall = SentBefore(parts.clock.wall())
        listeners = {
            agent: DiscordListener(account, self._shared)
            for agent, account in accounts.items()
        }
        super().__init__(LOG, accounts, listeners)

    @property
    def abilities(self) -> Abilities:
        """The abilities: Discord knows our ids for some minutes, and we look after."""
        config = self._shared.config
        return Abilities(
            is_idempotent=True,
            max_part_chars=markup.LIMIT.part,
            measure=markup.LIMIT.measure,
            pace=config.pace,
            shows_typing=True,
            typing_for=markup.LIMIT.typing_for,
            takes_back=True,
            draft_pace=config.draft_pace,
            files=PLATFORM.takes_files,
        )

    async def deliver(self, delivery: Delivery) -> str:
        """Send one message to its channel; see the port."""
        now = trio.current_time()
        choices = self._shared.choices
        choice = choices.open_to(delivery.reply_to, delivery.id, now)
        if choice is not None:
            receipt = await self._answer(choice, delivery)
            if receipt:
                return receipt
        channel = channel_of(delivery.address)
        # In a direct chat it is plain what an answer answers; a command is no message.
        is_reply = delivery.part == 0 and delivery.reply_to not in choices
        reply_to = delivery.reply_to if is_reply else ""
        is_unsure = self._recall.is_unsure(delivery)

        file, brought = delivery.file, self._brought(delivery)

        def order(account: DiscordAccount) -> Callable[[DiscordClient], Awaitable[str]]:
            text = prefixed(delivery, account.agent, self._name)
            message = markup.message(text, delivery.id, reply_to, file)

            async def say(bot: DiscordClient) -> str:
                said = ""
                if is_unsure:
                    asked = delivery.reply_to
                    said = await self._recall.find(bot, channel, message, asked)
                return said or await bot.say(channel, message, brought)

            return say

        size = 0 if file is None else file.size
        receipt = await self._senders.do(delivery.account, channel, order, size)
        self._recall.note(receipt)
        return receipt

    async def _answer(self, choice: CommandChoice, delivery: Delivery) -> str:
        """Say the first answer to a command, in the place that is kept for it.

        Returns:
            Its receipt; empty: it is to be said as any other message.
        """
        account = self.accounts[choice.agent]
        with trio.move_on_after(SHOWN_WITHIN):
            await choice.is_shown.wait()
        if trio.current_time() >= choice.until:
            return ""
        text = prefixed(delivery, account.agent, self._name)
        file, brought = delivery.file, self._brought(delivery)
        message = markup.changed(text) if file is None else markup.brought(text, file)
        choice.said_by = delivery.id
        size = 0 if file is None else file.size
        with translated():
            try:
                return await account.ask(
                    lambda bot: bot.amend(choice.token, message, brought), size
                )
            except RefusedError as error:
                LOG.warning("command not answered in its place", why=str(error))
                return ""

    def _brought(self, delivery: Delivery) -> FileToSend | None:
        """Find the bytes of a delivery's file; raises as `BlobFolder.find`."""
        file = delivery.file
        if file is None:
            return None
        return FileToSend(bytes_of(self._blobs, file), file.name, file.media_type)

    def show_typing(self, typing: Typing) -> None:
        """Show in the channel that an agent is writing."""
        account = self.accounts.get(typing.agent)
        # Nobody is seen to write for an agent without a bot.
        if account is not None and not typing.is_over:
            account.typing.show(channel_of(typing.address))

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """Take back that an answer is to come, where a command gets none."""
        await super().settle(inbound, reason)
        choice = self._shared.choices.unanswered(inbound.correlation_id)
        if choice is None or trio.current_time() >= choice.until:
            return
        with trio.move_on_after(SHOWN_WITHIN):
            await choice.is_shown.wait()
        account = self.accounts[choice.agent]
        try:
            await account.ask(lambda bot: bot.withdraw(choice.token))
        except PlatformError as error:
            LOG.warning("command left unanswered", why=str(error))


def make_transport(
    name: str, config: DiscordConfig, parts: TransportParts
) -> DiscordTransport:
    """Make the transport of one connector's bots."""
    shelf = ConnectorShelf(parts.store, parts.clock, name)
    return DiscordTransport(name, config, parts, StoredDiscordBookmarks(shelf))
