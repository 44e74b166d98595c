"""Discord as a place where people write: one bot for each agent.

Each bot listens by itself (`listeners`), so that each is supervised by itself; a
message that several of them hear is handed in by one. What an agent says goes out by
its own bot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from actors.deliveries import Abilities
from actors.errors import DeliveryBusyError
from connectors.blobs import bytes_of
from connectors.chat.discord import content
from connectors.chat.discord.account import DiscordAccount
from connectors.chat.discord.bot import READY_AFTER
from connectors.chat.discord.figures import DiscordFigures
from connectors.chat.discord.intake import MOST_EVENTS
from connectors.chat.discord.listening import BotListener
from connectors.chat.discord.presence import DiscordPresence, channel_of
from connectors.chat.discord.recall import Recall
from connectors.chat.discord.shared import Shared
from connectors.chat.discord.speaking import Speakers, prefixed
from connectors.chat.discord.typist import Typist
from connectors.chat.discord.wire import Brought
from connectors.chat.faults import PlatformError, RefusedError, translated
from connectors.chat.limits import takes_files
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from actors.deliveries import Delivery, Draft, Typing
    from actors.transport import Ingress, Listening
    from connectors.blobs import BlobFolder
    from connectors.bridge import Bridge
    from connectors.chat.discord.bookmarks import Bookmarks
    from connectors.chat.discord.bot import Bot
    from connectors.chat.discord.choices import Choice
    from connectors.chat.discord.figures import DiscordCounters
    from connectors.discord_config import DiscordConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource

LOG = EventLog("discord")

SHOWN_WITHIN = 5.0
"""Seconds that the first answer to a command waits for the place kept for it."""


@dataclass(frozen=True)
class Surroundings:
    """What the transport is given by the company."""

    clock: Clock
    ids: IdSource
    bridge: Bridge
    counters: DiscordCounters
    bookmarks: Bookmarks
    blobs: BlobFolder | None = None
    """Has the bytes of files that agents send."""

    ready_after: float = READY_AFTER
    """Seconds; see `bot.py`."""

    most_events: int = MOST_EVENTS
    """That may wait for one bot's listener; see `intake.py`."""


class DiscordTransport:
    """The bots of one connector; see the port.

    Args:
        name: of the connector, as in the settings.
        config: the bots.
        given: what the company gives.
    """

    needs_loop = True
    """discord.py lives behind the bridge."""

    def __init__(self, name: str, config: DiscordConfig, given: Surroundings) -> None:
        self._accounts = {
            agent: DiscordAccount(agent, account, given.bridge, config.request_timeout)
            for agent, account in config.accounts.items()
        }
        self._shared = Shared(
            connector=name,
            config=config,
            accounts=self._accounts,
            bridge=given.bridge,
            bookmarks=given.bookmarks,
            figures=DiscordFigures(given.counters, name),
            clock=given.clock,
            ids=given.ids,
            ready_after=given.ready_after,
            most_events=given.most_events,
        )
        self._blobs = given.blobs
        self._typists = {
            agent: Typist(account) for agent, account in self._accounts.items()
        }
        self._speakers = Speakers(self._accounts, self._shared.homes)
        self._presence = DiscordPresence(self._speakers, self._shared.choices)
        self._recall = Recall(given.clock.wall())
        self._listeners = {
            agent: BotListener(account, self._typists[agent], self._shared)
            for agent, account in self._accounts.items()
        }

    @property
    def abilities(self) -> Abilities:
        """What it can do: Discord knows our ids for some minutes, and we look after."""
        config = self._shared.config
        return Abilities(
            is_idempotent=True,
            max_part_chars=content.LIMIT.part,
            markup=content.LIMIT.markup,
            pace=config.pace,
            shows_typing=True,
            typing_for=content.LIMIT.typing_for,
            takes_back=True,
            draft_pace=config.draft_pace,
            files=takes_files("discord"),
        )

    @property
    def presence(self) -> DiscordPresence:
        """How it edits and reacts."""
        return self._presence

    @property
    def listeners(self) -> Mapping[str, Listening]:
        """The bots' listeners, by agent."""
        return self._listeners

    @property
    def trouble(self) -> str:
        """Why nobody is heard now; empty: one bot at least hears its gateway."""
        troubles = {agent: each.trouble for agent, each in self._accounts.items()}
        if not all(troubles.values()):
            return ""
        return "; ".join(f"{agent}: {why}" for agent, why in troubles.items())

    async def listen(self, ingress: Ingress) -> None:
        """Follow all bots until cancelled, or until none is let in."""
        async with trio.open_nursery() as nursery:
            for listener in self._listeners.values():
                nursery.start_soon(listener.listen, ingress)

    async def deliver(self, delivery: Delivery) -> str:
        """Say one message in its channel; see the port."""
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

        def order(account: DiscordAccount) -> Callable[[Bot], Awaitable[str]]:
            text = prefixed(delivery.text, delivery.agent, account)
            message = content.message(text, delivery.id, reply_to, file)

            async def say(bot: Bot) -> str:
                said = ""
                if is_unsure:
                    asked = delivery.reply_to
                    said = await self._recall.find(bot, channel, message, asked)
                return said or await bot.say(channel, message, brought)

            return say

        size = 0 if file is None else file.size
        receipt = await self._speakers.do(delivery.agent, channel, order, size)
        self._recall.note(receipt)
        return receipt

    async def _answer(self, choice: Choice, delivery: Delivery) -> str:
        """Say the first answer to a command, in the place that is kept for it.

        Returns:
            Its receipt; empty: it is to be said as any other message.
        """
        account = self._accounts[choice.agent]
        with trio.move_on_after(SHOWN_WITHIN):
            await choice.is_shown.wait()
        if trio.current_time() >= choice.until:
            return ""
        text = prefixed(delivery.text, delivery.agent, account)
        file, brought = delivery.file, self._brought(delivery)
        message = content.changed(text) if file is None else content.brought(text, file)
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

    def _brought(self, delivery: Delivery) -> Brought | None:
        """Find the bytes of a delivery's file; raises as `BlobFolder.find`."""
        file = delivery.file
        if file is None:
            return None
        return Brought(bytes_of(self._blobs, file), file.name, file.media_type)

    async def look_up(self, delivery: Delivery) -> str | None:
        """Refuse: nobody needs to ask; see the port.

        Raises:
            DeliveryBusyError: always; `abilities` says that it is not to be asked.
        """
        await trio.lowlevel.checkpoint()
        raise DeliveryBusyError(f"{delivery.id} can simply be said again")

    def show_draft(self, draft: Draft) -> None:
        """Do nothing: drafts are shown by edits; see `presence`."""

    def show_typing(self, typing: Typing) -> None:
        """Show in the channel that an agent is writing."""
        typist = self._typists.get(typing.agent)
        # Nobody is seen to write for an agent without a bot.
        if typist is not None and not typing.is_over:
            typist.show(channel_of(typing.address))

    async def settle(self, correlation_id: str, reason: str) -> None:
        """Take back that an answer is to come, where a command gets none."""
        await trio.lowlevel.checkpoint()
        LOG.debug("settled", correlation_id=correlation_id, reason=reason)
        choice = self._shared.choices.unanswered(correlation_id)
        if choice is None or trio.current_time() >= choice.until:
            return
        with trio.move_on_after(SHOWN_WITHIN):
            await choice.is_shown.wait()
        account = self._accounts[choice.agent]
        try:
            await account.ask(lambda bot: bot.withdraw(choice.token))
        except PlatformError as error:
            LOG.warning("command left unanswered", why=str(error))
