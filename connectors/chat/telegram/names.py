"""How chats and messages are called inside; pure.

A private chat has the same number for all bots, as it is the person's: the agent whose
bot is meant stands behind it (`42@anna`). A message is known by its chat and number
(`-100123/5`). Only supergroups count their messages for all: elsewhere each bot has
numbers of its own, and its agent stands behind (`42/5@anna`), as it does behind what we
have said, so that the same bot changes it.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from connectors.chat.telegram.updates import Spoken

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


def fingerprint(spoken: Spoken) -> str:
    """Give what all bots see alike of a message whose numbers they do not share."""
    seen = (
        spoken.chat,
        spoken.sender_id,
        spoken.sent_at,
        spoken.text,
        *(file.unique_id for file in spoken.files),
    )
    return "~" + hashlib.sha256(msgspec.json.encode(seen)).hexdigest()[:32]
