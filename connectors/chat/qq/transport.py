"""The transport of QQ: one bot for each agent; each has chats of its own.

QQ takes answers to what somebody wrote lately, a few to each message, and leaves out
what answers one twice under the same number. `QQSenders` finds such a message, and
makes the number from the delivery's id, so that a repeated one is the same there.

All bots of one connector share metrics, settings, and what may be answered.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import httpx
import msgspec
import trio

from actors.errors import DeliveryBusyError, DeliveryRefusedError
from actors.messages.deliveries import Abilities, Delivery, Typing
from actors.messages.inbound import Quoted, SentFile
from actors.rules.text.limits import RecentMap
from connectors.chat.accounts import (
    SOON,
    AccountsTransport,
    Bookmarks,
    ConnectorShelf,
    Family,
    PlatformCounters,
    PlatformMetrics,
    StoredBookmarks,
    prefixed,
    window_closed,
)
from connectors.chat.markup.render import rendered
from connectors.chat.platforms import TransportParts
from connectors.chat.qq.api import (
    AddressError,
    DuplicateError,
    QQAccount,
    WindowClosedError,
    receipt_of,
)
from connectors.chat.qq.events import (
    GUILDS,
    LONGEST_QUOTE,
    PlaceKind,
    QQPlace,
    Reason,
    read_place,
)
from connectors.chat.qq.listener import QQListener
from connectors.chat.qq.markup import QQ
from connectors.chat.qq.platform import PLATFORM, QQConfig
from connectors.chat.requests import (
    BusyError,
    Json,
    LostError,
    RefusedError,
    Upload,
    table,
    text,
    translated,
)
from connectors.files.blobs import bytes_of, seconds_for
from runtime.clock import Clock
from runtime.ids import IdSource
from runtime.telemetry.logs import EventLog


class AnswerRule(NamedTuple):
    """How a message may be answered."""

    seconds: float
    most: int
    """Answers; more go to another message."""


# Source: "发送消息": 60 minutes for people, else 5; 5 answers, in channels any number.
MOST_ANSWERS = 5
RULES: dict[PlaceKind, AnswerRule] = {
    "user": AnswerRule(3600.0, MOST_ANSWERS),
    "group": AnswerRule(300.0, MOST_ANSWERS),
    "channel": AnswerRule(300.0, 1_000),
    "dm": AnswerRule(300.0, 1_000),
}

# Chosen: chats of a day, and what one writes in an hour.
MOST_CHATS = 20_000
MOST_MESSAGES = 20
MOST_DELIVERIES = 5_000


class Answerable(msgspec.Struct):
    """A message that may be answered."""

    at: float
    """Unix seconds."""

    left: int
    """Answers that it still takes."""


class QQWindows:
    """Which messages of which chats may still be answered, and how often."""

    def __init__(self) -> None:
        self._chats: RecentMap[str, dict[str, Answerable]] = RecentMap(MOST_CHATS)
        self._chosen: RecentMap[str, str] = RecentMap(MOST_DELIVERIES)
        """By delivery: the message that it was sent as an answer to."""

    def heard(self, place: QQPlace, message: str, at: float) -> None:
        """Note that somebody wrote; a message that comes twice changes nothing."""
        known = self._chats.get(place.chat, {})
        known.setdefault(message, Answerable(at, RULES[place.kind].most))
        while len(known) > MOST_MESSAGES:
            del known[next(iter(known))]
        self._chats[place.chat] = known

    def choose(self, place: QQPlace, delivery: str, reply_to: str, now: float) -> str:
        """Return which message a delivery answers; empty: none can be answered.

        The same one at each try: QQ leaves out what answers it twice.

        Args:
            reply_to: the message that it is meant for; one that nobody knows here, as
                after a restart, is taken for answerable.
            now: Unix seconds.
        """
        before = self._chosen.get(delivery, "")
        if before:
            return before
        known = self._chats.get(place.chat, {})
        newest = (reply_to, *reversed(known)) if reply_to else tuple(reversed(known))
        for message in newest:
            found = known.get(message)
            if found is None:
                found = known[message] = Answerable(now, RULES[place.kind].most)
                self._chats[place.chat] = known
            if found.left > 0 and now - found.at < RULES[place.kind].seconds:
                found.left -= 1
                self._chosen[delivery] = message
                return message
        return ""

    def newest(self, chat: str) -> str:
        """Return the newest message of a chat; empty: nobody knows of any."""
        return next(reversed(self._chats.get(chat, {})), "")

    def refused(self, place: QQPlace, delivery: str, message: str) -> None:
        """Note that QQ takes no answers to a message (any more)."""
        self._chosen.pop(delivery, None)
        found = self._chats.get(place.chat, {}).get(message)
        if found is not None:
            found.left = 0


MOST_QUOTES = 5_000


class QQQuotes:
    """What recent messages say, for replies, which name them by id or by index."""

    def __init__(self) -> None:
        self._said: RecentMap[tuple[str, str], tuple[str, Quoted]] = RecentMap(
            MOST_QUOTES
        )

    def learn(self, place: QQPlace, names: tuple[str, str], quoted: Quoted) -> None:
        """Remember a message."""
        short = msgspec.structs.replace(quoted, text=quoted.text[:LONGEST_QUOTE])
        for name in filter(None, names):
            self._said[place.chat, name] = names[0], short

    def find(self, place: QQPlace, name: str) -> tuple[str, Quoted] | None:
        """Return a message's id, and what it says; None: nobody knows."""
        return self._said.get((place.chat, name))


