"""What an update says; pure and total: a message, a button, or why it is neither.

Edits are left out: the agents may have begun with what stood there first, and what was
accepted is never changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from connectors.chat.telegram.entities import Command, command_of, is_called
from connectors.chat.telegram.wire import Malformed, Update

if TYPE_CHECKING:
    from connectors.chat.telegram.wire import File, Message, User

Reason = Literal["malformed", "own", "edit", "channel", "service", "unknown"]
"""Why an update is nothing to us: it is not shaped as it must be; our own bot said it;
it changes a message; it is a channel's, which nobody answers; it tells of the chat
(somebody came, a picture changed); nobody has told us of its kind."""

Kind = Literal["image", "audio", "document"]

LONGEST_NAME = 128
GROUPS = frozenset({"group", "supergroup"})
PHOTO = "photo.jpg"


class Sent(msgspec.Struct, frozen=True):
    """A file that came with a message, still on Telegram's servers."""

    kind: Kind
    file_id: str
    name: str
    media_type: str
    size: int
    """Bytes, as Telegram says; 0 if it does not."""


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a person, or of another program."""

    chat: int
    message_id: int
    sender_id: int
    sender_name: str
    username: str
    is_bot: bool
    is_direct: bool
    text: str
    """What is said, or said beside a file."""

    sent_at: int
    """Unix seconds."""

    topic: int = 0
    """The forum topic it is in; 0: none. Threads of replies are no topics: sent back,
    they would be refused."""

    reply_to: int = 0
    quoted: str = ""
    quoted_sender: str = ""
    is_called: bool = False
    """Whether the bot is meant: by name, by a command, or by a reply to it."""

    command: Command | None = None
    files: tuple[Sent, ...] = ()

    @property
    def platform_id(self) -> str:
        """The id by which the message is known: ids count within a chat only."""
        return f"{self.chat}/{self.message_id}"


class Pressed(msgspec.Struct, frozen=True):
    """A button that was pressed."""

    query_id: str
    sender_id: int
    sender_name: str
    chat: int
    message_id: int
    """0: the message is too old to be known."""

    prefix: str
    """Whose button it is (F033): what stands before the first colon."""

    value: str


class Moved(msgspec.Struct, frozen=True):
    """A group became a supergroup: from now on it has another id."""

    old: int
    new: int


def read(update: Update | Malformed, bot: User) -> Spoken | Pressed | Moved | Reason:
    """Say what an update is to a bot."""
    match update:
        case Malformed():
            return "malformed"
        case Update(message=message) if message is not None:
            return _message(message, bot)
        case Update(callback_query=query) if query is not None:
            prefix, _, value = query.data.partition(":")
            message = query.message
            return Pressed(
                query_id=query.id,
                sender_id=query.sender.id,
                sender_name=name_of(query.sender),
                chat=message.chat.id if message else 0,
                message_id=message.message_id if message else 0,
                prefix=prefix,
                value=value,
            )
        case Update(edited_message=edited) if edited is not None:
            return "edit"
        case Update(channel_post=post) if post is not None:
            return "channel"
        case _:
            return "unknown"


def _message(message: Message, bot: User) -> Spoken | Moved | Reason:
    if message.migrate_to_chat_id:
        return Moved(message.chat.id, message.migrate_to_chat_id)
    if message.sender is not None and message.sender.id == bot.id:
        return "own"
    if message.chat.type == "channel":
        return "channel"
    files = files_of(message)
    text = message.text or message.caption
    if not (text or files) or message.sender is None:
        return "service"
    return _spoken(message, message.sender, bot)


def _spoken(message: Message, sender: User, bot: User) -> Spoken:
    text = message.text or message.caption
    entities = message.entities if message.text else message.caption_entities
    earlier = _answered(message)
    replied_to = earlier.sender if earlier else None
    is_reply = replied_to is not None and replied_to.id == bot.id
    return Spoken(
        chat=message.chat.id,
        message_id=message.message_id,
        sender_id=sender.id,
        sender_name=name_of(sender),
        username=sender.username,
        is_bot=sender.is_bot,
        is_direct=message.chat.type not in GROUPS,
        text=text,
        sent_at=message.date,
        topic=message.message_thread_id if message.is_topic_message else 0,
        reply_to=earlier.message_id if earlier else 0,
        quoted=_quoted(message, earlier),
        quoted_sender=name_of(replied_to) if replied_to else "",
        is_called=is_reply or is_called(text, entities, bot),
        command=command_of(text, entities),
        files=files_of(message),
    )


def _answered(message: Message) -> Message | None:
    """Give the message that this one replies to.

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
    whole = earlier.text or earlier.caption
    return message.quote.text if message.quote and message.quote.text else whole


def name_of(user: User) -> str:
    """Give the name that people see, in one line."""
    name = " ".join(f"{user.first_name} {user.last_name}".split())
    return (name or user.username or str(user.id))[:LONGEST_NAME]


def files_of(message: Message) -> tuple[Sent, ...]:
    """Give the files that came with a message; of a photo, the largest size."""
    found: list[Sent] = []
    if message.photo:
        best = max(message.photo, key=lambda size: size.width * size.height)
        found.append(Sent("image", best.file_id, PHOTO, "image/jpeg", best.file_size))
    kinds: tuple[tuple[Kind, File | None, str, str], ...] = (
        ("audio", message.voice, "voice.ogg", "audio/ogg"),
        ("audio", message.audio, "audio", "audio/mpeg"),
        ("document", message.document, "document", ""),
        ("document", message.video, "video.mp4", "video/mp4"),
        ("document", message.video_note, "video.mp4", "video/mp4"),
    )
    for kind, file, name, media_type in kinds:
        if file is not None:
            found.append(
                Sent(
                    kind,
                    file.file_id,
                    file.file_name or name,
                    file.mime_type or media_type,
                    file.file_size,
                )
            )
    return tuple(found)
