"""Proves that tabs are shown what was written though nobody waited for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio
import trio.testing

from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address
from connectors.web.history import ConnectorStore
from connectors.web.page.chat.messages import page_history
from connectors.web.page.chat.service import MessageChanged, PageChats, WritingChanged
from runtime.clock import SystemClock
from runtime.ids import IdSource
from tests.fakes.store.queued_store import QueuedStore

CHAT = Address("page", "#lobby")


def said(number: int) -> Delivery:
    return Delivery(
        id=f"{number}:0",
        correlation_id="asked",
        reply_id=str(number),
        address=CHAT,
        agent="anna",
        text=f"words {number}",
    )


class Lobby:
    """A chat of the page, and what its tabs are told."""

    def __init__(self) -> None:
        self.store, clock = QueuedStore(), SystemClock()
        self.told: list[MessageChanged | WritingChanged] = []
        log = page_history(ConnectorStore(self.store, clock, "page"))
        self.talk = PageChats("page", log, clock, IdSource(clock), self.told.append)

    async def cut_off(self, act: Callable[[], Awaitable[object]]) -> None:
        """Begin something, and give it up while the disk has not written it yet."""
        self.store.is_open = False
        async with trio.open_nursery() as nursery:

            async def begin() -> None:
                await act()

            nursery.start_soon(begin)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    def news(self) -> MessageChanged:
        """Give what tabs were told last."""
        last = self.told[-1]
        assert isinstance(last, MessageChanged)
        return last


def has_tabs_look(news: MessageChanged) -> bool:
    """Whether a tab that is told this reads what it has missed."""
    return news.after == news.message.changed


async def test_who_says_it_again_tells_what_was_written_before() -> None:
    lobby = Lobby()
    await lobby.cut_off(lambda: lobby.talk.deliver(said(1)))
    lobby.store.open()
    await lobby.talk.deliver(said(1))
    assert (lobby.news().message.text, len(lobby.told)) == ("words 1", 1)
    assert has_tabs_look(lobby.news())


async def test_what_is_said_again_before_it_is_written_is_told_all_the_same() -> None:
    lobby = Lobby()
    await lobby.cut_off(lambda: lobby.talk.deliver(said(1)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lobby.talk.deliver, said(1))
        await trio.testing.wait_all_tasks_blocked()
        lobby.store.open()
    assert len(lobby.told) == 1
    shown = await lobby.talk.shown(CHAT.chat, 0, 10)
    assert [each.text for each in shown.messages] == ["words 1"]


async def test_the_next_change_shows_what_was_cut_off_before_it() -> None:
    lobby = Lobby()
    await lobby.talk.deliver(said(1))
    seen = lobby.news().message.changed
    await lobby.cut_off(lambda: lobby.talk.deliver(said(2)))
    early = await lobby.talk.shown(CHAT.chat, 0, 10)
    assert early.changed == seen
    lobby.store.open()
    await lobby.talk.deliver(said(3))
    assert has_tabs_look(lobby.news())
    missed = await lobby.talk.since(CHAT.chat, seen)
    assert missed is not None
    assert [each.text for each in missed.messages] == ["words 2", "words 3"]
    assert len({each.changed for each in missed.messages}) == 2
    await lobby.talk.deliver(said(4))
    assert lobby.news().after == missed.changed