Outcome = (
    Reason
    | Literal[
        "handed_in",
        "refused",
        "lost",
        "media_left_out",
        "window_closed",
        "addresses_left_out",
    ]
)
"""The outcomes of events, beside the reasons to skip one. A message was stored
(`handed_in`), refused by the company for good (`refused`), or not storable (`lost`).
`window_closed`: a message of ours found none that may be answered.
`addresses_left_out`: QQ took one only without its web addresses."""

METRICS = partial(
    PlatformCounters,
    events=Family(
        "callboard_qq_events",
        "What became of what QQ sent, by account (the agent's name).",
        "outcome",
    ),
    heard=Family(
        "callboard_qq_heard_timestamp_seconds",
        "When a bot last had something from QQ for us, in Unix seconds.",
    ),
    up=Family("callboard_qq_up", "1 while a bot hears its gateway."),
    reconnects=Family(
        "callboard_qq_reconnects",
        "How often a bot heard its gateway again after trouble.",
    ),
    gaps=Family(
        "callboard_qq_gaps",
        "Times without a connection: filled by QQ, or left open.",
        "outcome",
    ),
)
"""Registers the metrics of all connectors of this platform."""


@dataclass(frozen=True)
class QQShared:
    """All that the bots of one connector share."""

    connector: str
    """Its name, as in the settings."""

    config: QQConfig
    accounts: Mapping[str, QQAccount]
    """By agent, in the order of the settings."""

    bookmarks: Bookmarks
    metrics: PlatformMetrics[Outcome]
    clock: Clock
    ids: IdSource
    network: httpx.AsyncBaseTransport | None = None
    windows: QQWindows = field(default_factory=QQWindows)
    quotes: QQQuotes = field(default_factory=QQQuotes)


LOG = EventLog("qq")

SESSIONS = "qq_session"
"""Kind of the rows that say how far a bot was heard."""

MOST_SAID = 2_000
"""Deliveries whose receipts are remembered."""

MOST_EXPLAINED = 1_000

MEND_WAIT = 60.0
"""Seconds until a bot is tried again that its operator must mend."""

OUTSIDE = (
    "QQ takes no words here now: nobody has written for some minutes (in a chat with"
    " one person, for an hour), or what was written was answered five times"
)

# Seen: any number of 8 digits is taken.
MOST_NUMBER = 100_000_000

ADDRESS = re.compile(r"(?:https?://|www\.)[^\s<>()]+", re.IGNORECASE)

# Source: QQ, "富媒体消息": 1 pictures, 2 videos, 4 other files; 3 is SILK, which no
# agent has, so sound goes as a file.
TYPES = {"image/png": 1, "image/jpeg": 1, "video/mp4": 2}
OTHER_FILE = 4

PATHS = {
    "user": "/v2/users/{}",
    "group": "/v2/groups/{}",
    "channel": "/channels/{}",
    "dm": "/dms/{}",
}


def number_of(key: str) -> int:
    """Return the number of an answer: the same for the same delivery."""
    digest = hashlib.sha256(key.encode()).digest()
    return int.from_bytes(digest[:8], "big") % (MOST_NUMBER - 1) + 1


def path_of(place: QQPlace, what: str) -> str:
    """Return where something is sent in a place."""
    return f"{PATHS[place.kind].format(place.id)}/{what}"


