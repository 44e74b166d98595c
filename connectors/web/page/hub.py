"""The tabs that have a chat open, and what they are told; on the edge's loop.

A tab that is too slow, or was told something out of order, is told nothing wrong: it
reads what it has missed from what is kept. So nothing is lost and nothing is told
twice, whatever breaks in between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from connectors.web.page.talk import News, Writes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from connectors.web.page.messages import Message

T = TypeVar("T")

# Chosen: reading 12,000 characters of Markdown took 0.1 s, and of brackets 0.3 s; what
# else runs on this loop, as the heartbeats of Discord, is not to wait for 50 of those.
MOST_DRAWING = 2
"""Messages that are drawn at once, each in a thread of the loop's."""

MOST_WAITING = 64
"""What may wait for one tab; beyond, it is dropped, and read from what is kept."""


def undrawn(_message: Message, _is_writing: bool) -> str:  # noqa: FBT001  as `draw`
    """Give nothing: nobody looks yet."""
    return ""


class Line:
    """A message as tabs are told it: drawn once for all of them, when it is sent.

    Why not before: what a slow tab misses need not be drawn at all.
    """

    def __init__(
        self, news: News, draw: Callable[[Message, bool], Awaitable[str]]
    ) -> None:
        self._news = news
        self._draw = draw
        self._drawing = asyncio.Lock()
        self._drawn: str | None = None

    @property
    def changed(self) -> int:
        """When it came to read so (ms)."""
        return self._news.message.changed

    @property
    def after(self) -> int:
        """When the change before it was (ms)."""
        return self._news.after

    async def html(self) -> str:
        """Give what is sent."""
        async with self._drawing:
            if self._drawn is None:
                news = self._news
                self._drawn = await self._draw(news.message, news.is_writing)
            return self._drawn


class Tab:
    """One tab that has a chat open."""

    def __init__(self) -> None:
        self._waiting: deque[Line | Writes] = deque()
        self._woken = asyncio.Event()
        self.has_missed = False
        """Whether something was dropped."""

    def put(self, told: Line | Writes) -> None:
        """Have it told something; of too much, all is dropped."""
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.clear()
            self.has_missed = True
        self._waiting.append(told)
        self._woken.set()

    async def next(self) -> Line | Writes:
        """Wait for the next thing it is told."""
        while not self._waiting:
            self._woken.clear()
            await self._woken.wait()
        return self._waiting.popleft()


class Hub:
    """All tabs, by chat."""

    def __init__(self) -> None:
        self.draw: Callable[[Message, bool], str] = undrawn
        """Gives a message as HTML, and takes whether it goes on; set before the first
        tab joins, by what is imported when it is needed. Called in threads."""

        self._free = asyncio.Semaphore(MOST_DRAWING)
        self._tabs: dict[str, set[Tab]] = {}

    def join(self, chat: str, tab: Tab) -> None:
        """Have a tab told what is said in a chat from now on."""
        self._tabs.setdefault(chat, set()).add(tab)

    def leave(self, chat: str, tab: Tab) -> None:
        """Tell a tab nothing more."""
        tabs = self._tabs[chat]
        tabs.discard(tab)
        if not tabs:
            del self._tabs[chat]

    async def drawn(self, message: Message, is_writing: bool) -> str:  # noqa: FBT001
        """Draw a message, as one of a few at once."""
        return await self.off_loop(partial(self.draw, message, is_writing))

    async def off_loop(self, draw: Callable[[], T]) -> T:
        """Do what takes long for a message, as one of a few at once."""
        async with self._free:
            return await asyncio.to_thread(draw)

    def tell(self, news: News | Writes) -> None:
        """Tell the tabs that have the chat open."""
        chat = news.chat if isinstance(news, Writes) else news.message.chat
        told = Line(news, self.drawn) if isinstance(news, News) else news
        for tab in self._tabs.get(chat, ()):
            tab.put(told)
