"""WhatsApp's marks, and the bodies of requests that our numbers send; pure.

Source: WhatsApp, "How to format your messages": `*bold*`, `_italic_`, `~strike~`, code
between one or three backticks, quotes and lists by line; no headings, tables or named
links, and nothing can be escaped. Nobody can be called from the text alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import msgspec

from actors.messages.inbound import SentFile
from connectors.chat.markup.dialect import (
    JOINT,
    Inline,
    Mark,
    MarkupLine,
    Plain,
    WebLink,
    prefixed,
    softened,
    utf16,
    without_ticks,
)
from connectors.chat.markup.render import rendered
from connectors.chat.requests import Json
from connectors.chat.whatsapp.platform import PLATFORM, TemplateConfig
from connectors.fetch.messages import TEXTS

MARKS: dict[Mark, tuple[str, str]] = {
    "strong": ("*", "*"),
    "em": ("_", "_"),
    "strike": ("~", "~"),
}


@dataclass(frozen=True)
class WhatsApp(Plain):
    """WhatsApp; see `Dialect`."""

    marks: ClassVar[Mapping[Mark, tuple[str, str]]] = MARKS
    needs_edges: ClassVar[bool] = True

    def prepare(self, inline: Inline) -> Inline:
        """Take the meaning from signs that stand for themselves."""
        return softened(inline, MARKS)

    def escape(self, text: str, *, is_first: bool) -> str:
        """Keep a line from becoming a quote."""
        is_quote = is_first and text.lstrip().startswith(">")
        return f"{JOINT}{text}" if is_quote else text

    def code(self, text: str) -> str:
        """Write code; its own backticks would end it."""
        return f"`{without_ticks(text)}`"

    def link(self, link: WebLink) -> str:
        """Write the address out."""
        if link.is_bare:
            return link.text
        return f"{link.text} ({link.href.removeprefix('mailto:')})"

    def fence(self, text: str, language: str) -> list[str]:
        """Write code; WhatsApp knows no languages."""
        del language
        lines = text.replace("``", f"`{JOINT}`").split("\n")
        return ["```", *lines, "```"]

    def quote(self, lines: list[MarkupLine], depth: int) -> list[MarkupLine]:
        """Write a bracket before each line; WhatsApp knows no quotes in quotes."""
        return prefixed(lines, "> " if depth == 0 else f"{JOINT}> ")

    def size(self, rendered: str) -> int:
        """Count as strictly as anybody could."""
        return utf16(rendered)


MOST = PLATFORM.limits.text
MOST_CAPTION = PLATFORM.limits.caption
MOST_IMAGE, MOST_CLIP = PLATFORM.limits.image_bytes, PLATFORM.limits.clip_bytes
"""Bytes."""

Way = Literal["image", "audio", "video", "document"]

# Source: Meta, "Media, supported media types".
PICTURES = frozenset({"image/jpeg", "image/png"})
VIDEOS = frozenset({"video/mp4", "video/3gpp"})
SOUNDS = frozenset({"audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg"})
OFFICE = "application/vnd.openxmlformats-officedocument."
OFFICE_FILES = {
    ".docx": f"{OFFICE}wordprocessingml.document",
    ".pptx": f"{OFFICE}presentationml.presentation",
    ".xlsx": f"{OFFICE}spreadsheetml.sheet",
}
"""Archives by their bytes, which Meta takes only under these types."""

# Source: Meta, "Business-scoped user IDs": the country, a full stop, and up to 128
# letters and digits.
USER_ID = re.compile(r"[A-Z]{2}\.[A-Za-z0-9.]{1,140}")
PHONE = re.compile(r"[0-9]{3,20}")

LONGEST_MARKER = 256
"""Characters of our id that travel with a message and come back with its statuses."""

PRODUCT: dict[str, object] = {"messaging_product": "whatsapp"}


class Media(msgspec.Struct, frozen=True):
    """A file that Meta has."""

    id: str
    """Meta's, for the number that brought it."""

    file: SentFile


def chat_of(number: str, person: str) -> str:
    """Name a chat: with which of our numbers, and with whom."""
    return f"{number}:{person}"


