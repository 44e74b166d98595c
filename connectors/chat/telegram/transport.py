"""The transport of Telegram: several agents' bots.

Each bot has its own listener, so that each is supervised by itself. If several of them
hear a message in a group, one submits it. An agent's answers go out by its own bot.
Telegram knows no ids of ours: a message whose answer got lost may have been sent, and
is sent again.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from actors.errors import DeliveryError
from actors.messages.deliveries import Abilities, Delivery, Typing
from actors.rules.text.limits import RecentMap
from connectors.chat.accounts import (
    AccountsTransport,
    ConnectorShelf,
    PlatformMetrics,
    prefixed,
)
from connectors.chat.inbound import SeenMessages
from connectors.chat.platforms import TransportParts
from connectors.chat.requests import translated
from connectors.chat.telegram import markup
from connectors.chat.telegram.account import TelegramAccount
from connectors.chat.telegram.events import MessageName, read_chat, read_message
from connectors.chat.telegram.listener import TelegramListener
from connectors.chat.telegram.platform import PLATFORM, TelegramConfig
from connectors.chat.telegram.senders import (
    METRICS,
    GroupMembers,
    GroupMoves,
    MessageNumbers,
    StoredTelegramBookmarks,
    TelegramBookmarks,
    TelegramPresence,
    TelegramSenders,
    TelegramShared,
    TelegramTarget,
)
from connectors.files.blobs import bytes_of
from runtime.telemetry.logs import EventLog

LOG = EventLog("telegram")

# Chosen: a delivery is asked for again within a minute or two, if its receipt could not
# be stored.
MOST_SAID = 2_000
"""Deliveries whose receipts are remembered."""


class TelegramTransport(AccountsTransport[TelegramAccount, TelegramListener]):
    """The bots of one company; see the port.

    Args:
        leases: a folder of this machine, where programs see which bots others hear;
            None: no other program is looked out for.
    """

    def __init__(
        self,
        name: str,
        config: TelegramConfig,
        parts: TransportParts,
        bookmarks: TelegramBookmarks,
        leases: Path | None = None,
    ) -> None:
        bots = {
            agent: TelegramAccount(agent, account, config, parts.network)
            for agent, account in config.accounts.items()
        }
        self._shared = TelegramShared(
            connector=name,
            config=config,
            bots=bots,
            members=GroupMembers(bots),
            moves=GroupMoves(bookmarks),
            numbers=MessageNumbers(),
            seen=SeenMessages(),
            bookmarks=bookmarks,
            metrics=PlatformMetrics(parts.once(METRICS), name),
            clock=parts.clock,
            ids=parts.ids,
            gates=parts.gates,
            voices=lambda: parts.backstage.services.voices,
            leases=leases,
        )
        self._blobs = parts.blobs
        self._name = parts.shown
        self._senders = TelegramSenders(self._shared)
        self.presence = TelegramPresence(
            self._senders, self._shared.numbers, parts.shown
        )
        listeners = {
            agent: TelegramListener(bot, self._shared) for agent, bot in bots.items()
        }
        super().__init__(LOG, bots, listeners)
        self._said: RecentMap[str, str] = RecentMap(MOST_SAID)
        """Receipts of late, by the deliveries' ids."""

    @property
    def abilities(self) -> Abilities:
        """The abilities: what nobody knows was said cannot be looked up."""
        config, limits = self._shared.config, PLATFORM.limits
        return Abilities(
            max_part_chars=limits.part,
            measure=limits.measure,
            notes_tools=False,
            pace=config.pace,
            per_minute=config.per_minute,
            paces_threads=True,
            shows_typing=True,
            typing_for=limits.typing_for,
            takes_back=True,
            draft_pace=config.draft_pace,
            files=PLATFORM.takes_files,
        )

    async def deliver(self, delivery: Delivery) -> str:
        """Send one message to its chat; see the port."""
        target = await self._senders.choose(delivery.account, delivery.address)
        if delivery.id in self._said:
            return self._said[delivery.id]
        text = prefixed(delivery, target.bot.agent, self._name).rstrip()
        params = markup.message(
            delivery,
            text,
            topic=target.topic,
            reply_to=self._reply_to(delivery, target),
        )
        file = delivery.file
        brought = None if file is None else (file, bytes_of(self._blobs, file))
        with translated():
            chat, number = await self._senders.say(target, params, text, brought)
        receipt = MessageName(chat, number, target.bot.agent).text
        self._said[delivery.id] = receipt
        return receipt

    def _reply_to(self, delivery: Delivery, target: TelegramTarget) -> int:
        """Return what a delivery replies to.

        In private it is seen anyway what an answer belongs to, but not which message is
        not answered.
        """
        name = read_message(delivery.reply_to)
        is_seen = target.is_direct and not delivery.trouble
        if delivery.part or is_seen or name is None:
            return 0
        if name.chat != target.chat:
            return 0  # the group has moved, and counts anew
        return self._shared.numbers.number(name, target.bot.agent)

    def show_typing(self, typing: Typing) -> None:
        """Show in the chat that an agent is writing."""
        name, topic = read_chat(typing.address.chat), typing.address.thread or "0"
        if name is None or typing.is_over or not topic.isdecimal():
            return
        whose = name.agent or typing.agent
        bot = self.accounts.get(whose)
        if bot is None:
            return  # nobody is seen to write for an agent without a bot
        try:
            self._senders.ready(whose)
        except DeliveryError:
            return
        bot.typing.show((self._shared.moves.now(name.chat), int(topic)))


def make_transport(
    name: str, config: TelegramConfig, parts: TransportParts
) -> TelegramTransport:
    """Make the transport of one connector's bots."""
    shelf = ConnectorShelf(parts.store, parts.clock, name)
    # Of several nodes the database says which one hears a bot: a node that was stopped
    # must not keep its successor out by a lock.
    leases = Path(tempfile.gettempdir()) if parts.peers is None else None
    return TelegramTransport(
        name, config, parts, StoredTelegramBookmarks(shelf), leases
    )
