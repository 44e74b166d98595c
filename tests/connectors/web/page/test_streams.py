"""Proves that a tab is shown everything, once, whatever breaks in between."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio

from actors.errors import DeliveryBusyError
from actors.messages.deliveries import Edit, Typing
from actors.messages.inbound import Inbound
from actors.transport import Earlier
from connectors.web.page.chat.hub import MOST_WAITING
from connectors.web.page.event_stream import MOST_STREAMS
from connectors.web.page.platform import PageConfig
from runtime.errors import StoreUnavailableError
from runtime.store.rows import Commit, Committed, StoredEntry
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.web.page import (
    ANNA,
    JSON,
    LOBBY,
    PageBed,
    form_of,
    one_line,
    open_page,
    reading,
)


class SickStore(MemoryStore):
    """A disk that takes nothing, as long as a test says so."""

    is_sick = False

    async def commit(self, commit: Commit) -> Committed:
        if self.is_sick:
            raise StoreUnavailableError("disk full")
        return await super().commit(commit)

    is_unreadable = False

    async def entry(self, kind: str, name: str) -> StoredEntry | None:
        if self.is_unreadable:
            raise StoreUnavailableError("I/O error")
        return await super().entry(kind, name)


def edit(inbound: Inbound, receipt: str, text: str, *, is_last: bool = False) -> Edit:
    return Edit(
        id=f"{receipt}/{text}",
        correlation_id=inbound.correlation_id,
        address=inbound.address,
        agent="anna",
        receipt=receipt,
        text=text,
        is_last=is_last,
    )


def gauge(bed: PageBed, name: str) -> float:
    found = re.search(
        rf'^callboard_page_{name}{{connector="page"[^}}]*}} (\S+)$',
        bed.metrics.render().decode(),
        re.MULTILINE,
    )
    return float(found[1]) if found else 0.0


async def test_every_open_tab_sees_what_is_said() -> None:
    async with (
        open_page() as bed,
        reading(bed.client) as one,
        reading(bed.client) as other,
        reading(bed.client, LOBBY) as elsewhere,
    ):
        await bed.say("hello")
        for stream in (one, other):
            assert one_line((await stream.next()).data) == "operator: hello"
        await bed.say("for all", LOBBY)
        assert one_line((await elsewhere.next()).data) == "operator: for all"


async def test_an_answer_grows_in_its_place_and_is_whole_in_the_end() -> None:
    async with open_page() as bed, reading(bed.client) as stream:
        await bed.say("hello")
        await stream.next()
        inbound = await bed.ingress.next()
        receipt = await bed.answer(inbound, "...", is_draft=True)
        for text in ("Good", "Good **mor"):
            await bed.transport.presence.edit(edit(inbound, receipt, text))
        whole = edit(inbound, receipt, "Good **morning**.", is_last=True)
        await bed.transport.presence.edit(whole)
        seen = [await stream.next() for _ in range(4)]
        assert {each.data.partition('id="')[2][:27] for each in seen} == {
            f"m-{receipt}"
        }
        assert ["aria-busy" in each.data for each in seen] == [True, True, True, False]
        assert "<strong>morning</strong>" in seen[-1].data


async def test_an_answer_that_ends_unfinished_is_not_shown_as_being_written() -> None:
    async with open_page() as bed, reading(bed.client) as stream:
        await bed.say("hello")
        inbound = await bed.ingress.next()
        await bed.answer(inbound, "Half an", is_draft=True)
        assert "aria-busy" in (await bed.client.get(ANNA)).text
        await bed.transport.settle(inbound, "cancelled")
        seen = [await stream.next() for _ in range(3)]
        assert "aria-busy" not in seen[-1].data
        assert "aria-busy" not in (await bed.client.get(ANNA)).text


async def test_a_stream_that_broke_goes_on_where_it_stood() -> None:
    async with open_page() as bed:
        async with reading(bed.client) as stream:
            await bed.say("one")
            last = (await stream.next()).number
        await bed.say("two")
        inbound = await bed.ingress.next()
        receipt = await bed.answer(inbound, "Half", is_draft=True)
        await bed.transport.presence.edit(edit(inbound, receipt, "Whole", is_last=True))
        headers = {"last-event-id": str(last)}
        async with reading(bed.client, headers=headers) as stream:
            seen = [one_line((await stream.next()).data) for _ in range(2)]
            assert seen == ["operator: two", "anna: Whole"]
            await bed.say("three")
            assert one_line((await stream.next()).data) == "operator: three"


async def test_a_stream_goes_on_after_a_restart_of_the_server() -> None:
    store = MemoryStore()
    async with open_page(store=store) as bed, reading(bed.client) as stream:
        await bed.say("one")
        last = (await stream.next()).number
        await bed.answer(await bed.ingress.next(), "missed")
    headers = {"last-event-id": str(last)}
    async with (
        open_page(store=store) as bed,
        reading(bed.client, headers=headers) as stream,
    ):
        assert one_line((await stream.next()).data) == "anna: missed"
        await bed.say("two")
        assert one_line((await stream.next()).data) == "operator: two"


async def test_whoever_has_missed_too_much_loads_anew() -> None:
    async with open_page() as bed:
        form = form_of((await bed.client.get(ANNA)).text)
        for number in range(205):
            asked = form | {"text": f"n{number}", "key": f"k{number}"}
            await bed.client.post(ANNA, data=asked)
        async with reading(bed.client, after=1) as stream:
            await stream.next("again")
        fresh = (await bed.client.get(ANNA)).text
        changed = int(fresh.partition('data-changed="')[2].partition('"')[0])
        async with reading(bed.client, after=changed) as stream:
            await bed.say("hello")
            assert one_line((await stream.next()).data) == "operator: hello"


async def test_a_tab_that_does_not_read_costs_little_and_misses_nothing() -> None:
    async with open_page() as bed, reading(bed.client, is_slow=True) as stream:
        await bed.say("hello")
        inbound = await bed.ingress.next()
        text = "x" * 60_000
        receipt = await bed.answer(inbound, text, is_draft=True)
        for number in range(5 * MOST_WAITING):
            change = edit(inbound, receipt, f"{number} {text}")
            await bed.transport.presence.edit(change)
        hub = bed.transport._hub
        assert hub is not None
        (tab,) = hub._tabs["operator/anna"]
        assert len(tab._waiting) <= MOST_WAITING
        await bed.transport.presence.edit(edit(inbound, receipt, "End.", is_last=True))
        with trio.fail_after(20):
            while "End." not in (event := await stream.next()).data:
                assert event.number


async def test_who_writes_is_told_as_it_changes() -> None:
    async with open_page() as bed, reading(bed.client) as stream:
        await bed.say("hello")
        inbound = await bed.ingress.next()
        await stream.next()
        for is_over in (False, True):
            bed.transport.show_typing(
                Typing(
                    correlation_id=inbound.correlation_id,
                    reply_id="r",
                    address=inbound.address,
                    agent="anna",
                    is_over=is_over,
                )
            )
            event = await stream.next("writes")
            assert event.data == f'{{"agent":"anna","over":{str(is_over).lower()}}}'


async def test_of_too_many_tabs_the_oldest_rests() -> None:
    async with (
        open_page(PageConfig(port=0, max_streams=2)) as bed,
        reading(bed.client) as first,
        reading(bed.client),
        reading(bed.client) as third,
    ):
        await first.next("replaced")
        await bed.say("hello")
        assert one_line((await third.next()).data) == "operator: hello"
        assert gauge(bed, "streams_cut_total") == 1.0


@asynccontextmanager
async def many(bed: PageBed, count: int) -> AsyncGenerator[None]:
    """Ask for streams on connections of their own, all before one is answered."""
    cookie = "; ".join(f"{k}={v}" for k, v in bed.client.cookies.items())
    head = f"GET {ANNA}/events HTTP/1.1\r\nhost: 127.0.0.1\r\ncookie: {cookie}\r\n\r\n"
    async with AsyncExitStack() as opened:
        made = [await trio.open_tcp_stream("127.0.0.1", bed.port) for _ in range(count)]
        for each in made:
            await opened.enter_async_context(each)
        for each in made:
            await each.send_all(head.encode())
        yield


async def test_many_tabs_at_once_are_no_more_than_may_be() -> None:
    config = PageConfig(port=0, max_streams=2)
    async with open_page(config) as bed, many(bed, 20):
        with trio.fail_after(5):
            while gauge(bed, "streams_cut_total") < 18:
                await bed.client.get(ANNA)
            while gauge(bed, "streams") > 2:
                await bed.client.get(ANNA)


async def test_whose_tab_is_one_too_many_of_all_is_told_so() -> None:
    config = PageConfig(port=0, max_streams=100)
    async with open_page(config) as bed, AsyncExitStack() as opened:
        for _ in range(MOST_STREAMS // 100):
            await opened.enter_async_context(many(bed, 100))
            await bed.log_in(bed.client)
        with trio.fail_after(10):
            while gauge(bed, "streams") < MOST_STREAMS:
                await bed.client.get(ANNA)
        answer = await bed.client.get(f"{ANNA}/events")
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "5"
        assert "close some" in answer.text


async def test_tabs_that_went_are_forgotten() -> None:
    async with open_page() as bed:
        for _ in range(3):
            async with reading(bed.client) as stream:
                await bed.say("hello")
                await stream.next()
        with trio.fail_after(5):
            while gauge(bed, "streams"):
                await bed.client.get(ANNA)
        hub = bed.transport._hub
        assert hub is not None
        assert hub._tabs == {}


async def test_a_stream_ends_with_its_session() -> None:
    async with open_page(heartbeat=0.02) as bed, reading(bed.client) as stream:
        form = form_of((await bed.client.get(ANNA)).text, 'action="/logout"')
        await bed.client.post("/logout", data=form)
        await stream.next("gone")


async def test_an_ill_disk_loses_nothing_and_doubles_nothing() -> None:
    store = SickStore()
    async with open_page(store=store) as bed, reading(bed.client) as stream:
        await bed.say("one")
        assert one_line((await stream.next()).data) == "operator: one"
        inbound = await bed.ingress.next()
        form = form_of((await bed.client.get(ANNA)).text) | {"text": "two"}
        store.is_sick = True
        sent = await bed.client.post(ANNA, data=form, headers=JSON)
        assert (sent.status_code, sent.json()["code"]) == (503, "unavailable")
        with pytest.raises(DeliveryBusyError):
            await bed.answer(inbound, "hi")
        store.is_sick = False
        # Told as known: it was taken, and then the disk failed.
        name = bed.ingress.accepted[-1].platform_id
        bed.ingress.answered["page", name] = Earlier(inbound, "", ())
        sent = await bed.client.post(ANNA, data=form, headers=JSON)
        assert sent.status_code == 202
        await bed.answer(inbound, "hi")
        await bed.answer(inbound, "hi")
        seen = [one_line((await stream.next()).data) for _ in range(2)]
        assert seen == ["operator: two", "anna: hi"]
        assert [each.text for each in bed.ingress.accepted] == ["one", "two"]


async def test_a_stream_ends_in_order_if_nobody_can_be_asked_about_its_session(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = SickStore()
    async with open_page(store=store, heartbeat=0.02) as bed:
        async with reading(bed.client) as stream:
            store.is_unreadable = True
            with pytest.raises(trio.EndOfChannel):
                await stream.next()
            store.is_unreadable = False
        await bed.say("hello")
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []


async def test_odd_line_ends_come_as_they_were_said() -> None:
    async with open_page() as bed, reading(bed.client) as stream:
        await bed.say("a\n\n\nb\u2028c\x0bd")
        assert "a\n\n\nb\u2028c\x0bd" in (await stream.next()).data
