"""Proves that what is said on the page stays as it was said last, whoever is first."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from actors.errors import StoppingError
from actors.messages.deliveries import Delivery, Edit
from actors.messages.inbound import Address
from connectors.web.history import ConnectorStore
from connectors.web.page.chat.chats import PageChat
from connectors.web.page.chat.messages import page_history
from connectors.web.page.chat.service import MessageChanged, PageChats, WritingChanged
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.store.rows import StoredEntry
from tests.fakes.store.in_memory import MemoryStore

CHAT = Address("page", "#lobby")
DRAFT = Delivery(
    id="1:0",
    correlation_id="asked",
    reply_id="1",
    address=CHAT,
    agent="anna",
    text="Half",
    is_draft=True,
)


class SlowStore(MemoryStore):
    """Gives rows only while its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = trio.Event()
        self.gate.set()

    async def entry(self, kind: str, name: str) -> StoredEntry | None:
        """Give a row, as it was when somebody asked."""
        found = await super().entry(kind, name)
        await self.gate.wait()
        return found


async def test_what_is_settled_meanwhile_reads_as_it_was_said_last() -> None:
    store, clock = SlowStore(), SystemClock()
    told: list[MessageChanged | WritingChanged] = []
    log = page_history(ConnectorStore(store, clock, "page"))
    talk = PageChats("page", log, clock, IdSource(clock), told.append)
    receipt = await talk.deliver(DRAFT)
    whole = Edit(
        id="e",
        correlation_id="asked",
        address=CHAT,
        agent="anna",
        receipt=receipt,
        text="Whole",
        is_last=True,
    )
    store.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(talk.edit, whole)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(talk.settle, "asked")
        await trio.testing.wait_all_tasks_blocked()
        store.gate.set()
    said = await log.get(receipt)
    assert said is not None
    assert said.text == "Whole"
    last = told[-1]
    assert isinstance(last, MessageChanged)
    assert (last.message.text, last.is_writing) == ("Whole", False)


async def test_what_comes_as_the_page_ends_is_to_be_said_again() -> None:
    store, clock = MemoryStore(), SystemClock()
    log = page_history(ConnectorStore(store, clock, "page"))
    talk = PageChats("page", log, clock, IdSource(clock), lambda _: None)
    place = PageChat("#lobby", "lobby", ("anna",))
    with pytest.raises(StoppingError):
        await talk.say("sam", place, "hello", "key")
    assert await log.page("#lobby") == ()
