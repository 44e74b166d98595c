"""What waits to be handed out little by little: oldest first, each chat in its order.

Pure. Where somebody writes again, the chat's part of it goes first, so that nobody
waits for the chats of others; inside a chat nothing ever overtakes.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")


class Backlog(Generic[T]):
    """Items of many chats, to be taken a few at a time."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[T]] = {}
        """By chat; none is empty."""

        self._order: deque[str] = deque()
        """The chat of each item, oldest first; also of some that were taken early."""

        self._urgent: dict[str, None] = {}
        """Chats that go first, in this order."""

    def __bool__(self) -> bool:
        """Tell whether there is anything left."""
        return bool(self._lines)

    def __contains__(self, chat: str) -> bool:
        """Tell whether there is anything left of a chat."""
        return chat in self._lines

    def refill(self, items: Iterable[tuple[str, T]]) -> None:
        """Forget what there is, and begin with other items; who goes first still does.

        Args:
            items: each with its chat, oldest first.
        """
        self._lines.clear()
        self._order.clear()
        for chat, item in items:
            self.add(chat, item)
        self._urgent = {chat: None for chat in self._urgent if chat in self._lines}

    def add(self, chat: str, item: T) -> None:
        """Put an item behind all others."""
        self._lines.setdefault(chat, deque()).append(item)
        self._order.append(chat)

    def hurry(self, chat: str, most: int) -> list[T]:
        """Let a chat go first from now on.

        Args:
            chat: where somebody wrote.
            most: how many may be taken at once.

        Returns:
            What is taken of it at once, oldest first; nothing if it goes first already.
        """
        if chat in self._urgent or chat not in self._lines:
            return []
        self._urgent[chat] = None
        few = min(most, len(self._lines[chat]))
        return [self._pop(chat) for _ in range(few)]

    def take(self, most: int) -> list[T]:
        """Take the next ones, `most` at most."""
        taken: list[T] = []
        while len(taken) < most and self._lines:
            urgent = self._urgent
            chat = next(iter(urgent)) if urgent else self._order.popleft()
            if chat in self._lines:
                taken.append(self._pop(chat))
        return taken

    def _pop(self, chat: str) -> T:
        line = self._lines[chat]
        item = line.popleft()
        if not line:
            del self._lines[chat]
            self._urgent.pop(chat, None)
        return item
