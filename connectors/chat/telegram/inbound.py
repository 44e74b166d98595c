"""Brings in what one bot hears: chat by chat, in order; an album as one message.

No file is fetched for somebody who may not write: a stranger has us carry nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec
import trio

from actors.messages.inbound import Address, Attachment, Inbound, Quoted
from actors.transport import Ingress
from connectors.chat.inbound import (
    MOST_IN_ALL,
    Ended,
    Submission,
    Trouble,
    fetch_files,
)
from connectors.chat.markup.dialect import UNKNOWN, command_of, utf16
from connectors.chat.requests import (
    PlatformError,
    RefusedError,
    ShutOutError,
    ask_for_file,
)
from connectors.chat.telegram import markup
from connectors.chat.telegram.account import TelegramAccount, TelegramCall
from connectors.chat.telegram.events import (
    ChatName,
    Event,
    FilePath,
    Malformed,
    Membership,
    MessageName,
    Moved,
    Pressed,
    TelegramAttachment,
    TelegramMessage,
    Update,
    User,
    read,
    with_agents,
)
from connectors.chat.telegram.platform import PLATFORM
from connectors.chat.telegram.senders import Outcome, TelegramShared
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog

LOG = EventLog("telegram")

LONGEST_QUOTE = 2_000
"""Characters of a quoted message that are told to the agents."""


class TelegramSubmitter:
    """Submits the messages that one bot hears."""

    def __init__(self, bot: TelegramAccount, shared: TelegramShared) -> None:
        self._bot = bot
        self._shared = shared
        self._messages = Submission(LOG, self._count, self._tell)
        self._buttons = Submission(LOG, self._count_button, self._tell)

    async def speak(
        self, spoken: TelegramMessage, chat: int, name: MessageName, ingress: Ingress
    ) -> None:
        """Submit a message, however long that takes.

        Args:
            chat: the id that its chat had at first.
            name: what it is called inside.

        Raises:
            ShutOutError: the bot is not let in.
        """
        inbound = await self._bare(spoken, chat, name)
        await self._messages.submit(inbound, ingress, partial(self._filled, spoken))

    async def press(self, pressed: Pressed, chat: int, ingress: Ingress) -> None:
        """Take a pressed button for the command that it stands for.

        Whoever presses it has the rights of whoever writes the command.

        Raises:
            ShutOutError: the bot is not let in.
        """
        command = command_of(pressed.says)
        if not (pressed.chat and command):
            self._count("unknown_button")
            await self._answer(pressed, UNKNOWN)
            return
        inbound = await self._pressed(pressed, chat, command)
        await self._buttons.submit(inbound, ingress, None)
        await self._answer(pressed, "")

    async def _tell(self, inbound: Inbound, words: str, _: Trouble) -> None:
        chat = self._shared.moves.now(int(inbound.address.chat.partition("@")[0]))
        params = markup.words(words) | {"chat_id": chat}
        if inbound.address.thread:
            params["message_thread_id"] = int(inbound.address.thread)
        call = TelegramCall(
            method="sendMessage", params=params, timeout=self._bot.timeout
        )
        await self._try(call, chat)

    async def _answer(self, pressed: Pressed, words: str) -> None:
        """End the waiting that a pressed button shows."""
        params: markup.Params = {"callback_query_id": pressed.query_id}
        if words:
            params["text"] = words
        call = TelegramCall(
            method="answerCallbackQuery", params=params, timeout=self._bot.timeout
        )
        await self._try(call)

    async def _try(self, call: TelegramCall, chat: int = 0) -> None:
        try:
            await self._bot.do(call, chat)
        except ShutOutError:
            raise
        except PlatformError as error:
            LOG.warning("notice not said", bot=self._bot.agent, why=str(error))

    async def _bare(
        self, spoken: TelegramMessage, chat: int, name: MessageName
    ) -> Inbound:
        """Return a message as it came, with nothing fetched."""
        shared = self._shared
        roles: tuple[str, ...] = ()
        present: tuple[str, ...] = (self._bot.agent,)
        if not spoken.is_direct:
            is_admin = spoken.is_anonymous or await shared.members.is_admin(
                spoken.chat, spoken.sender_id, self._bot
            )
            roles = ("admin",) if is_admin else ()
            present = await shared.members.present(spoken.chat)
        called = {shared.agent_of(each) for each in spoken.called}
        return Inbound(
            id=shared.ids.new(),
            platform="telegram",
            platform_id=name.text,
            address=self._address(chat, spoken.topic, is_direct=spoken.is_direct),
            sender_id=str(spoken.sender_id),
            sender_name=spoken.sender_name,
            language=spoken.language,
            text=self._worded(spoken),
            received_at=shared.clock.wall(),
            is_direct=spoken.is_direct,
            agent=self._bot.agent if spoken.is_direct else "",
            reply_to=self._replied(spoken),
            quoted=quoted(spoken, shared.agent_of(spoken.reply_to_sender)),
            mentions=tuple(each for each in shared.bots if each in called),
            present=present,
            roles=roles,
            is_bot=spoken.is_bot,
            platform_fields=specifics(spoken),
        )

    async def _pressed(self, pressed: Pressed, chat: int, text: str) -> Inbound:
        shared, bot, is_direct = self._shared, self._bot, pressed.chat > 0
        is_admin = not is_direct and await shared.members.is_admin(
            pressed.chat, pressed.sender_id, bot
        )
        return Inbound(
            id=shared.ids.new(),
            platform="telegram",
            platform_id=f"button/{pressed.query_id}",
            address=self._address(chat, pressed.topic, is_direct=is_direct),
            sender_id=str(pressed.sender_id),
            sender_name=pressed.sender_name,
            language=pressed.language,
            text=text,
            received_at=shared.clock.wall(),
            is_direct=is_direct,
            agent=bot.agent if is_direct else "",
            mentions=(bot.agent,),
            present=(bot.agent,)
            if is_direct
            else await shared.members.present(pressed.chat),
            roles=("admin",) if is_admin else (),
        )

    def _address(self, chat: int, topic: int, *, is_direct: bool) -> Address:
        name = ChatName(chat, self._bot.agent if is_direct else "")
        thread = str(topic) if topic else ""
        return Address(self._shared.connector, name.text, thread)

    def _worded(self, spoken: TelegramMessage) -> str:
        """Return the words; what names a bot of ours names its agent."""
        names = {b.user.username: agent for agent, b in self._shared.bots.items()}
        return with_agents(spoken.text, names)

    def _replied(self, spoken: TelegramMessage) -> str:
        """Return what the message is called that this one replies to."""
        if not spoken.reply_to:
            return ""
        agent = self._shared.agent_of(spoken.reply_to_sender)
        if spoken.is_direct or (spoken.is_basic and agent == self._bot.agent):
            agent = self._bot.agent
        elif spoken.is_basic and len(self._shared.bots) > 1:
            return ""  # this bot's number of it means nothing to the others
        return MessageName(spoken.chat, spoken.reply_to, agent).text

    async def _filled(self, spoken: TelegramMessage, inbound: Inbound) -> Inbound:
        """Fetch what came with a message."""
        most = min(self._shared.config.max_media_bytes, MOST_IN_ALL)

        def note(why: str) -> None:
            self._count("media_left_out")
            LOG.warning("file not fetched", message=inbound.platform_id, why=why)

        files, lines = await fetch_files(
            (*spoken.files, *spoken.quoted_files),
            lambda file: fetch_file(file, self._bot, most),
            note,
        )
        text = "\n".join(filter(None, (inbound.text, *lines)))
        return msgspec.structs.replace(inbound, text=text, attachments=files)

    def _count(self, outcome: Outcome) -> None:
        self._shared.metrics.event(self._bot.agent, outcome)

    def _count_button(self, ended: Ended) -> None:
        self._count("button" if ended == "handed_in" else ended)


def quoted(spoken: TelegramMessage, agent: str) -> Quoted | None:
    """Return what a message replies to; Telegram brings it along.

    Args:
        agent: whose bot said it; empty: somebody else did.
    """
    if not spoken.quoted:
        return None
    text = spoken.quoted[:LONGEST_QUOTE]
    return Quoted(text, spoken.quoted_sender, agent)


def specifics(spoken: TelegramMessage) -> dict[str, str]:
    """Return the fields that only Telegram has."""
    found = {
        "username": spoken.username,
        "chat_title": spoken.chat_title,
        "is_anonymous": "true" if spoken.is_anonymous else "",
    }
    return {name: value for name, value in found.items() if value}


Spoken = TelegramMessage | Pressed | Membership
"""What happened in one chat."""

T = TypeVar("T")

# Chosen: the parts of a message come within a moment, but not always at once, and a
# chat that is busy is asked about again after a second.
ALBUM_PAUSE = 1.5
"""Seconds without a further part after which a message is whole."""

LOOK_AGAIN = 0.25
"""Seconds after which it is seen again whether Telegram has answered."""

LONG_TEXT = PLATFORM.limits.text // 2
"""UTF-16 units above which a text may be the beginning of a longer one: clients cut
what is longer than a message anywhere in its second half."""

# Chosen: a client sends the parts of a text one after the other, some in a second.
MOST_LASTING = 10
"""Seconds from the first part of a text to the last, as Telegram dates them. Without
that, texts which waited while nobody listened would be one, and those of somebody who
writes without a pause would be kept waiting."""


class OpenMessage(msgspec.Struct):
    """A message of which further parts may come."""

    parts: list[TelegramMessage]
    whole_at: float = 0.0
    """When it is whole if none comes, on trio's clock."""

    looks: int = 0
    """How often Telegram had been asked when the last part came."""


