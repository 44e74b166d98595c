"""Whoever comes back is told what was said meanwhile: in order, nothing twice."""

from __future__ import annotations

import trio
import trio.testing
from hypothesis import given, settings, strategies as st

from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address
from connectors.chat.outbox import CLIENTS, PLACES, SAID, ClientOutbox
from connectors.chat.websocket.frames import chat_of
from connectors.chat.websocket.platform import WebSocketConfig
from runtime.clock import SystemClock
from tests.fakes.store.in_memory import MemoryStore
from tests.support.chat.websocket_bed import ZOE, gone, open_sockets

TIMES = 25


def said(number: int) -> Delivery:
    return Delivery(
        id=f"d{number}",
        correlation_id="m",
        address=Address("websocket", chat_of(ZOE)),
        agent="anna",
        text=f"words {number}",
    )


async def test_what_was_said_while_it_was_away_comes_after_the_welcome() -> None:
    async with open_sockets() as bed:
        client = await bed.join()
        await client.drop()
        await gone(bed)
        for number in range(TIMES):
            await bed.transport.deliver(said(number))
        client = await bed.join()
        await client.next_of("message", TIMES)
        assert client.said() == [f"words {each}" for each in range(TIMES)]
        assert client.frames[0]["type"] == "welcome"


async def test_what_its_library_has_is_not_told_again() -> None:
    async with open_sockets() as bed:
        client = await bed.join()
        for number in range(3):
            await bed.transport.deliver(said(number))
        await client.next_of("message", 3)
        chat = chat_of(ZOE)
        with trio.fail_after(5):
            while (known := bed.transport.kept.get(chat)) is None or known.has < 3:
                await trio.testing.wait_all_tasks_blocked()
        await client.drop()
        await bed.transport.deliver(said(3))
        client = await bed.join()
        await client.next_of("message")
        assert client.said() == ["words 3"]


async def test_what_nobody_has_is_told_again_when_the_line_was_dead() -> None:
    async with open_sockets() as bed:
        client = await bed.join()
        client.pongs = False  # it reads, but what it had is lost with its process
        for number in range(3):
            await bed.transport.deliver(said(number))
        await client.next_of("message", 3)
        await client.drop()
        client = await bed.join()
        await client.next_of("message", 3)
        assert client.said() == [f"words {each}" for each in range(3)]


async def test_who_counts_itself_says_where_to_go_on() -> None:
    async with open_sockets() as bed:
        client = await bed.join(acks=True)
        for number in range(4):
            await bed.transport.deliver(said(number))
        await client.next_of("message", 4)
        await client.send("ack", id=2)
        await client.send("ping")
        await client.next_of("pong")
        await client.drop()
        later = await bed.join(acks=True)
        await later.next_of("message", 2)
        assert later.said() == ["words 2", "words 3"]
        other = await bed.join(after=1)
        await other.next_of("message", 3)
        assert [each["id"] for each in other.of("message")] == [2, 3, 4]


async def test_what_was_said_outlives_the_process() -> None:
    store = MemoryStore()
    async with open_sockets(store=store) as bed:
        await (await bed.join()).drop()
        await gone(bed)
        await bed.transport.deliver(said(0))
    async with open_sockets(store=store) as bed:
        await bed.transport.deliver(said(0))  # the receipt was lost with the process
        await bed.transport.deliver(said(1))
        client = await bed.join()
        await client.next_of("message", 2)
        assert client.said() == ["words 0", "words 1"]


async def test_numbers_go_on_behind_what_a_client_had_before_a_copy_came_back() -> None:
    async with open_sockets() as bed:
        await (await bed.join()).drop()
        await gone(bed)
        await bed.transport.deliver(said(0))
        client = await bed.join(after=3)
        assert (client.frames[0]["last"], client.frames[0]["after"]) == (3, 3)
        await client.drop()
        await gone(bed)
        await bed.transport.deliver(said(1))
        client = await bed.join(after=3)
        await client.next_of("message")
        assert [(x["id"], x["content"]) for x in client.of("message")] == [
            (4, "words 1")
        ]
        (kept,) = await bed.transport.kept.after(chat_of(ZOE), 0, 10)
        assert kept.number == 4


async def test_who_says_that_it_has_absurdly_much_is_told_all() -> None:
    async with open_sockets() as bed:
        await (await bed.join()).drop()
        await gone(bed)
        await bed.transport.deliver(said(0))
        client = await bed.join(after=10**15)
        await client.next_of("message")
        assert (client.frames[0]["last"], client.of("message")[0]["id"]) == (1, 1)


async def test_older_messages_that_are_gone_are_told_as_a_number() -> None:
    async with open_sockets(WebSocketConfig(port=0, keep_messages=3)) as bed:
        await (await bed.join()).drop()
        await gone(bed)
        for number in range(8):
            await bed.transport.deliver(said(number))
        client = await bed.join()
        await client.next_of("message", 3)
        assert client.said() == ["words 5", "words 6", "words 7"]
        assert client.of("lost")[0]["count"] == 5
        assert len(await bed.store.entries(SAID, None)) == 3
        assert len(await bed.store.entries(PLACES, None)) == 3


async def test_who_never_said_an_id_leaves_nothing_behind() -> None:
    async with open_sockets() as bed:
        client = await bed.dial()
        await client.open()
        await client.send("message", content="hello")
        await bed.answer(await bed.ingress.next(), "hi")
        await client.next_of("message")
        await client.drop()
        await gone(bed)
        with trio.fail_after(5):
            while await bed.store.entries(CLIENTS, None):
                await trio.testing.wait_all_tasks_blocked()
        assert await bed.store.entries(SAID, None) == ()
        assert await bed.store.entries(PLACES, None) == ()


async def test_clients_that_stay_away_are_forgotten() -> None:
    kept = ClientOutbox(MemoryStore(), SystemClock(), "websocket", 10)
    await kept.see("zoe", is_passing=False)
    assert await kept.forget_old(SystemClock().wall() - 5, lambda _: False) == 0
    later = SystemClock().wall() + 5
    assert await kept.forget_old(later, lambda chat: chat == "zoe") == 0
    assert await kept.forget_old(later, lambda _: False) == 1
    assert kept.get("zoe") is None


@given(
    st.lists(st.sampled_from(["say", "again", "has", "restart"]), max_size=40),
    st.integers(1, 5),
)
@settings(deadline=None)
def test_whatever_happens_the_newest_are_kept_once_and_in_order(
    steps: list[str], most: int
) -> None:
    trio.run(play, steps, most)


async def play(steps: list[str], most: int) -> None:
    store, clock, count, chat = MemoryStore(), SystemClock(), 0, chat_of(ZOE)
    kept = ClientOutbox(store, clock, "websocket", most)
    await kept.see(chat, is_passing=False)
    for step in steps:
        if step == "say":
            count += 1
        if step in {"say", "again"} and count:
            told = await kept.add(said(count))
            assert told is not None
            assert told.number == count
        if step == "has":
            await kept.has(chat, count)
        if step == "restart":
            kept = ClientOutbox(store, clock, "websocket", most)
            await kept.load()
        client = kept.get(chat)
        assert client is not None
        assert client.has <= client.last == count
    numbers = [each.number for each in await kept.after(chat, 0, 100)]
    assert numbers == list(range(max(1, count - most + 1), count + 1))
