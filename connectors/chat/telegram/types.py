"""What Telegram sends, as it is shaped, and how chats and messages are called inside.

A private chat has the same number for all bots, as it is the person's: the agent whose
bot is meant stands behind it (`42@anna`). A message is known by its chat and number
(`-100123/5`). Only supergroups count their messages for all: elsewhere each bot has
numbers of its own, and its agent stands behind (`42/5@anna`), as it does behind what we
have said, so that the same bot changes it.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Annotated, Generic, TypeVar

import msgspec
from msgspec import Meta

if TYPE_CHECKING:
    from connectors.chat.telegram.events import TelegramMessage

Id = Annotated[int, Meta(ge=-(2**53), le=2**53)]
"""Up to 52 significant bits for people and chats."""

T = TypeVar("T")


class User(msgspec.Struct, frozen=True):
    """A person, or a bot."""

    id: Id
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""
    """Without the at sign; may change, and may be none."""

    language_code: str = ""
    """Of the person's client, such as `pt-br`; not always given."""

    can_read_all_group_messages: bool = False
    """Of the bot itself, as `getMe` tells: whether its privacy mode is off."""

    can_join_groups: bool = False


class Chat(msgspec.Struct, frozen=True):
    """Where something is said."""

    id: Id
    type: str = "private"
    """`private`, `group`, `supergroup` or `channel`."""

    title: str = ""
    username: str = ""


class Entity(msgspec.Struct, frozen=True):
    """A mark in a text; its place is counted in UTF-16 units."""

    type: str
    offset: int
    length: int
    user: User | None = None
    """Of a `text_mention`: somebody without a username."""

    url: str = ""


class TelegramFile(msgspec.Struct, frozen=True):
    """A file that lies on Telegram's servers: a document, voice, audio or video."""

    file_id: str
    file_unique_id: str = ""
    file_size: int = 0
    """Bytes; 0: not said."""

    file_name: str = ""
    mime_type: str = ""


class PhotoSize(msgspec.Struct, frozen=True):
    """One size of a picture."""

    file_id: str
    width: int = 0
    height: int = 0
    file_size: int = 0
    file_unique_id: str = ""


class Location(msgspec.Struct, frozen=True):
    """A point on the earth, in degrees."""

    latitude: float
    longitude: float


class Venue(msgspec.Struct, frozen=True):
    """A place with a name; its point stands in the message, too."""

    title: str = ""
    address: str = ""


class Contact(msgspec.Struct, frozen=True):
    """Somebody whose number is passed on."""

    phone_number: str = ""
    first_name: str = ""
    last_name: str = ""


class Sticker(msgspec.Struct, frozen=True):
    """A picture out of a set."""

    emoji: str = ""
    """What it stands for; empty: not said."""


class PollOption(msgspec.Struct, frozen=True):
    """One of the answers to a poll."""

    text: str = ""


class Poll(msgspec.Struct, frozen=True):
    """A question to everybody in the chat."""

    question: str = ""
    options: tuple[PollOption, ...] = ()


class Dice(msgspec.Struct, frozen=True):
    """A die, a dart or another throw, and how it fell."""

    emoji: str = ""
    value: int = 0


class TextQuote(msgspec.Struct, frozen=True):
    """The part of a message that a reply is to."""

    text: str = ""


class TitledContent(msgspec.Struct, frozen=True):
    """What a bot cannot read more of than its title, if it has one."""

    title: str = ""


class Message(msgspec.Struct, frozen=True):
    """Something that was said, or that happened in a chat."""

    message_id: int
    chat: Chat
    date: int = 0
    """Unix seconds; 0: it can no longer be read."""

    sender: User | None = msgspec.field(default=None, name="from")
    sender_chat: Chat | None = None
    """In whose name it is said: a channel, or the group itself (anonymous admins)."""

    message_thread_id: int = 0
    is_topic_message: bool = False
    """Whether `message_thread_id` is a topic; else it must not be sent back."""

    reply_to_message: Message | None = None
    quote: TextQuote | None = None
    text: str = ""
    entities: tuple[Entity, ...] = ()
    caption: str = ""
    caption_entities: tuple[Entity, ...] = ()
    photo: tuple[PhotoSize, ...] = ()
    voice: TelegramFile | None = None
    audio: TelegramFile | None = None
    document: TelegramFile | None = None
    video: TelegramFile | None = None
    video_note: TelegramFile | None = None
    location: Location | None = None
    venue: Venue | None = None
    contact: Contact | None = None
    sticker: Sticker | None = None
    poll: Poll | None = None
    dice: Dice | None = None
    checklist: TitledContent | None = None
    game: TitledContent | None = None
    invoice: TitledContent | None = None
    story: TitledContent | None = None
    paid_media: TitledContent | None = None
    giveaway: TitledContent | None = None
    migrate_to_chat_id: Id = 0
    """The group became a supergroup, with this id."""

    migrate_from_chat_id: Id = 0
    """The supergroup was a group, with this id."""


class CallbackQuery(msgspec.Struct, frozen=True):
    """Somebody pressed a button."""

    id: str
    sender: User = msgspec.field(name="from")
    message: Message | None = None
    data: str = ""


class ChatMember(msgspec.Struct, frozen=True):
    """What somebody is in a chat."""

    status: str = ""
    """`creator`, `administrator`, `member`, `restricted`, `left` or `kicked`."""

    is_member: bool = True
    """Of who is `restricted`: whether they are there at all."""

    user: User | None = None

    @property
    def is_in(self) -> bool:
        """Return whether they are there."""
        if self.status == "restricted":
            return self.is_member
        return self.status in {"creator", "administrator", "member"}


