"""Chooses whose bot sends; sends, edits and reacts by the bots.

`Groups` knows which bots are in which, which moved, and how bots number their messages.
A group that becomes a supergroup has another id, and stays the same chat inside:
conversation, appointments and settings know it by the id that it had first.

In a group that is no supergroup each bot numbers the messages for itself. What two bots
hear there is one message if chat, sender, second, words and files are the same; what
somebody says twice within a second is told apart by its order.

`TelegramShared` is what all bots of one connector share: metrics, settings, caches.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import msgspec
import trio

from actors.errors import DeliveryBusyError, DeliveryRefusedError
from actors.messages.deliveries import Edit, Reaction
from actors.messages.inbound import Address, SentFile
from actors.rules.text.limits import RecentMap
from actors.rules.text.translations import Voices
from connectors.chat.accounts import (
    SOON,
    ConnectorShelf,
    Family,
    KeptRows,
    PlatformCounters,
    PlatformMetrics,
    prefixed,
    ready_accounts,
)
from connectors.chat.inbound import SeenMessages
from connectors.chat.platforms import Gates
from connectors.chat.requests import (
    PlatformError,
    RefusedError,
    ShutOutError,
    Upload,
    translated,
)
from connectors.chat.telegram import markup
from connectors.chat.telegram.account import MovedError, TelegramAccount, TelegramCall
from connectors.chat.telegram.events import (
    ChatMember,
    MessageName,
    Reason,
    SentMessage,
    TelegramMessage,
    User,
    fingerprint,
    read_chat,
    read_message,
)
from connectors.chat.telegram.markup import Params
from connectors.chat.telegram.platform import TelegramConfig
from connectors.files.blobs import seconds_for
from runtime.clock import Clock
from runtime.errors import StoreError
from runtime.ids import IdSource
from runtime.telemetry.logs import EventLog

LOG = EventLog("telegram")

UNREADABLE = ("parse entities", "entities_too_long", "unsupported start tag")
"""What Telegram says of markup that it cannot read."""

NO_PICTURE = (
    "photo_invalid_dimensions",
    "photo_ext_invalid",
    "image_process_failed",
    "photo_save_file_invalid",
    "voice_messages_forbidden",
    "wrong file type",
)
"""What it says of a picture or sound that it does not show; it takes it as a file."""


@dataclass(frozen=True)
class TelegramTarget:
    """Which bot sends a message, and where."""

    bot: TelegramAccount
    chat: int
    """The chat's id at Telegram, as far as it is known."""

    topic: int
    is_direct: bool