class QQSenders:
    """Says things by the bots, as answers to what may still be answered."""

    def __init__(self, shared: QQShared) -> None:
        self._shared = shared
        self._explained: RecentMap[str, str] = RecentMap(MOST_EXPLAINED)
        """By delivery: the newest message when QQ took it not even as first words."""

    def choose(self, chat: str) -> tuple[QQAccount, QQPlace]:
        """Return the bot and the place of a chat.

        Raises:
            DeliveryBusyError: the bot does not listen now.
            DeliveryRefusedError: it is none of ours.
        """
        try:
            place = read_place(chat)
        except ValueError as error:
            raise DeliveryRefusedError(str(error)) from error
        mine = (each for each in self._shared.accounts.values() if each.id == place.bot)
        account = next(mine, None)
        if account is None:
            told = f"no agent has the bot {place.bot}: see [connectors.…accounts]"
            raise DeliveryRefusedError(told)
        if not account.is_open:
            why = account.refused or "it does not listen now"
            wait = MEND_WAIT if account.refused else SOON
            raise DeliveryBusyError(f"{account.agent}'s bot: {why}", retry_after=wait)
        return account, place

    async def say(
        self,
        account: QQAccount,
        place: QQPlace,
        words: str,
        key: str,
        reply_to: str,
        file: tuple[SentFile, Path] | None = None,
    ) -> str:
        """Say something; gives its id.

        Args:
            words: Markdown; may be empty with a file.
            key: the same at each try.
            reply_to: the message that is answered; empty: any.
            file: goes with it, and where its bytes lie.

        Raises:
            WindowClosedError: nothing may be answered now.
            PlatformError: as `QQAccount.ask`.
        """
        windows = self._shared.windows
        while True:
            now = self._shared.clock.wall()
            answered = windows.choose(place, key, reply_to, now)
            try:
                return await self._send(account, place, words, key, answered, file)
            except DuplicateError:
                return f"{key}@qq"
            except WindowClosedError:
                if not answered:
                    raise
                windows.refused(place, key, answered)

    async def _send(
        self,
        account: QQAccount,
        place: QQPlace,
        words: str,
        key: str,
        answered: str,
        file: tuple[SentFile, Path] | None,
    ) -> str:
        body: Json = {"content": rendered(words, QQ(), PLATFORM.limits.text)}
        if answered:
            body["msg_id"] = answered
        try:
            answer = await self._post(account, place, body, key, file)
        except AddressError:
            # The rest is worth an answer, and says what is missing.
            self._shared.metrics.event(account.agent, "addresses_left_out")
            body["content"] = ADDRESS.sub("[…]", str(body["content"]))
            answer = await self._post(account, place, body, key, file)
        receipt = receipt_of(answer)
        index = text(table(answer.get("ext_info")).get("ref_idx"))
        quoted = Quoted(text=words, agent=account.agent)
        self._shared.quotes.learn(place, (receipt, index), quoted)
        return receipt

    async def _post(
        self,
        account: QQAccount,
        place: QQPlace,
        body: Json,
        key: str,
        file: tuple[SentFile, Path] | None,
    ) -> Json:
        path = path_of(place, "messages")
        if place.kind in GUILDS:
            if file is None:
                return await account.ask("POST", path, body)
            return await self._post_picture(account, path, body, *file)
        body = {**body, "msg_type": 0, "msg_seq": number_of(key)}
        if file is not None:
            media = await self._upload(account, place, *file)
            # Source: "常见错误码": with a file there must be words, be it a blank.
            body |= {"msg_type": 7, "media": media, "content": body["content"] or " "}
        return await account.ask("POST", path, body)

    async def _post_picture(
        self, account: QQAccount, path: str, body: Json, file: SentFile, bytes_: Path
    ) -> Json:
        if TYPES.get(file.media_type) != TYPES["image/png"]:
            raise RefusedError("QQ's channels take PNG and JPEG pictures only")
        upload = Upload("file_image", bytes_, file.name, file.media_type)
        fields = {name: str(value) for name, value in body.items() if value}
        within = seconds_for(file.size, self._shared.config.request_timeout)
        return await account.ask(
            "POST", path, upload=upload, fields=fields, within=within
        )

    async def _upload(
        self, account: QQAccount, place: QQPlace, file: SentFile, bytes_: Path
    ) -> Json:
        """Bring a file to QQ, where nobody sees it yet; a repeated one is harmless."""
        try:
            content = await trio.Path(bytes_).read_bytes()
        except OSError as error:
            text_ = f"the file cannot be read now: {error.strerror}"
            raise BusyError(text_) from error
        body: Json = {
            "file_type": TYPES.get(file.media_type, OTHER_FILE),
            "file_data": b64encode(content).decode(),
            "file_name": file.name,
            "srv_send_msg": False,
        }
        within = seconds_for(file.size, self._shared.config.request_timeout)
        path = path_of(place, "files")
        try:
            answer = await account.ask("POST", path, body, within=within)
        except LostError as error:
            raise BusyError(f"the file did not arrive: {error}") from error
        found = text(answer.get("file_info"))
        if not found:
            raise BusyError("the file did not arrive: the answer names none")
        return {"file_info": found}

    def outside(self, delivery: Delivery, account: QQAccount) -> Exception:
        """Say that nothing may be answered now, to the operator once."""
        shared = self._shared
        is_first = delivery.id not in self._explained
        if is_first:
            shared.metrics.event(account.agent, "window_closed")
        self._explained[delivery.id] = shared.windows.newest(delivery.address.chat)
        is_kept = shared.config.outside_window == "keep"
        log = LOG if is_first else None
        return window_closed(delivery, OUTSIDE, log, is_kept=is_kept)

    def is_still_outside(self, delivery: Delivery) -> bool:
        """Return whether nobody has written since QQ did not take a delivery."""
        newest = self._shared.windows.newest(delivery.address.chat)
        return self._explained.get(delivery.id) == newest


