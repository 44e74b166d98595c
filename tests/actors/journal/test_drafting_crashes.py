"""Proves that a draft cut off by a crash is gone on with, and not said beside."""

from __future__ import annotations

from typing import Any

import trio
import trio.testing
from msgspec import structs

from actors.errors import DeliveryBusyError, DeliveryUnknownError
from actors.inbound.connector import read_deliver
from actors.journal.commits import as_enqueue
from actors.messages.deliveries import Abilities
from actors.outbound.courier import IN_PLACE
from actors.protocol import Deliver
from runtime.errors import StoreUnavailableError
from runtime.store.rows import Commit, Receipt
from tests.fakes.chat.presence import EDITS, Screen
from tests.fakes.outbound.drafted import KINDS, PLAIN, aside, open_chat, reply
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock


@KINDS
async def test_a_courier_that_crashes_goes_on_with_the_same_message(
    abilities: Abilities, autojump_clock: Clock
) -> None:
    async with open_chat(autojump_clock, abilities) as chat:
        chat.write("Hello")
        await trio.sleep(3)
        chat.road.tell("nonsense")
        await trio.sleep(5)
        chat.write(", Zoe")
        await trio.sleep(3)
        assert chat.screen.seen == ["Hello, Zoe"]
        await chat.say(reply("Hello, Zoe."))
        assert chat.screen.seen == ["Hello, Zoe."]


@KINDS
async def test_another_process_goes_on_with_the_same_message(
    abilities: Abilities, autojump_clock: Clock
) -> None:
    store, screen = MemoryStore(), Screen()
    async with open_chat(autojump_clock, abilities, store, screen) as chat:
        chat.write("Hello, Z")
        await trio.sleep(3)
    async with open_chat(autojump_clock, abilities, store, screen) as chat:
        chat.begin_again()
        chat.write("Hello")
        await trio.sleep(3)
        await chat.say(reply("Hello, Zoe."))
        assert screen.seen == ["Hello, Zoe."]
        assert chat.receipt() == "receipt-m1:draft:0"


@KINDS
async def test_another_process_says_the_answer_where_its_beginning_stands(
    abilities: Abilities, autojump_clock: Clock
) -> None:
    store, screen = MemoryStore(), Screen()
    async with open_chat(autojump_clock, abilities, store, screen) as chat:
        chat.write("Let me look.")
        await chat.say(aside("a tool"))
        chat.write("\n\nIt is")
        await trio.sleep(5)
    async with open_chat(autojump_clock, abilities, store, screen) as chat:
        await chat.say(reply("Let me look.\n\nIt is noon."))
        assert screen.seen == ["Let me look.", "a tool", "It is noon."]
    async with open_chat(autojump_clock, abilities, store, screen) as chat:
        await chat.say(reply("By hand", id="m1:again"))
        assert screen.seen[-2:] == ["It is noon.", "By hand"]


async def test_killed_while_the_first_message_is_said_it_is_found(
    autojump_clock: Clock,
) -> None:
    store, screen = MemoryStore(), Screen()
    async with open_chat(autojump_clock, EDITS, store, screen) as chat:
        screen.lost.append(DeliveryUnknownError("the process is killed"))
        chat.write("Hello")
        await trio.sleep(0.1)
        assert screen.seen == ["..."]
    async with open_chat(autojump_clock, EDITS, store, screen) as chat:
        await chat.say(reply("Hello, Zoe."))
        assert screen.seen == ["Hello, Zoe."]


async def test_what_may_have_been_said_beside_its_draft_is_not_said_in_it(
    autojump_clock: Clock,
) -> None:
    store, screen = MemoryStore(), Screen()
    async with open_chat(autojump_clock, PLAIN, store, screen) as chat:
        chat.write("Hello")
        await trio.sleep(3)
        said = reply("Hello, Zoe.")
        await store.commit(Commit(at=1.0, deliveries=(as_enqueue(said, 0),)))
        row = store._rows.outbox["m1:0"]
        store._rows.outbox["m1:0"] = structs.replace(row, state="sending", attempts=1)
        chat.road.tell(read_deliver(said, store._rows.outbox["m1:0"]))
        await chat.until_done(said)
        assert screen.seen == ["Hello", "Hello, Zoe."]


async def test_a_full_disk_keeps_the_answer_until_its_draft_can_be_looked_for(
    autojump_clock: Clock,
) -> None:
    class Unread(MemoryStore):
        is_full = True

        async def read(self, stream: str, after: int = 0, limit: int = 1000) -> Any:
            if self.is_full:
                raise StoreUnavailableError("no")
            return await super().read(stream, after, limit)

    store = Unread()
    async with open_chat(autojump_clock, EDITS, store) as chat:
        chat.write("Hello")
        said = reply("Hello, Zoe.")
        await store.commit(Commit(at=1.0, deliveries=(as_enqueue(said, 0),)))
        chat.road.tell(Deliver(said))
        await trio.sleep(1)
        assert chat.road.handed_back() == ["m1:0"]
        store.is_full = False
        chat.road.tell(Deliver(said))
        await chat.until_done(said)
        assert chat.screen.seen == ["Hello, Zoe."]


@KINDS
async def test_an_answer_that_is_dropped_while_its_edit_waits_is_not_written(
    abilities: Abilities, autojump_clock: Clock
) -> None:
    async with open_chat(autojump_clock, abilities) as chat:
        chat.write("Hello")
        await trio.sleep(3)
        chat.screen.presence.faults.append(DeliveryBusyError("x", retry_after=3.0))
        said = reply("Hello, Zoe.")
        await chat.road.store.commit(Commit(at=1.0, deliveries=(as_enqueue(said, 0),)))
        chat.road.tell(Deliver(said))
        await trio.sleep(0.5)
        dropped = (Receipt(said.id, "dead", "by hand"),)
        await chat.road.store.commit(Commit(at=1.0, receipts=dropped))
        await chat.until_done(said)
        assert chat.screen.seen == ["Hello"]


@KINDS
async def test_an_edit_that_had_to_wait_is_in_doubt_for_nobody(
    abilities: Abilities, autojump_clock: Clock
) -> None:
    async with open_chat(autojump_clock, abilities) as chat:
        chat.write("Hello")
        await trio.sleep(3)
        faults = [DeliveryBusyError("x", retry_after=3.0), DeliveryUnknownError("gone")]
        chat.screen.presence.faults.extend(faults)
        said = reply("Hello, Zoe.")
        await chat.road.store.commit(Commit(at=1.0, deliveries=(as_enqueue(said, 0),)))
        chat.road.tell(Deliver(said))
        await trio.sleep(3.5)
        row = chat.road.store._rows.outbox[said.id]
        assert (row.state, row.receipt) == ("pending", IN_PLACE)
        await chat.until_done(said)
        assert chat.screen.seen == ["Hello, Zoe."]
