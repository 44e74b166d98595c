"""Sends changes of chats to open tabs; on the edge's loop.

A tab that is too slow, or that gets a change out of order, reads what it missed from
the history. So no change is lost or sent twice, whatever fails in between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import msgspec

from connectors.files.blobs import BlobFolder
from connectors.web.page.chat.files import UploadShelf
from connectors.web.page.chat.messages import PageMessage
from connectors.web.page.chat.service import MessageChanged, PageChats, WritingChanged

T = TypeVar("T")

# Chosen: 12,000 characters of Markdown took 0.1 s, of brackets 0.3 s. Other work of
# this loop, as Discord's heartbeats, must not wait for 50 of those.
MOST_DRAWING = 2
"""Messages rendered at once, each in a thread."""

MOST_WAITING = 64
"""Changes that may wait for one tab; beyond, all are dropped, and the tab reads the
history."""


MOST_LANGUAGES = 4
"""Languages in which one change is kept rendered."""


def undrawn(_message: PageMessage, _is_writing: bool, _language: str) -> str:  # noqa: FBT001  as `draw`
    """Give nothing: no tab is open yet."""
    return ""


class MessageUpdate:
    """A changed message, rendered once for all tabs when the first one gets it.

    Why not before: changes that slow tabs miss need not be rendered.
    """

    def __init__(
        self,
        news: MessageChanged,
        draw: Callable[[PageMessage, bool, str], Awaitable[str]],
    ) -> None:
        self._news = news
        self._draw = draw
        self._drawing = asyncio.Lock()
        self._drawn: dict[str, str] = {}

    @property
    def changed(self) -> int:
        """The time of the change (ms)."""
        return self._news.message.changed

    @property
    def after(self) -> int:
        """The time of the change before it in the chat (ms)."""
        return self._news.after

    async def html(self, language: str) -> str:
        """Give the message as HTML in one language."""
        async with self._drawing:
            drawn = self._drawn.get(language)
            if drawn is None:
                news = self._news
                drawn = await self._draw(news.message, news.is_writing, language)
                if len(self._drawn) < MOST_LANGUAGES:
                    self._drawn[language] = drawn
            return drawn


class ElsewhereUpdate(msgspec.Struct, frozen=True):
    """Something new in a chat that the tab does not show."""

    chat: str
    changed: int


Update = MessageUpdate | WritingChanged | ElsewhereUpdate


def nothing_else(_chat: str) -> bool:
    """Read no other chat."""
    return False


class Tab:
    """One tab with a chat open.

    Args:
        reads: says whether its person may read a chat.
    """

    def __init__(self, reads: Callable[[str], bool] = nothing_else) -> None:
        self.reads = reads
        self._waiting: deque[Update] = deque()
        self._woken = asyncio.Event()
        self.has_missed = False
        """Whether changes were dropped."""

    def put(self, told: Update) -> None:
        """Add a change; if too many wait, drop them all."""
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.clear()
            self.has_missed = True
        self._waiting.append(told)
        self._woken.set()

    async def next(self) -> Update:
        """Wait for the next change, and give it."""
        while not self._waiting:
            self._woken.clear()
            await self._woken.wait()
        return self._waiting.popleft()


class TabHub:
    """All open tabs, by chat."""

    def __init__(self) -> None:
        self.draw: Callable[[PageMessage, bool, str], str] = undrawn
        """Renders a message in a language; the flag says whether it is still being
        written. Set before the first tab joins. Called in threads."""

        self._free = asyncio.Semaphore(MOST_DRAWING)
        self._tabs: dict[str, set[Tab]] = {}

    def join(self, chat: str, tab: Tab) -> None:
        """Send a tab the changes of a chat from now on."""
        self._tabs.setdefault(chat, set()).add(tab)

    def leave(self, chat: str, tab: Tab) -> None:
        """Send a tab nothing more."""
        tabs = self._tabs[chat]
        tabs.discard(tab)
        if not tabs:
            del self._tabs[chat]

    async def drawn(self, message: PageMessage, is_writing: bool, language: str) -> str:  # noqa: FBT001
        """Render a message in a thread, a few at once."""
        return await self.off_loop(partial(self.draw, message, is_writing, language))

    async def off_loop(self, draw: Callable[[], T]) -> T:
        """Render something in a thread, a few at once."""
        async with self._free:
            return await asyncio.to_thread(draw)

    def tell(self, news: MessageChanged | WritingChanged) -> None:
        """Send a change to the tabs that have its chat open."""
        chat = news.chat if isinstance(news, WritingChanged) else news.message.chat
        told = (
            MessageUpdate(news, self.drawn)
            if isinstance(news, MessageChanged)
            else news
        )
        for tab in self._tabs.get(chat, ()):
            tab.put(told)
        if isinstance(news, MessageChanged) and news.message.is_agent:
            elsewhere = ElsewhereUpdate(chat, news.message.changed)
            for other, tabs in self._tabs.items():
                for tab in tabs if other != chat else ():
                    if tab.reads(chat):
                        tab.put(elsewhere)


class AgentAbout(msgspec.Struct, frozen=True):
    """Who an agent is, for people."""

    name: str
    description: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChatParts:
    """The parts of the chat that its routes use."""

    talk: PageChats
    """Its messages; on the kernel's side."""

    agents: Callable[[], tuple[str, ...]]
    """Gives the names of the agents that people can speak to now."""

    shown: Callable[[str], str]
    """Gives what people call an agent."""

    hub: TabHub
    """The open tabs."""

    blobs: BlobFolder | None = None
    """Has the bytes of files that are sent."""

    shelf: UploadShelf = field(default_factory=UploadShelf)
    """Files that people are about to send."""

    about: Callable[[str], AgentAbout] = AgentAbout
    """Says who an agent is."""

    is_open: Callable[[str], bool] = nothing_else
    """Whether an approval waits for somebody, by its id."""
