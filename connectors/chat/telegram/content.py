"""What our bots send: the parameters of requests; pure.

Source: Bot API, "sendMessage", "sendPhoto" and its like, "editMessageText",
"setMessageReaction", "ReplyParameters", "InlineKeyboardMarkup".
"""

from __future__ import annotations

import msgspec

from actors.messages.deliveries import Delivery
from actors.messages.inbound import SentFile
from connectors.chat.markup.buttons import buttons_of
from connectors.chat.markup.dialect import utf16
from connectors.chat.markup.render import rendered
from connectors.chat.telegram.markup import Telegram
from connectors.chat.telegram.platform import PLATFORM

MOST = PLATFORM.limits.text
"""UTF-16 units of a message."""

MOST_CAPTION = PLATFORM.limits.caption

Params = dict[str, object]

SIGNS = {
    "✅": "👌",
    "☑️": "👌",
    "✔️": "👌",
    "⚠️": "🤨",
    "❌": "👎",
    "⏳": "👀",
    "❓": "🤔",
}
"""Reactions that Telegram does not have, and those that are put instead.

Source: Bot API, "ReactionTypeEmoji": bots may use a fixed list only."""


def message(
    delivery: Delivery, text: str, *, topic: int = 0, reply_to: int = 0
) -> Params:
    """Write a delivery.

    Args:
        delivery: what is said.
        text: its words, as they are said by whoever says them.
        topic: the forum topic it belongs to; 0: none.
        reply_to: the number of the message it replies to; 0: it replies to none.
    """
    params = words(text) if delivery.file is None else caption(text)
    if topic:
        params["message_thread_id"] = topic
    if reply_to:
        params["reply_parameters"] = {
            "message_id": reply_to,
            "allow_sending_without_reply": True,
        }
    row = [
        {"text": each.label, "callback_data": each.says}
        for each in buttons_of(delivery)
    ]
    if row:
        params["reply_markup"] = {"inline_keyboard": [row]}
    return params


def words(text: str) -> Params:
    """Write a text in Telegram's markup.

    Why no previews: whoever makes a preview fetches the address, so that a model that
    was talked into writing one could tell somebody what it knows, with no click.
    """
    return {
        "text": rendered(text, Telegram(), MOST),
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": True},
    }


def caption(text: str) -> Params:
    """Write what is said with a file."""
    if not text.strip():
        return {}
    return {
        "caption": rendered(text, Telegram(), MOST_CAPTION),
        "parse_mode": "HTML",
    }


def plain(params: Params, text: str) -> Params:
    """Write the same without any markup: what Telegram could not read it takes so."""
    rest = {key: value for key, value in params.items() if key != "parse_mode"}
    if "caption" in rest:
        return rest | {"caption": cut(text, MOST_CAPTION)}
    return rest | {"text": cut(text)}


def cut(text: str, most: int = MOST) -> str:
    """Cut a text to what a message takes."""
    if utf16(text) <= most:
        return text
    units = text.encode("utf-16-le", "replace")[: 2 * (most - 1)]
    return units.decode("utf-16-le", "ignore") + "…"


class Way(msgspec.Struct, frozen=True):
    """How a file is sent."""

    method: str
    field: str


DOCUMENT = Way("sendDocument", "document")
WAYS = {
    "image": Way("sendPhoto", "photo"),
    "voice": Way("sendVoice", "voice"),
    "video": Way("sendVideo", "video"),
}
SONGS = frozenset({"audio/mpeg", "audio/mp4"})
"""What `sendAudio` takes."""


def way_of(file: SentFile) -> Way:
    """Say how a file is sent: as what it is, if Telegram has a way for that."""
    if file.media_type == "image/gif" and file.kind == "image":
        return Way("sendAnimation", "animation")
    if file.kind == "audio" and file.media_type in SONGS:
        return Way("sendAudio", "audio")
    return WAYS.get(file.kind, DOCUMENT)


def reaction(sign: str) -> list[Params]:
    """Write a sign at a message; empty: none."""
    if not sign:
        return []
    emoji = SIGNS.get(sign, sign).removesuffix("\ufe0f")
    return [{"type": "emoji", "emoji": emoji}]
