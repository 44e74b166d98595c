"""Telegram's HTML, and the parameters of requests that our bots send; pure.

Source: Bot API, "Formatting options", "HTML style": `b`, `i`, `s`, `code`, `pre` with
`code class="language-…"`, `a`, `blockquote`; `&lt;`, `&gt;` and `&amp;`. Code and `pre`
go with no other mark, quotes with no other quote. Only the text counts against the
limit, not its tags; of more than 100 marks in a message the last are not shown. Names
with an at sign call people: a blank of no width is put into them.

Source of requests: Bot API, "sendMessage", "sendPhoto" and its like, "editMessageText",
"setMessageReaction", "ReplyParameters", "InlineKeyboardMarkup".
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from actors.messages.deliveries import Delivery
from actors.messages.inbound import SentFile
from connectors.chat.markup.dialect import (
    JOINT,
    Code,
    Inline,
    Mark,
    MarkupLine,
    Plain,
    WebLink,
    buttons_of,
    parted,
    utf16,
)
from connectors.chat.markup.render import rendered
from connectors.chat.telegram.platform import PLATFORM

MARKS: dict[Mark, tuple[str, str]] = {
    "strong": ("<b>", "</b>"),
    "em": ("<i>", "</i>"),
    "strike": ("<s>", "</s>"),
}
# Why the end: what follows may be a name between tags, which call as without them.
CALL = re.compile(r"(?<!\w)@(?=\w|\Z)")
TAG = re.compile(r"<[^>]*>")
LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,32}")


@dataclass(frozen=True)
class Telegram(Plain):
    """Telegram; see `Dialect`."""

    allowed: frozenset[str] = frozenset()
    """Mentions that stay, as `@zoe_1`."""

    marks: ClassVar[Mapping[Mark, tuple[str, str]]] = MARKS
    is_tagged: ClassVar[bool] = True
    bullet: ClassVar[str] = "• "

    def prepare(self, inline: Inline) -> Inline:
        """Take the marks from code, which goes with none."""
        return tuple(
            Code(piece.text) if isinstance(piece, Code) else piece for piece in inline
        )

    def escape(self, text: str, *, is_first: bool) -> str:
        """Escape what HTML reads, and break names that would call."""
        del is_first
        pieces = parted(text, self.allowed)
        said = [
            html.escape(each, quote=False) if index % 2 else escaped(each)
            for index, each in enumerate(pieces)
        ]
        return "".join(said)

    def code(self, text: str) -> str:
        """Write code."""
        return f"<code>{html.escape(text, quote=False)}</code>"

    def link(self, link: WebLink) -> str:
        """Write a link; clients find bare addresses themselves."""
        if link.is_bare:
            return html.escape(link.text, quote=False)
        href = html.escape(link.href)
        return f'<a href="{href}">{escaped(link.text)}</a>'

    def fence(self, text: str, language: str) -> list[str]:
        """Write code with its language."""
        inner = html.escape(text, quote=False)
        if LANGUAGE.fullmatch(language):
            opener = f'<pre><code class="language-{language}">'
            return f"{opener}{inner}</code></pre>".split("\n")
        return f"<pre>{inner}</pre>".split("\n")

    def quote(self, lines: list[MarkupLine], depth: int) -> list[MarkupLine]:
        """Put a quote between tags; in it, brackets begin the lines of another."""
        if not any(line.text for line in lines):
            return []
        if depth > 0:
            return [MarkupLine(f"&gt; {line.text}", is_flush=True) for line in lines]
        text = "\n".join(line.text for line in lines)
        whole = f"<blockquote>{text}</blockquote>"
        return [MarkupLine(line, is_flush=True) for line in whole.split("\n")]

    def plain(self, text: str) -> str:
        """Escape what HTML reads, and break names that would call."""
        return escaped(text)

    def size(self, rendered: str) -> int:
        """Count what is left when tags and escapes are read."""
        return utf16(html.unescape(TAG.sub("", rendered)))


def escaped(text: str) -> str:
    """Escape what HTML reads, and break names that would call."""
    return html.escape(CALL.sub(f"@{JOINT}", text), quote=False)


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
    """Write the same without any markup: what Telegram could not read it takes so.

    Names call people without markup, too.
    """
    text = CALL.sub(f"@{JOINT}", text)
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
