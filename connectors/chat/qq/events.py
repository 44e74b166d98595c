"""What QQ's gateway tells of messages; pure.

Whatever is missing or odd is empty, and what cannot be answered is left out with a
reason: one strange message must not end a bot.
"""

from __future__ import annotations

import html
import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Literal

import msgspec

from connectors.chat.inbound import shown_name
from connectors.chat.requests import (
    LONGEST_ID,
    Json,
    LinkedAttachment,
    decode,
    is_id,
    table,
    tables,
    text,
    texts,
    whole,
)

PlaceKind = Literal["user", "group", "channel", "dm"]

# Source: QQ, "事件": a person alone, a group, a channel, direct messages of channels.
PLACES: dict[str, PlaceKind] = {
    "C2C_MESSAGE_CREATE": "user",
    "GROUP_AT_MESSAGE_CREATE": "group",
    "AT_MESSAGE_CREATE": "channel",
    "DIRECT_MESSAGE_CREATE": "dm",
}

GUILDS: frozenset[PlaceKind] = frozenset({"channel", "dm"})
"""Kinds that belong to channels (频道): other requests, other limits."""

Reason = Literal["malformed", "bot", "other"]
"""Why something is no message for us: it makes no sense, a bot wrote it, or it tells
of something else."""

# Seen: openids are 32 hexadecimal digits, ids of channels are numbers.
ID = re.compile(r"[A-Za-z0-9_.!-]{1,128}")
LONGEST_QUOTE = 2_000
"""Characters."""

KINDS: dict[str, Literal["image", "audio", "document"]] = {
    "image": "image",
    "audio": "audio",
}

# Seen: `<faceType=1,faceId="13",ext="…">`, whose `ext` is base64 of `{"text":"呲牙"}`.
CALLED = re.compile(r"<@!?([\w-]{1,64})>")
FACE = re.compile(r'<faceType=\d+,\s*faceId="[^"]{0,64}",\s*ext="([^"]{0,2000})"\s*>')


class QQPlace(msgspec.Struct, frozen=True):
    """Where something is said."""

    bot: str
    """The AppID: QQ names people and groups otherwise for each bot."""

    kind: PlaceKind
    id: str

    @property
    def chat(self) -> str:
        """Its name as a chat."""
        return f"{self.bot}:{self.kind}:{self.id}"

    @property
    def is_direct(self) -> bool:
        """Whether one person is there alone with the bot."""
        return self.kind in {"user", "dm"}


def read_place(chat: str) -> QQPlace:
    """Return what a chat names.

    Raises:
        ValueError: it is no chat of QQ's.
    """
    bot, _, rest = chat.partition(":")
    kind, _, known = rest.partition(":")
    for each in PLACES.values():
        if kind == each and bot.isdigit() and ID.fullmatch(known):
            return QQPlace(bot, each, known)
    raise ValueError(f"{chat!r} is no chat: write <AppID>:<user or group>:<openid>")


class QQMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a person."""

    id: str
    place: QQPlace
    sender: str
    sender_name: str
    text: str
    index: str = ""
    """By what a reply to it names it; outside channels, that is not its id."""

    reply_to: str = ""
    """Id or index of the message it replies to."""

    quote: str = ""
    """What that says, if it comes along."""

    files: tuple[LinkedAttachment, ...] = ()
    guild: str = ""
    roles: tuple[str, ...] = ()


class QQSkipped(msgspec.Struct, frozen=True):
    """Something that is no message for us."""

    reason: Reason


def read(kind: str, said: Json, bot: str, user: str) -> QQMessage | QQSkipped:
    """Say what an event is.

    Args:
        bot: the AppID of who heard it.
    """
    place_kind = PLACES.get(kind)
    if place_kind is None:
        return QQSkipped("other")
    author = table(said.get("author"))
    if author.get("bot") is True:
        return QQSkipped("bot")
    sender = sender_of(place_kind, author)
    known = {
        "user": sender,
        "group": text(said.get("group_openid")),
        "channel": text(said.get("channel_id")),
        "dm": text(said.get("guild_id")),
    }[place_kind]
    message_id = text(said.get("id"))
    is_whole = all(map(ID.fullmatch, (sender, known))) and is_id(message_id)
    if not is_whole:
        return QQSkipped("malformed")
    scene = scene_of(said)
    reference = text(table(said.get("message_reference")).get("message_id"))
    elements = tables(said.get("msg_elements"))
    return QQMessage(
        id=message_id,
        place=QQPlace(bot, place_kind, known),
        sender=sender,
        sender_name=name_of(place_kind, author, sender),
        text=words_of(place_kind, text(said.get("content")), user, named_in(said)),
        index=scene.get("msg_idx", "") or message_id,
        reply_to=reference or scene.get("ref_msg_idx", ""),
        quote=text(elements[0].get("content"))[:LONGEST_QUOTE] if elements else "",
        files=tuple(map(file_of, tables(said.get("attachments")))),
        guild=text(said.get("guild_id")) if place_kind in GUILDS else "",
        roles=texts(table(said.get("member")).get("roles")),
    )


def sender_of(kind: PlaceKind, author: Json) -> str:
    """Return who wrote something: a member of a group has an id of that group."""
    fields = {"user": "user_openid", "group": "member_openid"}
    return text(author.get(fields.get(kind, "id"))) or text(author.get("id"))


def name_of(kind: PlaceKind, author: Json, sender: str) -> str:
    """Return what somebody is called; QQ often does not tell outside channels."""
    name = shown_name(text(author.get("username")))
    if name:
        return name
    return f"member {sender[:4]}" if kind == "group" else "somebody"


def named_in(said: Json) -> dict[str, str]:
    """Return the names of those whom a message calls, by their ids."""
    people = tables(said.get("mentions"))
    named = ((text(x.get("id")), shown_name(text(x.get("username")))) for x in people)
    return {known: name for known, name in named if known and name}


def words_of(
    kind: PlaceKind, content: str, user: str, called: Mapping[str, str]
) -> str:
    """Return what somebody wrote, without the call of the bot with which it begins.

    Args:
        user: the bot's id in channels.
        called: names of others who are called, by their ids.
    """
    if kind in GUILDS:
        content = re.sub(rf"<@!?{re.escape(user)}>", "", content)
        content = CALLED.sub(
            lambda found: f"@{called[found[1]]}" if found[1] in called else found[0],
            content,
        )
        content = html.unescape(content)
    words = FACE.sub(lambda found: f"[{face_of(found[1]) or 'emoji'}]", content)
    return words if kind == "user" else words.strip()


def face_of(ext: str) -> str:
    """Return what an emoji of QQ's is called; empty: nobody knows."""
    try:
        return shown_name(text(decode(b64decode(ext)).get("text")))
    except (ValueError, RecursionError):
        return ""


def scene_of(said: Json) -> dict[str, str]:
    """Return what stands in `message_scene.ext`, as `key=value` (seen)."""
    listed = texts(table(said.get("message_scene")).get("ext"))
    pairs = (each.partition("=") for each in listed)
    return {key: value[:LONGEST_ID] for key, _, value in pairs}


def file_of(attachment: Json) -> LinkedAttachment:
    """Read an attachment: `voice` and `file` are types of their own there."""
    media_type = text(attachment.get("content_type")).partition(";")[0].strip()
    url, wave = text(attachment.get("url")), text(attachment.get("voice_wav_url"))
    if media_type == "voice":
        # SILK, which hardly anything reads; newer events have the same as WAV (seen).
        media_type, url = ("audio/wav", wave) if wave else ("audio/silk", url)
    elif "/" not in media_type:
        media_type = ""
    return LinkedAttachment(
        kind=KINDS.get(media_type.partition("/")[0], "document"),
        name=shown_name(text(attachment.get("filename"))),
        media_type=media_type,
        url=whole_url(url),
        size=max(0, whole(attachment.get("size"))),
    )


def whole_url(url: str) -> str:
    """Return an address with its scheme, which QQ leaves out of some."""
    return url if "://" in url else f"https://{url.removeprefix('//')}"