class PartedMessages:
    """Messages that come in parts, of each the parts that are there.

    Such are the files of an album, and a text for which one message has no room.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], OpenMessage] = {}
        self._looks = 0
        """How often Telegram was asked for more."""

    def forget(self) -> None:
        """Forget parts that nobody waits for any more: Telegram brings them again."""
        self._open.clear()

    def look(self) -> None:
        """Note that Telegram has said what there is."""
        self._looks += 1

    def note(self, spoken: TelegramMessage) -> TelegramMessage:
        """Note a part, while the ones before it may be waiting for it.

        Returns:
            It, with what it is a part of.
        """
        if not (spoken.album or spoken.files):
            spoken = msgspec.structs.replace(spoken, album=self._text(spoken))
        if spoken.album:
            key = (spoken.chat, spoken.album)
            found = self._open.setdefault(key, OpenMessage([]))
            found.parts.append(spoken)
            found.whole_at = trio.current_time() + ALBUM_PAUSE
            found.looks = self._looks
        return spoken

    def _text(self, spoken: TelegramMessage) -> str:
        """Name the text that this may begin, or goes on with; empty: it is whole."""
        for each in self._open.values():
            if goes_on(each.parts, spoken):
                return each.parts[0].album
        return f"text {spoken.message_id}" if is_long(spoken) else ""

    async def gather(self, first: TelegramMessage) -> Sequence[TelegramMessage]:
        """Wait for the rest; gives all parts, none if this came with an earlier one."""
        if not first.album:
            return [first]
        key = (first.chat, first.album)
        found = self._open.get(key)
        if found is None or found.parts[0].message_id != first.message_id:
            return ()
        # Why also looks: over a slow connection, the next answer comes later.
        now = trio.current_time()
        while now < found.whole_at or found.looks == self._looks:
            await trio.sleep_until(max(found.whole_at, now + LOOK_AGAIN))
            now = trio.current_time()
        del self._open[key]
        # Why in order: so all bots claim them in the same one, and wait for no circle.
        return sorted(found.parts, key=lambda each: each.message_id)


def whole(parts: Sequence[TelegramMessage]) -> TelegramMessage:
    """Make one message of its parts."""
    return msgspec.structs.replace(
        parts[0],
        text="\n".join(each.text for each in parts if each.text),
        files=tuple(file for each in parts for file in each.files),
        called=frozenset().union(*(each.called for each in parts)),
    )


def is_long(spoken: TelegramMessage) -> bool:
    """Tell whether a text may be the beginning of a longer one."""
    return utf16(spoken.text) > LONG_TEXT


def goes_on(parts: Sequence[TelegramMessage], spoken: TelegramMessage) -> bool:
    """Tell whether a text may be what follows the parts of a longer one."""
    first, last = parts[0], parts[-1]
    return (
        (first.chat, first.topic, first.sender_id)
        == (spoken.chat, spoken.topic, spoken.sender_id)
        and is_long(last)
        and not last.files
        and spoken.reply_to in {0, first.reply_to}
        and spoken.sent_at - first.sent_at <= MOST_LASTING
        and not spoken.text.startswith("/")
    )


class TelegramArrivals:
    """Brings in what one bot hears."""

    def __init__(self, bot: TelegramAccount, shared: TelegramShared) -> None:
        self._bot = bot
        self._shared = shared
        self._submitter = TelegramSubmitter(bot, shared)
        self._parted = PartedMessages()

    async def take(self, update: Update | Malformed, ingress: Ingress) -> None:
        """Bring one update in; comes back when it was accepted.

        Raises:
            ShutOutError: the bot is not let in.
        """
        for _, event in await self.events((update,)):
            if event is not None:
                await self.bring(event, ingress)

    def begin_anew(self) -> None:
        """Forget messages that have not come in: Telegram brings them again."""
        self._parted.forget()

    async def events(
        self, updates: Sequence[Update | Malformed]
    ) -> list[tuple[int, Spoken | None]]:
        """Say what updates are, each with its number; None: nothing to bring in.

        Groups that moved are noted: that decides how the chats are called that all
        else is from.
        """
        self._parted.look()
        users = self._shared.users()
        found: list[tuple[int, Spoken | None]] = []
        for update in updates:
            event = self._read(update, users)
            if isinstance(event, Moved):
                await self._move(event)
                event = None
            if isinstance(event, TelegramMessage):
                event = self._noted(event)
            found.append((update.update_id, event))
        return found

    def _noted(self, spoken: TelegramMessage) -> TelegramMessage:
        """Note a message that may be a part, where the next comes before it is stored.

        Not so for webhooks: Telegram brings one message after the other.
        """
        if self._shared.config.mode == "webhook":
            return msgspec.structs.replace(spoken, album="")
        return self._parted.note(spoken)

    def _read(self, update: Update | Malformed, users: Sequence[User]) -> Event | None:
        """Say what an update is; what is nothing to us is counted."""
        found = read(update, users)
        if not isinstance(found, str):
            return found
        self._count(found)
        if isinstance(update, Malformed):
            LOG.warning(
                "update not understood",
                bot=self._bot.agent,
                update=update.update_id,
                why=update.why,
            )
        return None

    async def _move(self, event: Moved) -> None:
        old, new, moves = event.old, event.new, self._shared.moves
        await self._kept(lambda: moves.moved(old, new))
        self._count("moved")
        LOG.info("group moved", bot=self._bot.agent, old=old, new=new)

    async def bring(self, event: Spoken, ingress: Ingress) -> None:
        """Bring in what happened in one chat; comes back when it was accepted.

        Raises:
            ShutOutError: the bot is not let in.
        """
        shared = self._shared
        match event:
            case TelegramMessage():
                await self._hear(event, ingress)
            case Pressed():
                chat = await self._kept(lambda: shared.moves.first(event.chat))
                await self._submitter.press(event, chat, ingress)
            case Membership(chat=chat, is_in=is_in):
                shared.members.note(chat, self._bot.agent, is_in=is_in)
                self._count("membership")

    async def _hear(self, spoken: TelegramMessage, ingress: Ingress) -> None:
        shared, agent = self._shared, self._bot.agent
        if not spoken.is_direct:
            shared.members.note(spoken.chat, agent, is_in=True)
        parts = await self._parted.gather(spoken)
        fresh: list[tuple[MessageName, TelegramMessage]] = []
        try:
            # Why each: a bot that hears only what calls it may have brought the first.
            for each in parts:
                name = self._name(each)
                if await shared.seen.claim(name.text):
                    fresh.append((name, each))
            if fresh:
                chat = await self._kept(lambda: shared.moves.first(spoken.chat))
                said = whole([each for _, each in fresh])
                await self._submitter.speak(said, chat, fresh[0][0], ingress)
            elif parts:
                self._count("seen")
            for name, _ in fresh:
                shared.seen.done(name.text)
        finally:
            for name, _ in fresh:
                shared.seen.give_back(name.text)

    def _name(self, spoken: TelegramMessage) -> MessageName:
        """Name a message so that all bots that hear it name it alike."""
        if spoken.is_direct:
            return MessageName(spoken.chat, spoken.message_id, self._bot.agent)
        if spoken.is_basic and len(self._shared.bots) > 1:
            return self._shared.numbers.name(spoken, self._bot.agent)
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
        self._shared.metrics.event(self._bot.agent, outcome)


async def fetch_file(
    file: TelegramAttachment, bot: TelegramAccount, most: int
) -> tuple[Attachment | None, str]:
    """Fetch a file; a Telegram that has too much to do is asked again for a while.

    Args:
        most: bytes.

    Returns:
        The attachment, or why there is none.

    Raises:
        ShutOutError: the bot is not let in.
    """
    too_much = f"it is above {most} bytes"
    if file.size > most:
        return None, too_much
    try:
        content = await ask_for_file(partial(fetch_once, file, bot, most))
    except ShutOutError:
        raise
    except PlatformError as error:
        is_large = isinstance(error, RefusedError) and error.says("too big", "above")
        return None, too_much if is_large else str(error)
    return file.attached(content), ""


async def fetch_once(
    file: TelegramAttachment, bot: TelegramAccount, most: int
) -> bytes:
    """Ask for a file once; raises as `TelegramAccount.ask`."""
    params = {"file_id": file.file_id}
    call = TelegramCall(method="getFile", params=params, timeout=bot.timeout)
    place = await bot.ask(call, FilePath)
    if not place.file_path:
        raise RefusedError("Telegram says no place of it")
    return await bot.api.fetch(place.file_path, bot.timeout, most)
