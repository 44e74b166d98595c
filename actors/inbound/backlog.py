"""What waits to be routed: old messages little by little, and new ones behind them.

Pure. Oldest first, each chat in its order. Where somebody writes again, the chat's part
goes first, so that nobody waits for other chats; inside a chat nothing overtakes.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

from actors.journal.unsettled import UnroutedMessage
from actors.protocol import StopDelegated
from runtime.store.rows import StoredMessage

if TYPE_CHECKING:
    from collections.abc import Iterable

Routable = UnroutedMessage | StopDelegated
"""What the router handles in the order of a chat."""

BacklogItem = StoredMessage | Routable
"""The same, or a stored row that is read when its turn comes."""


class LateArrivals:
    """New messages and stops that wait for old messages of their chat.

    They arrived in the second before the router routes the old ones. Each message is
    stored, and is found with the others.
    """

    def __init__(self) -> None:
        self._messages: dict[str, UnroutedMessage] = {}
        self._stops: dict[str, list[StopDelegated]] = {}
        """By the id of the message that each follows."""

        self._newest: dict[str, str] = {}
        """By chat: the id of its newest message."""

    def __contains__(self, chat: str) -> bool:
        """Tell whether a message of a chat waits."""
        return chat in self._newest

    @property
    def chats(self) -> Iterable[str]:
        """Chats in which a message waits, in the order of arrival."""
        return self._newest

    def add(self, chat: str, message: UnroutedMessage) -> None:
        """Let a message wait."""
        self._messages[message.inbound.id] = message
        self._newest[chat] = message.inbound.id

    def stop(self, chat: str, stop: StopDelegated) -> None:
        """Let a stop apply also to what waits in its chat now."""
        if chat in self._newest:
            self._stops.setdefault(self._newest[chat], []).append(stop)

    def put_in(self, row: StoredMessage) -> tuple[BacklogItem, ...]:
        """Give a found row, or the message that waits here, and the stops behind it."""
        return (self._messages.get(row.id, row), *self._stops.get(row.id, ()))


T = TypeVar("T")


class Backlog(Generic[T]):
    """Items of many chats, to be taken a few at a time."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[T]] = {}
        """By chat; none is empty."""

        self._order: deque[str] = deque()
        """The chat of each item, oldest first, also of items that were taken early."""

        self._urgent: dict[str, None] = {}
        """Chats that go first, in this order."""

    def __bool__(self) -> bool:
        """Tell whether any items are left."""
        return bool(self._lines)

    def __contains__(self, chat: str) -> bool:
        """Tell whether items of a chat are left."""
        return chat in self._lines

    def refill(self, items: Iterable[tuple[str, T]]) -> None:
        """Replace all items; chats that go first still do.

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
            chat: where a new message arrived.
            most: most items to take at once.

        Returns:
            The items that are taken at once, oldest first; empty if it goes first
            already.
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
