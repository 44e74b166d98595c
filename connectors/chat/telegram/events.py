"""What Telegram sends: its shapes, and what an update says; pure and total.

An update is a message, a button, or why it is neither. Edits are left out: the agents
may have begun with what stood there first, and what was accepted is never changed.

Source: Bot API, "MessageEntity": offsets and lengths are counted in UTF-16 units, in
which a letter beyond U+FFFF counts 2.

How chats and messages are called inside: a private chat has the same number for all
bots, as it is the person's: the agent whose bot is meant stands behind it (`42@anna`).
A message is known by its chat and number (`-100123/5`). Only supergroups count their
messages for all: elsewhere each bot has numbers of its own, and its agent stands behind
(`42/5@anna`), as it does behind what we have said, so that the same bot changes it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from actors.rules.text.languages import code_of
from connectors.chat.inbound import (
    FileKind,
    PlatformFile,
    coordinates,
    in_words,
    shown_name,
)

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
    media_group_id: str = ""
    """The album that it is a part of."""

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


USERNAME = re.compile(r"(\A/\w+|(?<!\w))@([A-Za-z0-9_]{1,32})\b(?!\.\w)")
"""A bot that is called, alone or behind a command."""


def cut_out(text: str, offset: int, length: int) -> str:
    """Return a part of a text by UTF-16 units.

    A part that begins or ends inside a letter, or outside the text, is cut to whole
    letters that are there: it is somebody else's count.
    """
    if offset < 0 or length <= 0:
        return ""
    if text.isascii():
        return text[offset : offset + length]
    units = text.encode("utf-16-le", "surrogatepass")
    part = units[2 * offset : 2 * (offset + length)]
    return part.decode("utf-16-le", "ignore")


def is_called(text: str, entities: Sequence[Entity], bot: User) -> bool:
    """Return whether a text calls a bot: by name, by a link to it, or by a command."""
    name = f"@{bot.username}".casefold()
    for entity in entities:
        said = cut_out(text, entity.offset, entity.length).casefold()
        match entity.type:
            case "mention" if bot.username and said == name:
                return True
            case "text_mention" if entity.user is not None and entity.user.id == bot.id:
                return True
            case "bot_command" if bot.username and said.endswith(name):
                return True
            case _:
                continue
    return False


def with_agents(text: str, names: Mapping[str, str]) -> str:
    """Write the agents' names where a text calls their bots: `@anna_bot` is `@anna`.

    Args:
        names: agents by the usernames of their bots.
    """
    by_name = {name.casefold(): agent for name, agent in names.items() if name}

    def named(found: re.Match[str]) -> str:
        agent = by_name.get(found[2].casefold())
        return f"{found[1]}@{agent}" if agent else found[0]

    return USERNAME.sub(named, text)


KINDS = ("message", "edited_message", "callback_query", "my_chat_member")
"""What is asked for. Edits are counted only, so that it is seen that they are left."""

Reason = Literal["malformed", "own", "edit", "channel", "service", "unknown"]
"""Why an update is nothing to us: it is not shaped as it must be; our own bot said it;
it changes a message; it is a channel's, which nobody answers; it tells of the chat
(somebody came, a picture changed); nobody has told us of its kind."""

GROUPS = frozenset({"group", "supergroup"})
PHOTO = "photo.jpg"


class TelegramAttachment(PlatformFile, frozen=True):
    """A file that came with a message, still on Telegram's servers."""

    file_id: str
    size: int
    """Bytes, as Telegram says; 0 if it does not."""

    unique_id: str = ""
    """The same for all bots; not to be fetched by."""


class TelegramMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a person, or of another program."""

    chat: int
    message_id: int
    sender_id: int
    sender_name: str
    username: str
    language: str = ""
    """ISO 639-1, of their client; empty: not given, or not known here."""

    is_bot: bool
    is_direct: bool
    is_basic: bool = False
    """Whether it is a group that is no supergroup: there, each bot has numbers of its
    own for the messages."""

    is_anonymous: bool = False
    """Whether an admin says it in the name of the group."""

    chat_title: str = ""
    text: str
    """What is said, or said beside a file."""

    sent_at: int
    """Unix seconds."""

    topic: int = 0
    """The forum topic it is in; 0: none. Threads of replies are no topics: sent back,
    they would be refused."""

    reply_to: int = 0
    reply_to_sender: int = 0
    quoted: str = ""
    quoted_sender: str = ""
    called: frozenset[int] = frozenset()
    """Ids of those of our bots that are meant: by name, by a command, or by a reply."""

    files: tuple[TelegramAttachment, ...] = ()
    quoted_files: tuple[TelegramAttachment, ...] = ()
    """Those of the message that it replies to, in a group: alone with somebody, an
    agent has them already."""

    album: str = ""
    """What it is a part of: Telegram brings each file in a message of its own."""


class Pressed(msgspec.Struct, frozen=True):
    """A button that was pressed."""

    query_id: str
    sender_id: int
    sender_name: str
    chat: int
    message_id: int
    """0: the message is too old to be known."""

    topic: int
    says: str
    """What it stands for; see `connectors/chat/markup/dialect.py`."""

    language: str = ""
    """Of whoever pressed it, as of a message."""


class Moved(msgspec.Struct, frozen=True):
    """A group became a supergroup: from now on it has another id."""

    old: int
    new: int


class Membership(msgspec.Struct, frozen=True):
    """The bot came into a chat, or left it."""

    chat: int
    is_in: bool


Event = TelegramMessage | Pressed | Moved | Membership


def read(update: Update | Malformed, bots: Sequence[User]) -> Event | Reason:
    """Say what an update is to us.

    Args:
        bots: all of ours; what they say themselves is nothing.
    """
    match update:
        case Malformed():
            return "malformed"
        case Update(message=message) if message is not None:
            return _message(message, bots)
        case Update(my_chat_member=change) if change is not None:
            return Membership(change.chat.id, change.new_chat_member.is_in)
        case Update(callback_query=query) if query is not None:
            return _pressed(query)
        case _:
            return _left_out(update)


def _left_out(update: Update) -> Reason:
    if update.edited_message is not None:
        return "edit"
    return "unknown" if update.channel_post is None else "channel"


def _pressed(query: CallbackQuery) -> Pressed:
    message = query.message
    return Pressed(
        query_id=query.id,
        sender_id=query.sender.id,
        sender_name=name_of(query.sender),
        language=code_of(query.sender.language_code),
        chat=message.chat.id if message else 0,
        message_id=message.message_id if message else 0,
        topic=topic_of(message) if message else 0,
        says=query.data,
    )


def _message(
    message: Message, bots: Sequence[User]
) -> TelegramMessage | Moved | Reason:
    if message.migrate_to_chat_id:
        return Moved(message.chat.id, message.migrate_to_chat_id)
    if message.migrate_from_chat_id:
        return Moved(message.migrate_from_chat_id, message.chat.id)
    if message.sender is not None and is_one_of(message.sender, bots):
        return "own"
    if message.chat.type == "channel":
        return "channel"
    if not (words_of(message) or files_of(message)) or message.sender is None:
        return "service"
    return _spoken(message, message.sender, bots)


def _spoken(message: Message, sender: User, bots: Sequence[User]) -> TelegramMessage:
    text = words_of(message)
    entities = message.entities if message.text else message.caption_entities
    earlier = _answered(message)
    replied_to = earlier.sender if earlier else None
    name = message.sender_chat  # somebody speaks in the name of a chat
    is_group = message.chat.type in GROUPS
    called = {bot.id for bot in bots if is_called(text, entities, bot)}
    if replied_to is not None and is_one_of(replied_to, bots):
        called.add(replied_to.id)
    return TelegramMessage(
        chat=message.chat.id,
        message_id=message.message_id,
        sender_id=name.id if name else sender.id,
        sender_name=title_of(name) if name else name_of(sender),
        username=name.username if name else sender.username,
        language="" if name else code_of(sender.language_code),
        is_bot=sender.is_bot and not name,
        is_direct=not is_group,
        is_basic=message.chat.type == "group",
        is_anonymous=name is not None and name.id == message.chat.id,
        chat_title=shown_name(message.chat.title),
        text=text,
        sent_at=message.date,
        topic=topic_of(message),
        reply_to=earlier.message_id if earlier else 0,
        reply_to_sender=replied_to.id if replied_to else 0,
        quoted=_quoted(message, earlier),
        quoted_sender=name_of(replied_to) if replied_to else "",
        called=frozenset(called),
        files=files_of(message),
        quoted_files=files_of(earlier) if earlier and is_group else (),
        album=message.media_group_id,
    )


def words_of(message: Message) -> str:
    """Return what a message says, or what stands for it; empty: nothing."""
    text = message.text or message.caption
    if text:
        return text
    at, venue, contact = message.location, message.venue, message.contact
    if at is not None:
        named = (venue.title, venue.address) if venue else ()
        return in_words("location", *named, coordinates(at.latitude, at.longitude))
    if contact is not None:
        name = f"{contact.first_name} {contact.last_name}"
        return in_words("contact", name, contact.phone_number)
    if (poll := message.poll) is not None:
        return in_words("poll", poll.question, *(each.text for each in poll.options))
    return sign_words(message) or titled_words(message)


def sign_words(message: Message) -> str:
    """Return what stands for a die or a sticker; empty: it is neither."""
    if (dice := message.dice) is not None:
        return in_words("dice", dice.emoji, str(dice.value))
    return in_words("sticker", message.sticker.emoji) if message.sticker else ""


def titled_words(message: Message) -> str:
    """Return what stands for a message of which only the title can be read."""
    others = (
        ("checklist", message.checklist),
        ("game", message.game),
        ("invoice", message.invoice),
        ("story", message.story),
        ("paid media", message.paid_media),
        ("giveaway", message.giveaway),
    )
    kept = (in_words(kind, each.title) for kind, each in others if each is not None)
    return next(kept, "")


def topic_of(message: Message) -> int:
    """Return the forum topic that a message is in; 0: none."""
    return message.message_thread_id if message.is_topic_message else 0


def is_one_of(user: User, bots: Sequence[User]) -> bool:
    """Return whether somebody is one of our bots."""
    return any(user.id == bot.id for bot in bots)


def _answered(message: Message) -> Message | None:
    """Return the message that this one replies to.

    Why not always: in a topic each message that replies to none has the topic's first
    one there.
    """
    earlier = message.reply_to_message
    is_first = (
        earlier is not None
        and message.is_topic_message
        and earlier.message_id == message.message_thread_id
    )
    return None if is_first else earlier


def _quoted(message: Message, earlier: Message | None) -> str:
    if earlier is None:
        return ""
    quote = message.quote.text if message.quote else ""
    files = (in_words(file.kind, file.name) for file in files_of(earlier))
    return quote or words_of(earlier) or " ".join(files)


def name_of(user: User) -> str:
    """Return the name that people see, in one line."""
    name = shown_name(f"{user.first_name} {user.last_name}")
    return name or shown_name(user.username) or str(user.id)


def title_of(chat: Chat) -> str:
    """Return the name of a chat that people see, in one line."""
    return shown_name(chat.title) or shown_name(chat.username) or str(chat.id)


def files_of(message: Message) -> tuple[TelegramAttachment, ...]:
    """Return the files that came with a message; of a photo, the largest size."""
    found: list[TelegramAttachment] = []
    if message.photo:
        best = max(message.photo, key=lambda size: size.width * size.height)
        size, unique = best.file_size, best.file_unique_id
        found.append(
            TelegramAttachment("image", PHOTO, "image/jpeg", best.file_id, size, unique)
        )
    kinds: tuple[tuple[FileKind, TelegramFile | None, str, str], ...] = (
        ("audio", message.voice, "voice.ogg", "audio/ogg"),
        ("audio", message.audio, "audio", "audio/mpeg"),
        ("document", message.document, "document", ""),
        ("document", message.video, "video.mp4", "video/mp4"),
        ("document", message.video_note, "video.mp4", "video/mp4"),
    )
    for kind, file, name, media_type in kinds:
        if file is not None:
            found.append(
                TelegramAttachment(
                    kind,
                    shown_name(file.file_name) or name,
                    shown_name(file.mime_type) or media_type,
                    file.file_id,
                    file.file_size,
                    file.file_unique_id,
                )
            )
    return tuple(found)
