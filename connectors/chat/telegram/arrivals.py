"""What Telegram sent one bot: chat by chat, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import trio

from connectors.chat.faults import ShutOutError
from connectors.chat.telegram.handing import Handing
from connectors.chat.telegram.names import MessageName
from connectors.chat.telegram.updates import (
    Event,
    Membership,
    Moved,
    Pressed,
    Spoken,
    read,
)
from connectors.chat.telegram.wire import Malformed
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from actors.transport import Ingress
    from connectors.chat.telegram.bot import Bot
    from connectors.chat.telegram.figures import Outcome
    from connectors.chat.telegram.shared import Shared
    from connectors.chat.telegram.wire import Update

LOG = EventLog("telegram")

MOVES = 0
"""Stands for the chat of what concerns two."""

CHATS_AT_ONCE = 8
"""Chats of one batch that are brought in side by side."""

T = TypeVar("T")


class Arrivals:
    """Brings in what one bot hears.

    Args:
        bot: which one.
        shared: what all bots share.
    """

    def __init__(self, bot: Bot, shared: Shared) -> None:
        self._bot = bot
        self._shared = shared
        self._handing = Handing(bot, shared)

    async def take(
        self, updates: Iterable[Update | Malformed], ingress: Ingress
    ) -> None:
        """Bring in a batch; comes back when all of it was accepted.

        Raises:
            ShutOutError: the bot is not let in.
        """
        by_chat = self._by_chat(updates)
        # First, as it decides how the chats are called that all else is from.
        for move in by_chat.pop(MOVES, ()):
            await self._take(move, ingress)
        refused: list[ShutOutError] = []
        limiter = trio.CapacityLimiter(CHATS_AT_ONCE)

        async def run(events: Sequence[Event]) -> None:
            async with limiter:
                try:
                    for event in events:
                        await self._take(event, ingress)
                except ShutOutError as error:
                    refused.append(error)

        async with trio.open_nursery() as nursery:
            for events in by_chat.values():
                nursery.start_soon(run, events)
        if refused:
            raise refused[0]

    def _by_chat(self, updates: Iterable[Update | Malformed]) -> dict[int, list[Event]]:
        """Sort what came by chat; what is nothing to us is counted."""
        users = self._shared.users()
        chats: dict[int, list[Event]] = {}
        for update in updates:
            found = read(update, users)
            if isinstance(found, str):
                self._count(found)
                if isinstance(update, Malformed):
                    LOG.warning(
                        "update not understood",
                        bot=self._bot.agent,
                        update=update.update_id,
                        why=update.why,
                    )
                continue
            chats.setdefault(chat_of(found), []).append(found)
        return chats

    async def _take(self, event: Event, ingress: Ingress) -> None:
        shared = self._shared
        match event:
            case Spoken():
                await self._hear(event, ingress)
            case Pressed():
                chat = await self._kept(lambda: shared.moves.first(event.chat))
                await self._handing.press(event, chat, ingress)
            case Moved(old=old, new=new):
                await self._kept(lambda: shared.moves.moved(old, new))
                self._count("moved")
                LOG.info("group moved", bot=self._bot.agent, old=old, new=new)
            case Membership(chat=chat, is_in=is_in):
                shared.crowds.note(chat, self._bot.agent, is_in=is_in)
                self._count("membership")

    async def _hear(self, spoken: Spoken, ingress: Ingress) -> None:
        shared, agent = self._shared, self._bot.agent
        if not spoken.is_direct:
            shared.crowds.note(spoken.chat, agent, is_in=True)
        name = self._name(spoken)
        if not await shared.seen.claim(name.text):
            self._count("seen")
            return
        try:
            chat = await self._kept(lambda: shared.moves.first(spoken.chat))
            await self._handing.speak(spoken, chat, name, ingress)
            shared.seen.done(name.text)
        finally:
            shared.seen.give_back(name.text)

    def _name(self, spoken: Spoken) -> MessageName:
        """Name a message so that all bots that hear it name it alike."""
        if spoken.is_direct:
            return MessageName(spoken.chat, spoken.message_id, self._bot.agent)
        if spoken.is_basic and len(self._shared.bots) > 1:
            return self._shared.prints.name(spoken, self._bot.agent)
        return MessageName(spoken.chat, spoken.message_id)

    async def _kept(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask the database until it answers: an answer goes by what is known there."""
        while True:
            try:
                return await ask()
            except StoreError as error:
                LOG.warning("message waits", bot=self._bot.agent, why=str(error))
                await trio.sleep(1.0)

    def _count(self, outcome: Outcome) -> None:
        self._shared.figures.update(self._bot.agent, outcome)


def chat_of(event: Event) -> int:
    """Say in which chat something happened."""
    return MOVES if isinstance(event, Moved) else event.chat
