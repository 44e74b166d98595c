"""Groups that became supergroups: they have another id, and stay the same chat inside.

Why: conversation, appointments and settings know a group by the id that it had first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectors.chat.telegram.bookmarks import Bookmarks

MOST_CHATS = 10_000
"""Groups of which is remembered whether they moved; others are looked up again."""


class Moves:
    """The groups that moved.

    Args:
        bookmarks: where it is kept.
    """

    def __init__(self, bookmarks: Bookmarks) -> None:
        self._bookmarks = bookmarks
        self._first: OrderedDict[int, int] = OrderedDict()
        """By id now: the id at first."""

        self._now: dict[int, int] = {}
        """By id at first: the id now, of those that moved."""

    async def moved(self, old: int, new: int) -> bool:
        """Keep that a group has another id; False if that was known.

        Raises:
            StoreError: the disk fails.
        """
        if self._now.get(old) == new or await self.first(new) == old:
            return False
        await self._bookmarks.move(old, new)
        self._note(old, new)
        return True

    async def first(self, chat: int) -> int:
        """Give the id by which a chat is known inside.

        Raises:
            StoreError: the disk fails.
        """
        if chat > 0:
            return chat  # a person
        if chat not in self._first:
            old = await self._bookmarks.moved(chat)
            self._note(old or chat, chat)
        self._first.move_to_end(chat)
        return self._first[chat]

    def now(self, chat: int) -> int:
        """Give the id that a chat has at Telegram, as far as it is known.

        Where it is not, Telegram tells it with its refusal.
        """
        return self._now.get(chat, chat)

    def _note(self, old: int, new: int) -> None:
        self._first[new] = old
        if old != new:
            self._now[old] = new
        while len(self._first) > MOST_CHATS:
            _, gone = self._first.popitem(last=False)
            self._now.pop(gone, None)