class TelegramSenders:
    """Chooses which bot sends."""

    def __init__(self, shared: TelegramShared) -> None:
        self._bots: Mapping[str, TelegramAccount] = shared.bots
        self._members = shared.members
        self._moves: GroupMoves = shared.moves
        self._metrics = shared.metrics

    async def choose(self, agent: str, address: Address) -> TelegramTarget:
        """Find the bot that speaks for an agent in a chat.

        In a private chat it is the bot to which the person wrote. In a group it is the
        agent's own if that is there; else, and for the runtime's own words, the first
        of the settings that is.

        Raises:
            DeliveryBusyError: none listens now.
            DeliveryRefusedError: none can speak there.
        """
        name = read_chat(address.chat)
        topic = address.thread or "0"
        if name is None or not (topic.isascii() and topic.isdigit()):
            raise DeliveryRefusedError(f"{address.chat!r} is no chat of Telegram")
        chat, is_direct = self._moves.now(name.chat), name.chat > 0
        if is_direct:
            whose = name.agent or agent or next(iter(self._bots))
            bot = self.ready(whose)
        else:
            bot = await self._in_group(agent, chat)
        return TelegramTarget(bot, chat, int(topic), is_direct)

    def ready(self, agent: str) -> TelegramAccount:
        """Return the bot of an agent, which listens.

        Raises:
            DeliveryBusyError: it does not listen now.
            DeliveryRefusedError: there is none.
        """
        bot = self._bots.get(agent)
        if bot is None:
            raise DeliveryRefusedError(f"{agent!r} has no bot; add it to the settings")
        if not bot.is_open:
            why = bot.refused or "it is starting"
            raise DeliveryBusyError(f"the bot of {agent}: {why}", retry_after=SOON)
        return bot

    async def _in_group(self, agent: str, chat: int) -> TelegramAccount:
        ready = ready_accounts(self._bots, agent)
        present = await self._members.present(chat)
        for bot in ready:
            if bot.is_open and bot.agent in present:
                return bot
        raise DeliveryRefusedError(f"no bot of ours is in chat {chat}")

    async def say(
        self,
        target: TelegramTarget,
        params: Params,
        text: str,
        file: tuple[SentFile, Path] | None = None,
    ) -> tuple[int, int]:
        """Send a message; once more, where that helps, in plain text or to a new id.

        Args:
            text: the same without markup.
            file: what it brings, and where its bytes lie.

        Returns:
            The chat's id, and the number of the message there.

        Raises:
            PlatformError: as it says.
        """
        chat = target.chat
        try:
            number = await self._send(target.bot, chat, params, text, file)
        except MovedError as error:
            # The old number of what it replies to means nothing in the new chat.
            kept = {k: v for k, v in params.items() if k != "reply_parameters"}
            await self.learn_move(chat, error.chat)
            chat = error.chat
            number = await self._send(target.bot, chat, kept, text, file)
        return chat, number

    async def _send(
        self,
        bot: TelegramAccount,
        chat: int,
        params: Params,
        text: str,
        file: tuple[SentFile, Path] | None,
    ) -> int:
        call = _call(bot, params | {"chat_id": chat}, file)
        try:
            return await _send_once(bot, call, chat)
        except RefusedError as error:
            if error.says(*UNREADABLE):
                self.note_plain(bot, error)
                params = markup.plain(params, text)
            elif file is not None and error.says(*NO_PICTURE):
                LOG.warning("picture refused; sent as a file", why=str(error))
                file = (msgspec.structs.replace(file[0], kind="document"), file[1])
            else:
                raise
        call = _call(bot, params | {"chat_id": chat}, file)
        return await _send_once(bot, call, chat)

    def note_plain(self, bot: TelegramAccount, error: RefusedError) -> None:
        """Note that markup was refused, so that it is said as plain text."""
        self._metrics.count("plain", bot.agent)
        LOG.warning("markup refused; said as plain text", bot=bot.agent, why=str(error))

    async def learn_move(self, old: int, new: int) -> None:
        """Learn from a refusal that a group has another id."""
        try:
            await self._moves.moved(old, new)
        except StoreError as error:
            LOG.warning("move not kept", chat=old, why=str(error))  # told again later


def _call(
    bot: TelegramAccount, params: Params, file: tuple[SentFile, Path] | None
) -> TelegramCall:
    """Make the one request that says something."""
    if file is None:
        return TelegramCall(
            method="sendMessage", params=params, timeout=bot.timeout, may_repeat=False
        )
    sent, path = file
    way = markup.way_of(sent)
    return TelegramCall(
        method=way.method,
        params=params,
        upload=Upload(way.field, path, sent.name, sent.media_type),
        timeout=seconds_for(sent.size, bot.timeout),
        silence=bot.timeout,
        may_repeat=False,
    )


async def _send_once(bot: TelegramAccount, call: TelegramCall, chat: int) -> int:
    return (await bot.ask(call, SentMessage, chat)).message_id


SAME = "message is not modified"
GONE = "message to delete not found"


