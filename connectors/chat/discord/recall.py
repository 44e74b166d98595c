"""Whether something was said before, where Discord does not know any more.

Discord remembers for some minutes which messages were sent (`enforce_nonce`). What is
said again later, as after a long outage or a restart, is looked for first.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING

import trio

from connectors.chat.discord.snowflakes import number, seconds_of
from connectors.chat.discord.wire import Channel
from connectors.chat.loose_json import table, tables, text

if TYPE_CHECKING:
    from actors.deliveries import Delivery
    from connectors.chat.discord.bot import Bot
    from connectors.chat.loose_json import Json

# Source: developers' reference: "in the past few minutes"; the shortest that is meant.
REMEMBERED_FOR = 120.0
"""Seconds."""

LOOKED_AT = 50
"""Messages that are looked through."""

MOST_DELIVERIES = 5_000
"""Deliveries that are remembered; older ones were said, or given up."""


class Recall:
    """What was tried, and what was said, by this process.

    Args:
        began_at: when it began, in Unix seconds.
    """

    def __init__(self, began_at: float) -> None:
        self._began_at = began_at
        self._tried: OrderedDict[str, float] = OrderedDict()
        self._receipts: OrderedDict[str, None] = OrderedDict()

    def is_unsure(self, delivery: Delivery) -> bool:
        """Tell whether a delivery may have been said when Discord knew it; notes it."""
        now = trio.current_time()
        first = self._tried.setdefault(delivery.id, now)
        trim(self._tried)
        if now - first > REMEMBERED_FOR:
            return True
        asked = number(delivery.reply_to)
        return first == now and asked > 0 and seconds_of(asked) < self._began_at

    def note(self, receipt: str) -> None:
        """Note that a message is a delivery's."""
        self._receipts[receipt] = None
        trim(self._receipts)

    async def find(self, bot: Bot, channel: str, message: Json, asked: str) -> str:
        """Look for what was said before; on the edge.

        Args:
            bot: who would have said it.
            channel: where.
            message: what would be sent.
            asked: the id of the message it answers; it was said after that.

        Returns:
            Its id; empty: it was not said.
        """
        user = str(bot.user.id) if bot.user is not None else ""
        for each in await bot.history(Channel(channel, 0), 0, LOOKED_AT):
            known = text(each.message.get("id"))
            is_ours = text(table(each.message.get("author")).get("id")) == user
            is_same = text(each.message.get("content")) == message["content"]
            is_same = is_same and files_of(each.message) == files_of(message)
            is_later = number(known) > number(asked)
            if is_ours and is_same and is_later and known not in self._receipts:
                return known
        return ""


def files_of(message: Json) -> list[str]:
    """Give the names of the files that come with a message, as Discord writes them."""
    found = tables(message.get("attachments"))
    return [re.sub(r"[^A-Za-z0-9._-]+", "_", text(x.get("filename"))) for x in found]


def trim(kept: OrderedDict[str, float] | OrderedDict[str, None]) -> None:
    """Forget the oldest."""
    while len(kept) > MOST_DELIVERIES:
        kept.popitem(last=False)
