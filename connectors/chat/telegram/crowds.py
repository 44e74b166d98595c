"""Which of our bots are in a group, and who its admins are; asked for now and then."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from connectors.chat.faults import PlatformError, RefusedError, ShutOutError
from connectors.chat.telegram.api import Call
from connectors.chat.telegram.wire import ChatMember
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.chat.telegram.bot import Bot

LOG = EventLog("telegram")

MOST_GROUPS = 2_000
"""Groups that are remembered; one that is forgotten is asked for again."""

# Chosen: Telegram tells us when a bot of ours comes or goes; this is for what was
# missed while we were away.
PRESENT_FOR = 3600.0
"""Seconds that it is believed that a bot is in a group, or is not."""

ADMINS_FOR = 300.0
"""Seconds that it is believed who the admins are. Telegram does not tell us when that
changes, unless the bot is one."""

AGAIN_AFTER = 30.0
"""Seconds after which is asked again what could not be learnt."""


@dataclass
class Crowd:
    """What is known of one group."""

    bots: dict[str, tuple[bool, float]] = field(
        default_factory=dict[str, tuple[bool, float]]
    )
    """By agent: whether its bot is there, and until when that is believed."""

    admins: frozenset[int] = frozenset()
    admins_until: float = 0.0


class Crowds:
    """The groups of all bots.

    Args:
        bots: by agent, in the order of the settings.
        most: groups that are remembered.
    """

    def __init__(self, bots: Mapping[str, Bot], most: int = MOST_GROUPS) -> None:
        self._bots = bots
        self._most = most
        self._crowds: OrderedDict[int, Crowd] = OrderedDict()

    def note(self, chat: int, agent: str, *, is_in: bool) -> None:
        """Take in that a bot is in a group, or is not."""
        until = trio.current_time() + PRESENT_FOR
        self._crowd(chat).bots[agent] = (is_in, until)

    async def present(self, chat: int) -> tuple[str, ...]:
        """Give whose bots are in a group, in the order of the settings.

        With one bot nobody is asked: it hears the group, or speaks there.
        """
        if len(self._bots) == 1:
            return tuple(self._bots)
        crowd, now = self._crowd(chat), trio.current_time()
        async with trio.open_nursery() as nursery:
            for agent, bot in self._bots.items():
                if crowd.bots.get(agent, (False, 0.0))[1] <= now:
                    nursery.start_soon(self._look, bot, chat, crowd)
        return tuple(agent for agent in self._bots if crowd.bots[agent][0])

    async def _look(self, bot: Bot, chat: int, crowd: Crowd) -> None:
        params = {"chat_id": chat, "user_id": bot.id}
        call = Call(method="getChatMember", params=params, timeout=bot.timeout)
        now = trio.current_time()
        try:
            found = (await bot.ask(call, ChatMember)).is_in, now + PRESENT_FOR
        except (RefusedError, ShutOutError):
            found = False, now + PRESENT_FOR
        except PlatformError as error:
            LOG.info("group not looked at", chat=chat, bot=bot.agent, why=str(error))
            found = crowd.bots.get(bot.agent, (False, 0.0))[0], now + AGAIN_AFTER
        crowd.bots[bot.agent] = found

    async def is_admin(self, chat: int, person: int, bot: Bot) -> bool:
        """Tell whether somebody is an admin of a group, as far as that is known."""
        crowd = self._crowd(chat)
        now = trio.current_time()
        if crowd.admins_until <= now:
            crowd.admins_until = now + AGAIN_AFTER  # others need not ask meanwhile
            params = {"chat_id": chat}
            call = Call(
                method="getChatAdministrators", params=params, timeout=bot.timeout
            )
            try:
                found = await bot.ask(call, tuple[ChatMember, ...])
            except PlatformError as error:
                LOG.info("admins not known", chat=chat, why=str(error))
                crowd.admins = frozenset()
            else:
                ids = (each.user.id for each in found if each.user is not None)
                crowd.admins = frozenset(ids)
                crowd.admins_until = trio.current_time() + ADMINS_FOR
        return person in crowd.admins

    def _crowd(self, chat: int) -> Crowd:
        crowd = self._crowds.setdefault(chat, Crowd())
        self._crowds.move_to_end(chat)
        while len(self._crowds) > self._most:
            self._crowds.popitem(last=False)
        return crowd