class TelegramPresence:
    """Edits and reactions by the bots."""

    def __init__(
        self,
        senders: TelegramSenders,
        numbers: MessageNumbers,
        shown: Callable[[str], str],
    ) -> None:
        self._name = shown
        self._senders = senders
        self._numbers = numbers

    async def edit(self, edit: Edit) -> None:
        """Change the text of a message; see the port."""
        name = read_message(edit.receipt)
        if name is None or not name.number:
            raise DeliveryRefusedError(f"{edit.receipt!r} is no message of ours")
        bot = self._senders.ready(name.agent)
        place: Params = {"chat_id": name.chat, "message_id": name.number}
        with translated():
            if edit.text:
                text = prefixed(edit, bot.agent, self._name)
                await self._change(bot, name.chat, place, text)
            else:
                await self._do(bot, "deleteMessage", name.chat, place, GONE)

    async def _change(
        self, bot: TelegramAccount, chat: int, place: Params, text: str
    ) -> None:
        params = place | markup.words(text)
        try:
            await self._do(bot, "editMessageText", chat, params, SAME)
        except RefusedError as error:
            if not error.says(*UNREADABLE):
                raise
            self._senders.note_plain(bot, error)
            bare = markup.plain(params, text)
            await self._do(bot, "editMessageText", chat, bare, SAME)

    async def _do(
        self,
        bot: TelegramAccount,
        method: str,
        chat: int,
        params: Params,
        harmless: str,
    ) -> None:
        call = TelegramCall(method=method, params=params, timeout=bot.timeout)
        try:
            await bot.do(call, chat)
        except RefusedError as error:
            if not error.says(harmless):
                raise

    async def react(self, reaction: Reaction) -> None:
        """Put a sign at a message; see the port.

        A bot has one reaction at a message: a new one takes the place of the old.
        """
        name = read_message(reaction.message)
        target = await self._senders.choose(reaction.agent, reaction.address)
        number = 0 if name is None else self._numbers.number(name, target.bot.agent)
        if name is None or not number:
            text = f"{target.bot.agent}'s bot does not know {reaction.message!r}"
            raise DeliveryRefusedError(text)
        params: Params = {
            "chat_id": name.chat,
            "message_id": number,
            "reaction": markup.reaction(reaction.sign),
        }
        call = TelegramCall(
            method="setMessageReaction", params=params, timeout=target.bot.timeout
        )
        with translated():
            await target.bot.do(call, name.chat)


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
        self._members: RecentMap[int, Crowd] = RecentMap(most)

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
        crowd = self._members[chat] = self._members.get(chat) or Crowd()
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
        self._heard: RecentMap[str, dict[str, list[int]]] = RecentMap(most)
        """By what all see alike: each bot's numbers, in the order of hearing."""

        self._names: RecentMap[str, tuple[str, int]] = RecentMap(most)
        """By a message's name: what all see alike, and its place there."""

    def name(self, spoken: TelegramMessage, agent: str) -> MessageName:
        """Name a message as all bots would."""
        alike = fingerprint(spoken)
        heard = self._heard[alike] = self._heard.get(alike, {})
        numbers = heard.setdefault(agent, [])
        if spoken.message_id not in numbers:
            numbers.append(spoken.message_id)
        place = numbers.index(spoken.message_id)
        digest = hashlib.sha256(f"{alike}/{place}".encode()).hexdigest()[:32]
        name = MessageName(spoken.chat, 0, print=f"~{digest}")
        self._names[name.text] = (alike, place)
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


Outcome = (
    Reason
    | Literal[
        "handed_in",
        "seen",
        "refused",
        "lost",
        "later",
        "button",
        "unknown_button",
        "moved",
        "membership",
        "media_left_out",
    ]
)
"""The outcomes of updates, beside the reasons to skip one. A message was stored
(`handed_in`), refused by the company for good (`refused`), or not storable (`lost`).
`seen`: another bot submitted it. `later`: the webhook is to bring it again. The rest is
about buttons, groups and files."""

METRICS = partial(
    PlatformCounters,
    events=Family(
        "callboard_telegram_updates",
        "What became of what Telegram sent, by account (the agent's name).",
        "outcome",
    ),
    heard=Family(
        "callboard_telegram_polled_timestamp_seconds",
        "When a bot last heard from Telegram, in Unix seconds.",
    ),
    up=Family("callboard_telegram_up", "1 while a bot hears Telegram."),
    reconnects=Family(
        "callboard_telegram_reconnects",
        "How often a bot heard from Telegram again after trouble.",
    ),
    conflicts=Family(
        "callboard_telegram_conflicts",
        "How often another program asked for a bot's messages.",
    ),
    plain=Family(
        "callboard_telegram_plain",
        "Messages whose markup Telegram refused: said again as plain text.",
    ),
)
"""Registers the metrics of all connectors of this platform."""


@dataclass(frozen=True)
class TelegramShared:
    """All that the bots of one connector share."""

    connector: str
    """The name of the connector, as in the settings."""

    config: TelegramConfig
    bots: Mapping[str, TelegramAccount]
    """By agent, in the order of the settings."""

    members: GroupMembers
    moves: GroupMoves
    numbers: MessageNumbers
    seen: SeenMessages
    bookmarks: TelegramBookmarks
    metrics: PlatformMetrics[Outcome]
    clock: Clock
    ids: IdSource
    gates: Gates
    """Where webhooks come in."""

    voices: Callable[[], Voices]
    """Gives what the commands are called in each language."""

    leases: Path | None
    """Where it is kept which program on this machine hears which bot."""

    def users(self) -> list[User]:
        """Say who our bots are."""
        return [bot.user for bot in self.bots.values()]

    def agent_of(self, user: int) -> str:
        """Return whose bot somebody is; empty: nobody's."""
        found = (agent for agent, bot in self.bots.items() if bot.id == user)
        return next(found, "")
