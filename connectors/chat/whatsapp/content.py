"""What our numbers send: the bodies of requests; pure."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from connectors.chat.limits import LIMITS
from connectors.chat.markup.rendering import rendered
from connectors.chat.markup.whatsapp import WhatsApp

if TYPE_CHECKING:
    from connectors.chat.matrix.wire import Json

MOST = LIMITS["whatsapp"].text

# Source: Meta, "Business-scoped user IDs": the country, a full stop, and up to 128
# letters and digits.
USER_ID = re.compile(r"[A-Z]{2}\.[A-Za-z0-9.]{1,140}")
PHONE = re.compile(r"[0-9]{3,20}")

LONGEST_MARKER = 256
"""Characters of our id that travel with a message and come back with its statuses."""

PRODUCT: dict[str, object] = {"messaging_product": "whatsapp"}


def chat_of(number: str, person: str) -> str:
    """Name a chat: with which of our numbers, and with whom."""
    return f"{number}:{person}"


def parted(chat: str) -> tuple[str, str]:
    """Give number and person of a chat.

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


def message(person: str, words: str, marker: str, reply_to: str = "") -> Json:
    """Write a text.

    Args:
        person: to whom.
        words: Markdown.
        marker: comes back with the message's statuses.
        reply_to: the id of a message that is shown above it; empty: none.
    """
    said = rendered(words, WhatsApp(), MOST)
    body: Json = {
        **to(person),
        "type": "text",
        "text": {"body": said, "preview_url": False},
        "biz_opaque_callback_data": marker,
    }
    if reply_to:
        body["context"] = {"message_id": reply_to}
    return body


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
