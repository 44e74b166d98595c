"""What our accounts send: the contents of events; pure.

Source: spec, "Rich replies", "Threading", "Event replacements", "User and room
mentions". `m.mentions` is always there: without it clients look for names in the text,
and a model could call a whole room.
"""

from __future__ import annotations

import hashlib
import re

import msgspec

from actors.messages.deliveries import Delivery
from actors.messages.inbound import SentFile
from connectors.chat.markup.render import rendered_html
from connectors.chat.matrix.platform import PLATFORM
from connectors.chat.requests import Json

PLAIN = re.compile(r"<p>[^<&]*</p>\s*")


def as_html(text: str) -> str:
    """Return the HTML of a text; empty if it looks the same without."""
    html = rendered_html(text)
    return "" if PLAIN.fullmatch(html) else html


# In JSON a character can take 6 bytes: a message stays below the 65,536 bytes of an
# event with what servers add.
MOST_CHARS = PLATFORM.limits.text

MOST_BYTES = 60_000
"""Bytes of a content; the rest is the server's."""

MOST_OLD_CHARS = 1_000
"""Characters of an edit that clients show which know of no edits."""

KINDS = {
    "image": "m.image",
    "audio": "m.audio",
    "voice": "m.audio",
    "video": "m.video",
    "document": "m.file",
}

LONGEST_KEY = 200
"""Characters of a transaction id that is told as it is."""


def message(delivery: Delivery, meant: tuple[str, ...], *, is_reply: bool) -> Json:
    """Write a delivery as the content of an `m.room.message`.

    Args:
        meant: ids of the people who are to be called to it.
    """
    kind = "m.notice" if delivery.kind == "notice" else "m.text"
    content = words(kind, delivery.text, meant)
    related = relates_to(delivery, is_reply=is_reply)
    if related:
        content["m.relates_to"] = related
    return content


def file(
    delivery: Delivery,
    sent: SentFile,
    address: str,
    meant: tuple[str, ...],
    *,
    is_reply: bool,
) -> Json:
    """Write a file as the content of an `m.room.message`.

    Source: spec, "Media captions": with a `filename`, the `body` is what is said of it.

    Args:
        address: where the homeserver has it (`mxc://`).
        meant: ids of the people who are to be called to it.
    """
    kind = KINDS[sent.kind]
    said = words(kind, delivery.text, meant) if delivery.text.strip() else {}
    content: Json = {
        "msgtype": kind,
        "body": sent.name,
        "m.mentions": {"user_ids": [*meant]} if meant else {},
        **said,
        "filename": sent.name,
        "url": address,
        "info": {"mimetype": sent.media_type, "size": sent.size},
    }
    if sent.kind == "voice":
        content["org.matrix.msc3245.voice"] = {}
    related = relates_to(delivery, is_reply=is_reply)
    if related:
        content["m.relates_to"] = related
    return content


def words(kind: str, text: str, meant: tuple[str, ...] = ()) -> Json:
    """Write a text, with its HTML if there is room for it."""
    content: Json = {
        "msgtype": kind,
        "body": text,
        "m.mentions": {"user_ids": [*meant]} if meant else {},
    }
    html = as_html(text)
    if html:
        formatted: Json = {"format": "org.matrix.custom.html", "formatted_body": html}
        if size_of({**content, **formatted}) <= MOST_BYTES:
            content |= formatted
    return content


def relates_to(delivery: Delivery, *, is_reply: bool) -> Json:
    """Say where a message belongs; empty: nowhere in particular."""
    thread = delivery.address.thread
    if thread:
        # For clients that know no threads it looks like a reply.
        return {
            "rel_type": "m.thread",
            "event_id": thread,
            "is_falling_back": True,
            "m.in_reply_to": {"event_id": delivery.reply_to or thread},
        }
    if is_reply and delivery.reply_to:
        return {"m.in_reply_to": {"event_id": delivery.reply_to}}
    return {}


def edit(receipt: str, text: str) -> Json:
    """Let a message read otherwise; nobody is called to it again."""
    new = words("m.text", text)
    old = f"* {text[:MOST_OLD_CHARS]}"
    content: Json = {
        "msgtype": "m.text",
        "body": old,
        "m.mentions": {},
        "m.new_content": new,
        "m.relates_to": {"rel_type": "m.replace", "event_id": receipt},
    }
    if size_of(content) > MOST_BYTES:
        content["m.new_content"] = {"msgtype": "m.text", "body": text, "m.mentions": {}}
    return content


def reaction(message_id: str, sign: str) -> Json:
    """Put a sign at a message."""
    return {
        "m.relates_to": {
            "rel_type": "m.annotation",
            "event_id": message_id,
            "key": sign,
        }
    }


def size_of(content: Json) -> int:
    """Count the bytes of a content."""
    return len(msgspec.json.encode(content))


def transaction(key: str) -> str:
    """Make the id by which the server knows a request that is repeated."""
    if len(key) <= LONGEST_KEY and key.isascii():
        return f"cb-{key}"
    return f"cb-{hashlib.sha256(key.encode()).hexdigest()}"
