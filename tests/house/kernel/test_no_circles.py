"""Proves that what is over leaves memory by itself, without the collector.

A server's collector looks seldom, so its memory would grow by every circle. Here it
does not look at all.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

import httpx
import pytest
import trio
from trio.testing import MockClock

from actors.outbound.courier import Courier
from actors.session.session import Session
from actors.turn.turn import Turn
from connectors.models.http.connections import HttpResponse, KeptConnections
from runtime.actor.cell import Cell
from runtime.actor.messages import Terminated
from tests.fakes.company.company import Cast, at_rest, open_company
from tests.fakes.models.server import chunked, open_raw_server
from tests.support.keyed_bed import Sleeper, open_bed
from tests.support.puppet import Puppet, do


@contextmanager
def uncollected() -> Generator[None]:
    """Keep the collector from helping."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def living(*kinds: type) -> int:
    """Count the objects of these classes, reachable or not."""
    return sum(issubclass(type(each), kinds) for each in gc.get_objects())


@pytest.mark.deep
async def test_a_child_that_sleeps_is_gone(autojump_clock: MockClock) -> None:
    del autojump_clock
    async with open_bed() as bed:
        with uncollected():
            before = living(Cell, Sleeper)
            for key in ("ann", "bob", "eve"):
                bed.tell(key, "x")
                await trio.sleep(1)
                assert bed.child(key).is_alive()
            assert living(Cell, Sleeper) == before + 6
            await trio.sleep(60)
            assert bed.awake() == ""
            assert living(Cell, Sleeper) == before


@pytest.mark.deep
async def test_conversations_that_left_memory_are_gone(
    autojump_clock: MockClock,
) -> None:
    cast = Cast()
    kinds = (Cell, Courier, Session, Turn)
    async with open_company(autojump_clock, cast):
        cast.platform.write("before")
        await at_rest(cast)
        await trio.sleep(2 * cast.sessions.idle_after)
        with uncollected():
            before = living(*kinds)
            for number in range(20):
                cast.platform.write("hello", chat=f"room{number % 5}", key=f"k{number}")
            await at_rest(cast)
            await trio.sleep(0.1)
            assert living(*kinds) == before + 20  # five of each, and their cells
            await trio.sleep(2 * cast.sessions.idle_after)
            assert living(*kinds) == before


async def test_a_ref_that_was_kept_outlives_its_actor(
    autojump_clock: MockClock,
) -> None:
    async with open_bed() as bed:
        del autojump_clock
        watcher = Puppet()
        watching = bed.system.spawn(watcher)
        bed.tell("ann", "x")
        await trio.sleep(1)
        ref = bed.child("ann")
        await watching.ask(do(lambda me: me.watch(ref)))
        await trio.sleep(60)
        ended = [each for each in watcher.log if isinstance(each, Terminated)]
        assert [each.ref is ref for each in ended] == [True]
        assert not ref.is_alive()


async def test_a_response_that_was_read_is_gone() -> None:
    async with open_raw_server(lambda: chunked(b"hello"), keep_open=True) as server:
        url = httpx.URL(server.base_url)
        kept = KeptConnections(url, most=1, connect_timeout=9.0, write_timeout=9.0)
        with uncollected():
            for _ in range(5):
                request = httpx.Request("POST", url, content=b"{}")
                response = await kept.handle_async_request(request)
                assert await response.aread() == b"hello"
                del response, request
            assert living(HttpResponse) == 0
        await kept.aclose()