class QQTransport(AccountsTransport[QQAccount, QQListener]):
    """The bots of one connector; see the port."""

    presence = None
    """What was said is never changed, and QQ tells of no signs in chats and groups."""

    def __init__(
        self, name: str, config: QQConfig, parts: TransportParts, bookmarks: Bookmarks
    ) -> None:
        accounts = {
            agent: QQAccount(agent, account, config, parts.network)
            for agent, account in config.accounts.items()
        }
        self._shared = QQShared(
            connector=name,
            config=config,
            accounts=accounts,
            bookmarks=bookmarks,
            metrics=PlatformMetrics(parts.once(METRICS), name),
            clock=parts.clock,
            ids=parts.ids,
            network=parts.network,
        )
        self._blobs = parts.blobs
        self._name = parts.shown
        self._senders = QQSenders(self._shared)
        self._said: RecentMap[str, str] = RecentMap(MOST_SAID)
        """Receipts of late, by the deliveries' ids."""

        listeners = {
            agent: QQListener(account, self._shared, self._senders.say)
            for agent, account in accounts.items()
        }
        super().__init__(LOG, accounts, listeners)

    @property
    def abilities(self) -> Abilities:
        """The abilities: in channels nobody knows our numbers, so nothing is sure."""
        limits = PLATFORM.limits
        return Abilities(
            max_part_chars=limits.part,
            measure=limits.measure,
            notes_tools=False,
            pace=self._shared.config.pace,
            answers_each=MOST_ANSWERS,
            shows_drafts=False,
            is_sparing=True,
            has_member_ids=True,
            files=PLATFORM.takes_files,
        )

    async def deliver(self, delivery: Delivery) -> str:
        """Send one message; see the port."""
        await trio.lowlevel.checkpoint()
        account, place = self._senders.choose(delivery.address.chat)
        if delivery.id in self._said:
            return self._said[delivery.id]
        if self._senders.is_still_outside(delivery):
            raise self._senders.outside(delivery, account)
        file = delivery.file
        brought = None if file is None else (file, bytes_of(self._blobs, file))
        words = prefixed(delivery, account.agent, self._name).rstrip()
        with translated(MEND_WAIT):
            try:
                receipt = await self._senders.say(
                    account, place, words, delivery.id, delivery.reply_to, brought
                )
            except WindowClosedError as error:
                raise self._senders.outside(delivery, account) from error
        self._said[delivery.id] = receipt
        return receipt

    def show_typing(self, typing: Typing) -> None:
        """Do nothing: QQ shows nobody that a bot writes."""


def make_transport(name: str, config: QQConfig, parts: TransportParts) -> QQTransport:
    """Make the transport of one connector's bots."""
    shelf = ConnectorShelf(parts.store, parts.clock, name)
    return QQTransport(name, config, parts, StoredBookmarks(shelf, SESSIONS))
