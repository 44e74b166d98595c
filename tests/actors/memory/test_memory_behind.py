"""Proves what a memory does behind everybody's back: vectors, and files of the days."""

from __future__ import annotations

import re

import trio.testing

from actors import names
from actors.errors import ModelBusyError, ModelRefusedError
from actors.memory.memory import FORGOTTEN_AFTER, MOST_OPEN
from actors.memory.messages import Fact, KeepFact, KeepLog, Recall
from tests.fakes.memory.memory import ZOE, FakeEmbedder, FakeLogBook, remembering_bed
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock

DAY = 86_400.0


def fact(text: str, category: str = "user_preference", scope: str = "") -> KeepFact:
    return KeepFact(category=category, text=text, scope=scope)


def texts(facts: tuple[Fact, ...]) -> list[str]:
    return [each.text for each in facts]


async def test_what_waits_for_its_vector_waits_out_a_busy_embedder(
    autojump_clock: Clock,
) -> None:
    busy = ModelBusyError("busy", retry_after=30.0)
    embedder = FakeEmbedder(errors=[busy, busy])
    async with remembering_bed(autojump_clock, embedder=embedder) as bed:
        await bed.remember(*(fact(f"Owns thing {n} of {n * 7}") for n in range(5)))
        await trio.sleep(29)
        assert len(await bed.store.facts.unembedded("bot", embedder.space)) == 5
        await trio.sleep(60)
        assert await bed.store.facts.unembedded("bot", embedder.space) == ()


async def test_no_embedder_is_paid_for_what_a_damaged_store_would_not_keep(
    autojump_clock: Clock,
) -> None:
    embedder = FakeEmbedder(errors=[ModelBusyError("busy", retry_after=30.0)])
    async with remembering_bed(autojump_clock, embedder=embedder) as bed:
        await bed.remember(fact("Likes green tea"))
        await trio.sleep(1)
        bed.store.damaged = True
        await trio.sleep(3600)
        assert len(embedder.asked) == 1


async def test_one_text_that_is_refused_keeps_no_other_from_its_vector(
    autojump_clock: Clock,
) -> None:
    refusal = ModelRefusedError("no", kind="content")
    embedder = FakeEmbedder(refuses=("coffee", refusal))
    async with remembering_bed(autojump_clock, embedder=embedder) as bed:
        drinks = ("tea", "milk", "coffee", "water", "juice")
        await bed.remember(*(fact(f"Drinks {drink} daily") for drink in drinks))
        await trio.sleep(5)
        wanting = await bed.store.facts.unembedded("bot", embedder.space)
        assert [row.text for row in wanting] == ["Drinks coffee daily"]
        recalled = await bed.recall("how much coffee is drunk?", within=5.0)
        assert texts(recalled.relevant) == ["Drinks coffee daily"]


async def test_after_a_restart_what_waited_gets_its_vector(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with remembering_bed(autojump_clock, store=store) as bed:
        await bed.remember(fact("Likes green tea"))
    store = store.reopened()
    embedder = FakeEmbedder()
    async with remembering_bed(autojump_clock, store=store, embedder=embedder) as bed:
        await trio.sleep(1)
        assert await bed.store.facts.unembedded("bot", embedder.space) == ()
        assert embedder.asked[0] == ["Likes green tea"]
        assert len(await bed.store.facts.unembedded("bot", "another")) == 1


async def test_entries_of_the_day_are_written_down_in_their_order(
    autojump_clock: Clock,
) -> None:
    book = FakeLogBook()
    async with remembering_bed(autojump_clock, book=book) as bed:
        await bed.remember(KeepLog("first"), KeepLog("second"), fact("Likes tea"))
        await bed.remember(KeepLog("third"))
        await trio.sleep(1)
        assert [entry[2] for entry in book.entries] == ["first", "second", "third"]
        assert texts((await bed.recall("hi")).logs) == ["first", "second", "third"]
        counted = re.findall(
            rb'daily_log_total\{.*outcome="(\w+)"\} ([1-9])', bed.metrics.render()
        )
        assert counted == [(b"ok", b"3")]
        await trio.sleep(3 * DAY)
        recalled = await bed.recall("what was the second entry?")
        assert recalled.logs == ()
        assert texts(recalled.relevant) == ["second"]


async def test_a_log_that_cannot_be_written_is_counted(autojump_clock: Clock) -> None:
    async with remembering_bed(autojump_clock, book=FakeLogBook(is_full=True)) as bed:
        await bed.remember(KeepLog("first"))
        await trio.sleep(1)
        counted = b'callboard_daily_log_total{agent="bot",outcome="failed"} 1.0'
        assert counted in bed.metrics.render()


async def test_logs_of_days_long_past_are_removed_once_a_day(
    autojump_clock: Clock,
) -> None:
    book = FakeLogBook()
    async with remembering_bed(autojump_clock, book=book) as bed:
        await bed.remember(KeepLog("first"))
        await trio.sleep(364 * DAY)
        assert len(book.entries) == 1
        await trio.sleep(3 * DAY)
        assert book.entries == []
        assert b"callboard_daily_logs_removed_total 1.0" in bed.metrics.render()


async def test_a_book_that_cannot_be_tidied_keeps_nothing_from_being_written(
    autojump_clock: Clock,
) -> None:
    book = FakeLogBook(is_full=True)
    async with remembering_bed(autojump_clock, book=book) as bed:
        await trio.sleep(2 * DAY)
        book._is_full = False
        await bed.remember(KeepLog("first"))
        await trio.sleep(1)
        assert [entry[2] for entry in book.entries] == ["first"]


async def test_who_is_restarted_with_all_it_was_asked_does_not_block_the_memory(
    autojump_clock: Clock,
) -> None:
    embedder = FakeEmbedder(seconds=1.0)
    async with remembering_bed(autojump_clock, embedder=embedder) as bed:
        await bed.remember(fact("Likes green tea"))
        for _ in range(MOST_OPEN):
            bed.memory.tell(
                Recall(question="which tea is it?", scopes=(ZOE,), now=bed.now())
            )
        await trio.sleep(0.1)
        recollections = bed.find(names.recollections("bot"))
        assert recollections is not None
        recollections.kill()
        await trio.sleep(FORGOTTEN_AFTER)
        recalled = await bed.recall("which tea is it?")
        assert texts(recalled.relevant) == ["Likes green tea"]
