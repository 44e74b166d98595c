"""Telegram as a place where people write: several agents' bots.

Each bot listens by itself (`listeners`), so that each is supervised by itself; what
several of them hear in a group is handed in by one. What an agent says goes out by its
own bot. Telegram knows no ids of ours: what was asked and not answered may stand there,
and is said again.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from actors.deliveries import Abilities
from actors.errors import DeliveryBusyError, DeliveryError
from connectors.blobs import bytes_of
from connectors.chat.faults import translated
from connectors.chat.limits import LIMITS, takes_files
from connectors.chat.seen import Seen
from connectors.chat.telegram import content
from connectors.chat.telegram.bot import Bot
from connectors.chat.telegram.crowds import Crowds
from connectors.chat.telegram.figures import TelegramFigures
from connectors.chat.telegram.listening import BotListener
from connectors.chat.telegram.moves import Moves
from connectors.chat.telegram.names import MessageName, read_chat, read_message
from connectors.chat.telegram.presence import TelegramPresence
from connectors.chat.telegram.prints import Prints
from connectors.chat.telegram.shared import Shared
from connectors.chat.telegram.speaking import Speakers, prefixed
from connectors.chat.telegram.typist import Typist
from connectors.gates import Gates
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import httpx

    from actors.deliveries import Delivery, Draft, Typing
    from actors.transport import Ingress, Listening
    from connectors.blobs import BlobFolder
    from connectors.chat.telegram.bookmarks import Bookmarks
    from connectors.chat.telegram.figures import TelegramCounters
    from connectors.chat.telegram.speaking import Target
    from connectors.telegram_config import TelegramConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource

LOG = EventLog("telegram")

# Chosen: a delivery is asked for again within a minute or two, if its receipt could not
# be stored.
MOST_SAID = 2_000
"""Deliveries whose receipts are remembered."""


@dataclass(frozen=True)
class Surroundings:
    """What the transport is given by the company."""

    clock: Clock
    ids: IdSource
    counters: TelegramCounters
    bookmarks: Bookmarks
    gates: Gates = field(default_factory=Gates)
    """Where webhooks come in."""

    leases: Path | None = None
    """A folder of this machine; None: no other program is looked out for."""

    network: httpx.AsyncBaseTransport | None = None
    """What carries the requests; None is the network."""

    blobs: BlobFolder | None = None
    """Has the bytes of files that agents send."""


class TelegramTransport:
    """The bots of one company; see the port.

    Args:
        name: of the connector, as in the settings.
        config: the bots.
        given: what the company gives.
    """

    def __init__(self, name: str, config: TelegramConfig, given: Surroundings) -> None:
        bots = {
            agent: Bot(agent, account, config, given.network)
            for agent, account in config.accounts.items()
        }
        self._shared = Shared(
            connector=name,
            config=config,
            bots=bots,
            crowds=Crowds(bots),
            moves=Moves(given.bookmarks),
            prints=Prints(),
            seen=Seen(),
            bookmarks=given.bookmarks,
            figures=TelegramFigures(given.counters, name),
            clock=given.clock,
            ids=given.ids,
            gates=given.gates,
            leases=given.leases,
        )
        self._blobs = given.blobs
        self._typists = {agent: Typist(bot) for agent, bot in bots.items()}
        self._speakers = Speakers(self._shared)
        self._presence = TelegramPresence(self._speakers, self._shared.prints)
        self._listeners = {
            agent: BotListener(bot, self._typists[agent], self._shared)
            for agent, bot in bots.items()
        }
        self._said: OrderedDict[str, str] = OrderedDict()
        """Receipts of late, by the deliveries' ids."""

    @property
    def abilities(self) -> Abilities:
        """What it can do: what nobody knows was said cannot be looked up."""
        config, limits = self._shared.config, LIMITS["telegram"]
        return Abilities(
            max_part_chars=limits.part,
            markup=limits.markup,
            pace=config.pace,
            per_minute=config.per_minute,
            paces_threads=True,
            shows_typing=True,
            typing_for=limits.typing_for,
            takes_back=True,
            draft_pace=config.draft_pace,
            files=takes_files("telegram"),
        )

    @property
    def presence(self) -> TelegramPresence:
        """How it edits and reacts."""
        return self._presence

    @property
    def listeners(self) -> Mapping[str, Listening]:
        """The bots' listeners, by agent."""
        return self._listeners

    @property
    def trouble(self) -> str:
        """Why nobody is heard now; empty: one bot at least hears Telegram."""
        bots = self._shared.bots
        if not all(bot.trouble for bot in bots.values()):
            return ""
        return "; ".join(f"{agent}: {bot.trouble}" for agent, bot in bots.items())

    async def listen(self, ingress: Ingress) -> None:
        """Hear all bots until cancelled, or until none is let in."""
        async with trio.open_nursery() as nursery:
            for listener in self._listeners.values():
                nursery.start_soon(listener.listen, ingress)

    async def deliver(self, delivery: Delivery) -> str:
        """Say one message in its chat; see the port."""
        target = await self._speakers.choose(delivery.agent, delivery.address)
        if delivery.id in self._said:
            return self._said[delivery.id]
        text = prefixed(delivery.text, delivery.agent, target.bot).rstrip()
        params = content.message(
            delivery,
            text,
            topic=target.topic,
            reply_to=self._reply_to(delivery, target),
        )
        file = delivery.file
        brought = None if file is None else (file, bytes_of(self._blobs, file))
        with translated():
            chat, number = await self._speakers.say(target, params, text, brought)
        receipt = MessageName(chat, number, target.bot.agent).text
        self._said[delivery.id] = receipt
        while len(self._said) > MOST_SAID:
            self._said.popitem(last=False)
        return receipt

    def _reply_to(self, delivery: Delivery, target: Target) -> int:
        """Give what a delivery replies to; in private chats that is seen anyway."""
        name = read_message(delivery.reply_to)
        if delivery.part or target.is_direct or name is None:
            return 0
        if name.chat != target.chat:
            return 0  # the group has moved, and counts anew
        return self._shared.prints.number(name, target.bot.agent)

    async def look_up(self, delivery: Delivery) -> str | None:
        """Refuse: bots cannot read what was said; see the port.

        Raises:
            DeliveryBusyError: always; `abilities` says that it is not to be asked.
        """
        await trio.lowlevel.checkpoint()
        raise DeliveryBusyError(f"{delivery.id} cannot be looked up on Telegram")

    def show_draft(self, draft: Draft) -> None:
        """Do nothing: drafts are shown by edits; see `presence`."""

    def show_typing(self, typing: Typing) -> None:
        """Show in the chat that an agent is writing."""
        name, topic = read_chat(typing.address.chat), typing.address.thread or "0"
        if name is None or typing.is_over or not topic.isdecimal():
            return
        whose = name.agent or typing.agent
        typist = self._typists.get(whose)
        if typist is None:
            return  # nobody is seen to write for an agent without a bot
        try:
            self._speakers.ready(whose)
        except DeliveryError:
            return
        typist.show(self._shared.moves.now(name.chat), int(topic))

    async def settle(self, correlation_id: str, reason: str) -> None:
        """Do nothing: who waits for an answer was told by a message."""
        await trio.lowlevel.checkpoint()
        LOG.debug("settled", correlation_id=correlation_id, reason=reason)