def parted(chat: str) -> tuple[str, str]:
    """Return number and person of a chat.

    Raises:
        ValueError: it is no chat of ours.
    """
    number, _, person = chat.partition(":")
    if not number or not (USER_ID.fullmatch(person) or PHONE.fullmatch(person)):
        text = f"{chat!r} is no chat: write <phone_number_id>:<user id or phone number>"
        raise ValueError(text)
    return number, person


def to(person: str) -> Json:
    """Say to whom something goes: user ids and phone numbers have fields of their own.

    Source: Meta, "Business-scoped user IDs": `recipient` beside the older `to`.
    """
    field = "to" if PHONE.fullmatch(person) else "recipient"
    return {**PRODUCT, "recipient_type": "individual", field: person}


def message(
    person: str,
    words: str,
    marker: str,
    reply_to: str = "",
    media: Media | None = None,
) -> Json:
    """Write a text, or a file and what is said with it.

    Args:
        marker: comes back with the message's statuses.
        reply_to: the id of a message that is shown above it; empty: none.
        media: the file; None: none.
    """
    body: Json = {
        **to(person),
        **(said(words) if media is None else brought(words, media)),
        "biz_opaque_callback_data": marker,
    }
    if reply_to:
        body["context"] = {"message_id": reply_to}
    return body


def template(person: str, config: TemplateConfig, words: str, marker: str) -> Json:
    """Write words to somebody who has not written for 24 hours.

    Args:
        words: in one line; see `one_line`.
        marker: comes back with the message's statuses; empty: nothing does.
    """
    body = {"type": "body", "parameters": [{"type": "text", "text": words}]}
    what: Json = {
        "name": config.name,
        "language": {"code": config.language},
        "components": [body],
    }
    mark: Json = {"biz_opaque_callback_data": marker} if marker else {}
    return {**to(person), "type": "template", "template": what, **mark}


def one_line(words: str) -> str:
    """Write Markdown as a template takes it.

    Source: Meta, "Message templates": no line breaks, no tabs, no four blanks in a row.
    """
    return " ".join(rendered(words, WhatsApp(), MOST).split())


def said(words: str) -> Json:
    """Write what is only said."""
    body = rendered(words, WhatsApp(), MOST)
    return {"type": "text", "text": {"body": body, "preview_url": False}}


def brought(words: str, media: Media) -> Json:
    """Write a file and what is said with it, which may be nothing."""
    way = way_of(media.file, words)
    what: Json = {"id": media.id}
    if words.strip():
        what["caption"] = rendered(words, WhatsApp(), MOST_CAPTION)
    if way == "document":
        what["filename"] = media.file.name
    return {"type": way, way: what}


def way_of(file: SentFile, words: str) -> Way:
    """Say as what a file is shown; what WhatsApp does not show is a document.

    Why sound with words is one, too: nothing can be said with sound, and whose it is,
    where another's number brings it, would not be seen.
    """
    kind = file.media_type
    if file.kind == "image" and kind in PICTURES and file.size <= MOST_IMAGE:
        return "image"
    is_short = file.size <= MOST_CLIP
    if file.kind == "video" and kind in VIDEOS and is_short:
        return "video"
    is_sound = file.kind in {"audio", "voice"} and kind in SOUNDS
    return "audio" if is_sound and is_short and not words.strip() else "document"


def type_of(file: SentFile) -> str:
    """Return the type under which Meta takes a file, if it takes it at all."""
    if file.media_type == "application/zip":
        suffix = file.name[-5:].lower()
        return OFFICE_FILES.get(suffix, file.media_type)
    return "text/plain" if TEXTS.fullmatch(file.media_type) else file.media_type


def reaction(person: str, message_id: str, sign: str) -> Json:
    """Put a sign at a message; an empty one takes it away."""
    what = {"message_id": message_id, "emoji": sign}
    return {**to(person), "type": "reaction", "reaction": what}


def read(message_id: str, *, is_typing: bool = False) -> Json:
    """Show that a message was read, and perhaps that an answer is being written."""
    body: Json = {**PRODUCT, "status": "read", "message_id": message_id}
    if is_typing:
        body["typing_indicator"] = {"type": "text"}
    return body


def marker_of(delivery_id: str) -> str:
    """Make what a message is known by when its statuses come."""
    if len(delivery_id) <= LONGEST_MARKER and delivery_id.isascii():
        return delivery_id
    return hashlib.sha256(delivery_id.encode()).hexdigest()
