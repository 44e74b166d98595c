"""Chats and bots of the fake Bot API: who hears what, and how a text is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any

Json = dict[str, Any]

TAGS = {
    "b": "bold",
    "i": "italic",
    "s": "strikethrough",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
    "a": "text_link",
}
MOST = 4096
MOST_CAPTION = 1024


class RefusalError(Exception):
    """The Bot API says no."""

    def __init__(self, status: int, text: str, **parameters: Any) -> None:
        super().__init__(text)
        self.status = status
        self.parameters = parameters


class FakeBot:
    """One bot, and what is kept for it."""

    def __init__(self, number: int, username: str, *, reads_all: bool) -> None:
        self.id = number
        self.username = username
        self.reads_all = reads_all
        self.updates: list[Json] = []
        self.next_update = 100 * number
        self.polls = 0
        self.secret = ""
        self.webhook: Json = {
            "url": "",
            "has_custom_certificate": False,
            "pending_update_count": 0,
        }
        self.answered: list[tuple[str, Any]] = []
        self.menus: dict[str, list[Json]] = {}
        """By the language of those who see it; empty: of all others."""

    @property
    def user(self) -> Json:
        """How others see it."""
        return {
            "id": self.id,
            "is_bot": True,
            "first_name": self.username.partition("_")[0],
            "username": self.username,
        }

    @property
    def me(self) -> Json:
        """What it is told of itself."""
        return {
            **self.user,
            "can_join_groups": True,
            "can_read_all_group_messages": self.reads_all,
            "supports_inline_queries": False,
        }

    def set_menu(self, params: Json) -> bool:
        """Take the commands of its menu, as the Bot API does."""
        for each in params["commands"]:
            if not re.fullmatch(r"[a-z0-9_]{1,32}", each["command"]):
                raise RefusalError(400, "Bad Request: BOT_COMMAND_INVALID")
            if not 1 <= len(each["description"]) <= 256:
                raise RefusalError(400, "Bad Request: BOT_COMMAND_DESCRIPTION_INVALID")
        language = str(params.get("language_code") or "")
        if not re.fullmatch(r"(?:[a-z]{2})?", language):
            raise RefusalError(400, "Bad Request: LANG_CODE_INVALID")
        self.menus[language] = params["commands"]
        return True

    def tell(self, kind: str, what: Json) -> None:
        """Keep an update for it."""
        self.updates.append({"update_id": self.next_update, kind: what})
        self.next_update += 1

    def forget(self, offset: int) -> None:
        """Forget what was confirmed."""
        self.updates = [each for each in self.updates if each["update_id"] >= offset]


def as_update(update: Json) -> Mapping[str, Any]:
    """Give what an update holds beside its number."""
    return {key: value for key, value in update.items() if key != "update_id"}


class Chat:
    """One chat, with what was said there, as each bot has it."""

    def __init__(self, number: int, kind: str, bots: dict[int, FakeBot]) -> None:
        self.id = number
        self.kind = kind
        self.bots = bots
        self.title = "" if kind == "private" else "The room"
        self.said: dict[int, list[Json]] = {each: [] for each in bots}
        self.signs: dict[tuple[int, int], list[str]] = {}
        self.typing: list[tuple[str, int]] = []
        self.admins: list[int] = []
        self.moved_to = 0
        self.is_blocked = False
        self.held_until = 0.0
        self.topics: set[int] = set()
        # Each bot counts for itself, except in supergroups.
        shared = kind == "supergroup"
        self._next = {each: 1 if shared else 1 + each % 1000 for each in bots}

    @property
    def key(self) -> int:
        """What tells it from others: private chats are one for each bot."""
        return self.id if self.id < 0 else hash((self.id, next(iter(self.bots))))

    @property
    def facts(self) -> Json:
        """How it is told of."""
        facts: Json = {"id": self.id, "type": self.kind}
        if self.title:
            facts["title"] = self.title
        else:
            facts["first_name"] = "Zoe"
        return facts

    def add(
        self, sender: Json, at: int, only: FakeBot | None = None, **more: Any
    ) -> dict[int, Json]:
        """Add a message; gives it as each bot has it."""
        told: dict[int, Json] = {}
        for each in self.bots:
            number = self._next[each]
            self._next[each] += 1
            base = {"message_id": number, "chat": self.facts, "date": at}
            message = {**base, "from": sender, **more}
            if only is None or only.id == each or self.kind == "supergroup":
                self.said[each].append(message)
            told[each] = message
        return told

    def hears(self, bot: FakeBot, message: Json) -> bool:
        """Tell whether a bot is told of a message (its privacy mode)."""
        if self.kind == "private" or bot.reads_all:
            return True
        text = str(message.get("text") or message.get("caption") or "")
        earlier: Json = message.get("reply_to_message") or {}
        is_reply = bool(earlier) and earlier["from"]["id"] == bot.id
        is_command = text.startswith("/") and (
            "@" not in text.split(maxsplit=1)[0] or f"@{bot.username}" in text
        )
        return is_reply or is_command or f"@{bot.username}" in text

    def find(self, bot: FakeBot, params: Json, otherwise: str) -> Json:
        """Give a message by its number."""
        for message in self.said[bot.id]:
            if message["message_id"] == int(params["message_id"]):
                return message
        raise RefusalError(400, f"Bad Request: {otherwise}")

    def placed(self, bot: FakeBot, params: Json) -> Json:
        """Say where a message that is sent belongs."""
        placed: Json = {}
        thread = int(params.get("message_thread_id") or 0)
        if thread:
            if thread not in self.topics:
                raise RefusalError(400, "Bad Request: message thread not found")
            placed |= {"message_thread_id": thread, "is_topic_message": True}
        reply = params.get("reply_parameters")
        if reply:
            number = {"message_id": reply["message_id"]}
            try:
                placed["reply_to_message"] = self.find(bot, number, "")
            except RefusalError:
                if not reply.get("allow_sending_without_reply"):
                    text = "Bad Request: message to be replied not found"
                    raise RefusalError(400, text) from None
        return placed

    def by(self, bot: FakeBot) -> list[Json]:
        """Give what a bot said here."""
        return [m for m in self.said[bot.id] if m["from"]["id"] == bot.id]

    def texts(self, bot: FakeBot) -> list[str]:
        """Give the words of what a bot said here."""
        return [
            str(each.get("text") or each.get("caption") or "") for each in self.by(bot)
        ]


class Reader(HTMLParser):
    """Reads Telegram's HTML."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.entities: list[Json] = []
        self._open: list[tuple[str, int, Json]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            text = f"Bad Request: can't parse entities: Unsupported start tag {tag!r}"
            raise RefusalError(400, text)
        more: Json = {"url": dict(attrs).get("href")} if tag == "a" else {}
        self._open.append((tag, units(self.text), more))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1][0] != tag:
            text = "Bad Request: can't parse entities: Unmatched end tag"
            raise RefusalError(400, text)
        _, offset, more = self._open.pop()
        length = units(self.text) - offset
        if length:
            place = {"type": TAGS[tag], "offset": offset, "length": length}
            self.entities.append({**place, **more})

    def handle_data(self, data: str) -> None:
        self.text += data

    def finish(self) -> None:
        """Refuse what was not closed."""
        self.close()
        if self._open:
            text = "Bad Request: can't parse entities: Can't find end tag"
            raise RefusalError(400, text)


def units(text: str) -> int:
    """Count UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def parsed(params: Json) -> Json:
    """Read the text of a message that is sent."""
    text, entities = str(params.get("text") or ""), []
    if params.get("parse_mode") == "HTML":
        reader = Reader()
        reader.feed(text)
        reader.finish()
        text, entities = reader.text, reader.entities
    text = re.sub(r"^\s+|\s+$", "", text)
    if not text:
        raise RefusalError(400, "Bad Request: message text is empty")
    if units(text) > MOST:
        raise RefusalError(400, "Bad Request: message is too long")
    return {"text": text, "entities": entities}


def captioned(params: Json) -> Json:
    """Read what is said with a file that is sent."""
    if not params.get("caption"):
        return {}
    told = parsed({**params, "text": params["caption"]})
    if units(told["text"]) > MOST_CAPTION:
        raise RefusalError(400, "Bad Request: message caption is too long")
    return {"caption": told["text"], "caption_entities": told["entities"]}