class MemberUpdate(msgspec.Struct, frozen=True):
    """The bot came into a chat, or left it."""

    chat: Chat
    new_chat_member: ChatMember


class FilePath(msgspec.Struct, frozen=True):
    """Where a file can be fetched, for an hour at least."""

    file_path: str = ""
    file_size: int = 0


class WebhookState(msgspec.Struct, frozen=True):
    """What Telegram knows of a bot's webhook."""

    url: str = ""
    """Empty: there is none, and updates are to be asked for."""

    pending_update_count: int = 0
    last_error_date: int = 0
    """Unix seconds; 0: it was always answered."""

    last_error_message: str = ""


class SentMessage(msgspec.Struct, frozen=True):
    """What Telegram answers to a message that was sent."""

    message_id: int


class Update(msgspec.Struct, frozen=True):
    """One thing that happened; at most one of its fields is there."""

    update_id: int
    message: Message | None = None
    edited_message: Message | None = None
    channel_post: Message | None = None
    callback_query: CallbackQuery | None = None
    my_chat_member: MemberUpdate | None = None


class Malformed(msgspec.Struct, frozen=True):
    """An update that cannot be read."""

    update_id: int
    why: str


class Parameters(msgspec.Struct, frozen=True):
    """What a refusal tells beside its words."""

    retry_after: float = 0.0
    """Seconds; 0: not said."""

    migrate_to_chat_id: Id = 0


class ApiAnswer(msgspec.Struct, Generic[T], frozen=True):
    """What every method answers."""

    ok: bool = False
    result: T | None = None
    error_code: int = 0
    description: str = ""
    parameters: Parameters = Parameters()


UPDATES = msgspec.json.Decoder(ApiAnswer[tuple[msgspec.Raw, ...]])
ONE = msgspec.json.Decoder(Update)
NUMBER = re.compile(rb'"update_id"\s*:\s*(\d{1,18})')


def read_update(body: bytes | msgspec.Raw) -> Update | Malformed:
    """Read one update, as a webhook is sent it.

    Raises:
        ValueError: not even its number can be read.
    """
    try:
        return ONE.decode(body)
    except msgspec.DecodeError as error:
        found = NUMBER.search(bytes(body))
        if found is None:
            raise
        return Malformed(int(found[1]), str(error))


def read_updates(body: bytes) -> ApiAnswer[tuple[Update | Malformed, ...]]:
    """Read what `getUpdates` answers; an update without a number is left out.

    Why left out: it cannot be confirmed by itself, and is by the next that can.

    Raises:
        ValueError: it is no answer of the Bot API.
    """
    try:
        answer = UPDATES.decode(body)
    except msgspec.DecodeError:
        answer = UPDATES.decode(whole(body))
    found: list[Update | Malformed] = []
    for raw in answer.result or ():
        try:
            found.append(read_update(raw))
        except msgspec.DecodeError:
            continue
    return ApiAnswer(
        ok=answer.ok,
        result=tuple(found),
        error_code=answer.error_code,
        description=answer.description,
        parameters=answer.parameters,
    )


def whole(body: bytes) -> bytes:
    """Return JSON in which halves of letters are question marks.

    Why: msgspec refuses them, and one message of one stranger would stop a bot.

    Raises:
        ValueError: it is no JSON.
    """
    found: object = json.loads(body)
    return json.dumps(found, ensure_ascii=False).encode("utf-8", "replace")


CHAT = re.compile(r"(-?\d{1,16})(?:@([^/@]+))?", re.ASCII)
MESSAGE = re.compile(r"(-?\d{1,16})/(\d{1,16}|~[0-9a-f]{32})(?:@([^/@]+))?", re.ASCII)


class ChatName(msgspec.Struct, frozen=True):
    """Which chat is meant."""

    chat: int
    agent: str = ""
    """Whose bot is meant; empty: any that is there."""

    @property
    def text(self) -> str:
        """How it is called."""
        return f"{self.chat}@{self.agent}" if self.agent else str(self.chat)


class MessageName(msgspec.Struct, frozen=True):
    """Which message is meant."""

    chat: int
    number: int
    agent: str = ""
    """Whose bot numbers it so; empty: all do."""

    print: str = ""
    """Instead of a number: what all bots see alike of it."""

    @property
    def text(self) -> str:
        """How it is called."""
        which = self.print or str(self.number)
        whose = f"@{self.agent}" if self.agent else ""
        return f"{self.chat}/{which}{whose}"


def read_chat(text: str) -> ChatName | None:
    """Read the name of a chat; None: it is none."""
    found = CHAT.fullmatch(text)
    return None if found is None else ChatName(int(found[1]), found[2] or "")


def read_message(text: str) -> MessageName | None:
    """Read the name of a message; None: it is none."""
    found = MESSAGE.fullmatch(text)
    if found is None:
        return None
    chat, which, agent = int(found[1]), found[2], found[3] or ""
    if which.startswith("~"):
        return MessageName(chat, 0, agent, which)
    return MessageName(chat, int(which), agent)


def fingerprint(spoken: TelegramMessage) -> str:
    """Return what all bots see alike of a message whose numbers they do not share."""
    seen = (
        spoken.chat,
        spoken.sender_id,
        spoken.sent_at,
        spoken.text,
        *(file.unique_id for file in spoken.files),
    )
    return "~" + hashlib.sha256(msgspec.json.encode(seen)).hexdigest()[:32]
