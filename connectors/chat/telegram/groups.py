"""Groups: which bots are in them, which moved, and how bots number their messages.

A group that becomes a supergroup has another id, and stays the same chat inside:
conversation, appointments and settings know it by the id that it had first.

In a group that is no supergroup each bot numbers the messages for itself. What two bots
hear there is one message if chat, sender, second, words and files are the same; what
somebody says twice within a second is told apart by its order.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import msgspec
import trio

from connectors.chat.bookmarks import ConnectorShelf, KeptRows
from connectors.chat.errors import PlatformError, RefusedError, ShutOutError
from connectors.chat.telegram.api import TelegramCall
from connectors.chat.telegram.types import ChatMember, MessageName, fingerprint
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.chat.telegram.account import TelegramAccount
    from connectors.chat.telegram.events import TelegramMessage

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
    """One group: its bots and its admins."""

    bots: dict[str, tuple[bool, float]] = field(
        default_factory=dict[str, tuple[bool, float]]
    )
    """By agent: whether its bot is there, and until when that is believed."""

    admins: frozenset[int] = frozenset()
    admins_until: float = 0.0


class GroupMembers:
    """Which bots are in which group, and who the admins are."""

    def __init__(
        self, bots: Mapping[str, TelegramAccount], most: int = MOST_GROUPS
    ) -> None:
        self._bots = bots
        self._most = most
        self._members: OrderedDict[int, Crowd] = OrderedDict()

    def note(self, chat: int, agent: str, *, is_in: bool) -> None:
        """Note that a bot is in a group, or is not."""
        until = trio.current_time() + PRESENT_FOR
        self._crowd(chat).bots[agent] = (is_in, until)

    async def present(self, chat: int) -> tuple[str, ...]:
        """Return whose bots are in a group, in the order of the settings.

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

    async def _look(self, bot: TelegramAccount, chat: int, crowd: Crowd) -> None:
        params = {"chat_id": chat, "user_id": bot.id}
        call = TelegramCall(method="getChatMember", params=params, timeout=bot.timeout)
        now = trio.current_time()
        try:
            found = (await bot.ask(call, ChatMember)).is_in, now + PRESENT_FOR
        except (RefusedError, ShutOutError):
            found = False, now + PRESENT_FOR
        except PlatformError as error:
            LOG.info("group not looked at", chat=chat, bot=bot.agent, why=str(error))
            found = crowd.bots.get(bot.agent, (False, 0.0))[0], now + AGAIN_AFTER
        crowd.bots[bot.agent] = found

    async def is_admin(self, chat: int, person: int, bot: TelegramAccount) -> bool:
        """Return whether somebody is an admin of a group, as far as that is known."""
        crowd = self._crowd(chat)
        now = trio.current_time()
        if crowd.admins_until <= now:
            crowd.admins_until = now + AGAIN_AFTER  # others need not ask meanwhile
            params = {"chat_id": chat}
            call = TelegramCall(
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
        crowd = self._members.setdefault(chat, Crowd())
        self._members.move_to_end(chat)
        while len(self._members) > self._most:
            self._members.popitem(last=False)
        return crowd


MOST_CHATS = 10_000
"""Groups of which is remembered whether they moved; others are looked up again."""


class GroupMoves:
    """Groups that became supergroups, by their old and new ids."""

    def __init__(self, bookmarks: TelegramBookmarks) -> None:
        self._bookmarks = bookmarks
        self._first: OrderedDict[int, int] = OrderedDict()
        """By id now: the id at first."""

        self._now: dict[int, int] = {}
        """By id at first: the id now, of those that moved."""

    async def moved(self, old: int, new: int) -> bool:
        """Keep that a group has another id; False if that was known.

        Raises:
            StoreError: the disk fails.
        """
        if self._now.get(old) == new or await self.first(new) == old:
            return False
        await self._bookmarks.move(old, new)
        self._note(old, new)
        return True

    async def first(self, chat: int) -> int:
        """Return the id by which a chat is known inside.

        Raises:
            StoreError: the disk fails.
        """
        if chat > 0:
            return chat  # a person
        if chat not in self._first:
            old = await self._bookmarks.moved(chat)
            self._note(old or chat, chat)
        self._first.move_to_end(chat)
        return self._first[chat]

    def now(self, chat: int) -> int:
        """Return the id that a chat has at Telegram, as far as it is known.

        Where it is not, Telegram tells it with its refusal.
        """
        return self._now.get(chat, chat)

    def _note(self, old: int, new: int) -> None:
        self._first[new] = old
        if old != new:
            self._now[old] = new
        while len(self._first) > MOST_CHATS:
            _, gone = self._first.popitem(last=False)
            self._now.pop(gone, None)


# Chosen: answers come within the time of a turn. Of a message that is forgotten the
# answer is no reply; it is said all the same.
MOST_PRINTS = 5_000
"""Messages whose numbers are remembered."""


class MessageNumbers:
    """Each bot's own numbers for the messages of basic groups."""

    def __init__(self, most: int = MOST_PRINTS) -> None:
        self._most = most
        self._heard: OrderedDict[str, dict[str, list[int]]] = OrderedDict()
        """By what all see alike: each bot's numbers, in the order of hearing."""

        self._names: OrderedDict[str, tuple[str, int]] = OrderedDict()
        """By a message's name: what all see alike, and its place there."""

    def name(self, spoken: TelegramMessage, agent: str) -> MessageName:
        """Name a message as all bots would."""
        alike = fingerprint(spoken)
        numbers = self._heard.setdefault(alike, {}).setdefault(agent, [])
        if spoken.message_id not in numbers:
            numbers.append(spoken.message_id)
        place = numbers.index(spoken.message_id)
        digest = hashlib.sha256(f"{alike}/{place}".encode()).hexdigest()[:32]
        name = MessageName(spoken.chat, 0, print=f"~{digest}")
        self._names[name.text] = (alike, place)
        for table in (self._heard, self._names):
            while len(table) > self._most:
                table.popitem(last=False)
        return name

    def number(self, name: MessageName, agent: str) -> int:
        """Return a bot's number of a message; 0: it has none, or it is forgotten."""
        if name.agent not in {"", agent}:
            return 0
        if not name.print:
            return name.number
        alike, place = self._names.get(name.text, ("", 0))
        numbers = self._heard.get(alike, {}).get(agent, [])
        return numbers[place] if place < len(numbers) else 0


OFFSETS, MOVES = "telegram_offset", "telegram_moved"

KEPT_FOR = 24 * 3600.0
"""Seconds that Telegram keeps what was not confirmed. Source: "Getting updates"."""


class TelegramBookmarks(Protocol):
    """Remembers where a bot continues reading after a restart."""

    async def read(self, bot: int) -> int:
        """Return the number of the first update that was not taken; 0: not known."""
        ...

    async def write(self, bot: int, offset: int) -> None:
        """Keep that number; call it only after all before it was accepted."""
        ...

    async def moved(self, chat: int) -> int:
        """Return the id that a group had before it moved; 0: it did not."""
        ...

    async def move(self, old: int, new: int) -> None:
        """Keep that a group has another id from now on."""
        ...


class Offset(msgspec.Struct, frozen=True):
    """The body of a row: how far a bot was heard."""

    offset: int
    at: float
    """Unix seconds."""


class Move(msgspec.Struct, frozen=True):
    """The body of a row: what a group was called before."""

    old: int


class StoredTelegramBookmarks:
    """Keeps them in the database; see the port. All raise `StoreError`."""

    def __init__(self, shelf: ConnectorShelf) -> None:
        self._clock = shelf.clock
        self._offsets = KeptRows(shelf, OFFSETS, Offset)
        self._moves = KeptRows(shelf, MOVES, Move)

    async def read(self, bot: int) -> int:
        """Return how far a bot was heard; if it is not known, all is heard again."""
        found = await self._offsets.read(bot)
        if found is None:
            return 0
        is_fresh = 0 <= self._clock.wall() - found.at < KEPT_FOR
        return found.offset if is_fresh else 0

    async def write(self, bot: int, offset: int) -> None:
        """Keep how far a bot was heard; see the port."""
        # Why it may wait: an older place only repeats what the database knows.
        found = Offset(offset, self._clock.wall())
        await self._offsets.write(bot, found, may_wait=True)

    async def moved(self, chat: int) -> int:
        """Return what a group was called before; see the port."""
        found = await self._moves.read(chat)
        return 0 if found is None else found.old

    async def move(self, old: int, new: int) -> None:
        """Keep that a group moved; see the port."""
        await self._moves.write(new, Move(old), may_wait=False)
