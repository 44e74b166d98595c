"""Calls cross between trio and asyncio both ways, and nothing is left behind."""

from __future__ import annotations

import asyncio  # noqa: TID251  the edge's side of the tests
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pykka
import pytest
import trio
import trio.testing

from connectors.asyncio_bridge.bridge import (
    Bridge,
    BridgeBusyError,
    BridgeClosedError,
    Crossing,
)
from runtime.errors import MisuseError


@asynccontextmanager
async def open_bridge(
    *, max_asks: int = 1024, shutdown_timeout: float = 2.0
) -> AsyncGenerator[Bridge]:
    bridge = Bridge(max_asks=max_asks, shutdown_timeout=shutdown_timeout)
    await bridge.start()
    try:
        yield bridge
    finally:
        await bridge.aclose()
        assert not [t for t in threading.enumerate() if t.name.startswith("EdgeLoop")]
        assert pykka.ActorRegistry.get_by_class_name("EdgeLoop") == []


async def add(left: int, right: int) -> int:
    await asyncio.sleep(0)
    return left + right


async def add_in_kernel(left: int, right: int) -> int:
    await trio.lowlevel.checkpoint()
    return left + right


async def test_a_call_from_the_kernel_gives_back_the_result() -> None:
    async with open_bridge() as bridge:
        assert await bridge.call(add, 2, 3) == 5


async def test_an_error_on_the_edge_reaches_the_kernel() -> None:
    async def fail() -> None:
        raise LookupError("no such thing")

    async with open_bridge() as bridge:
        with pytest.raises(LookupError, match="no such thing"):
            await bridge.call(fail)


async def test_an_edge_task_asks_the_kernel_and_gets_its_result() -> None:
    async with open_bridge() as bridge:

        async def ask() -> int:
            return await bridge.ask_kernel(add_in_kernel, 20, 22)

        assert await bridge.call(ask) == 42


async def test_an_error_in_the_kernel_reaches_the_edge() -> None:
    async def fail() -> None:
        raise LookupError("not in the kernel")

    async with open_bridge() as bridge:

        async def ask() -> str:
            try:
                await bridge.ask_kernel(fail)
            except LookupError as error:
                return str(error)
            return "nothing"

        assert await bridge.call(ask) == "not in the kernel"


async def test_cancelling_in_the_kernel_cancels_on_the_edge_and_waits_for_its_end() -> (
    None
):
    steps: list[str] = []

    async def slow(started: Callable[[], None]) -> None:
        bridge.post_kernel(started)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            steps.append("cleaned up")
            raise

    async with open_bridge() as bridge, trio.open_nursery() as nursery:
        started = trio.Event()
        nursery.start_soon(bridge.call, slow, started.set)
        await started.wait()
        nursery.cancel_scope.cancel()
    assert steps == ["cleaned up"]


async def test_a_call_that_ends_well_although_cancelled_gives_its_result() -> None:
    async def stubborn(started: Callable[[], None]) -> str:
        bridge.post_kernel(started)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return "done all the same"
        return "never"

    results: list[str] = []

    async def run(scope: trio.CancelScope, started: trio.Event) -> None:
        with scope:
            results.append(await bridge.call(stubborn, started.set))

    async with open_bridge() as bridge, trio.open_nursery() as nursery:
        scope, started = trio.CancelScope(), trio.Event()
        nursery.start_soon(run, scope, started)
        await started.wait()
        scope.cancel()
    assert results == ["done all the same"]


async def test_cancelling_on_the_edge_cancels_in_the_kernel() -> None:
    ended = trio.Event()
    started = trio.Event()

    async def slow() -> None:
        started.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    async with open_bridge() as bridge:

        async def ask_briefly(task_started: Callable[[], None]) -> bool:
            task = asyncio.ensure_future(bridge.ask_kernel(slow))
            await bridge.ask_kernel(started.wait)
            task_started()
            task.cancel()
            return (await asyncio.gather(task, return_exceptions=True))[0] is not None

        assert await bridge.call(ask_briefly, lambda: None)
        with trio.fail_after(5):
            await ended.wait()


async def test_too_many_questions_to_the_kernel_are_refused() -> None:
    gate = trio.Event()

    async with open_bridge(max_asks=2) as bridge:

        async def ask_thrice() -> list[object]:
            tasks = [
                asyncio.ensure_future(bridge.ask_kernel(gate.wait)) for _ in range(3)
            ]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            bridge.post_kernel(gate.set)
            return [*await asyncio.gather(*tasks, return_exceptions=True)]

        first, second, third = await bridge.call(ask_thrice)
        assert first is None
        assert second is None
        assert isinstance(third, BridgeBusyError)
        assert "2 questions" in str(third)


async def test_one_server_leaves_questions_to_others() -> None:
    gate = trio.Event()

    async with open_bridge(max_asks=4) as bridge:

        async def ask_all() -> list[object]:
            tasks = [
                asyncio.ensure_future(bridge.ask_kernel(gate.wait, owner=owner))
                for owner in ("web", "web", "web", "web", "page")
            ]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            bridge.post_kernel(gate.set)
            return [*await asyncio.gather(*tasks, return_exceptions=True)]

        for _ in range(2):
            *first, fourth, other = await bridge.call(ask_all)
            assert first == [None] * 3
            assert isinstance(fourth, BridgeBusyError)
            assert other is None


async def test_posts_arrive_in_order_both_ways() -> None:
    back: list[int] = []
    done = trio.Event()

    async with open_bridge() as bridge:

        def answer(number: int) -> None:
            bridge.post_kernel(back.append, number)

        for number in range(1000):
            bridge.post_edge(answer, number)
        bridge.post_edge(bridge.post_kernel, done.set)
        with trio.fail_after(5):
            await done.wait()
    assert back == list(range(1000))


def test_a_burst_of_posts_wakes_the_other_side_once() -> None:
    wakes: list[Callable[[], object]] = []
    said: list[int] = []
    crossing = Crossing(wakes.append, 10, "test loop")
    for number in range(5):
        crossing.post(partial(said.append, number))
    assert len(wakes) == 1
    wakes.pop()()
    assert said == [0, 1, 2, 3, 4]
    crossing.post(lambda: said.append(5))
    assert len(wakes) == 1


def test_a_full_crossing_refuses_but_lets_ends_of_calls_through() -> None:
    crossing = Crossing(lambda _: None, 1, "test loop")
    crossing.post(lambda: None)
    with pytest.raises(BridgeBusyError, match="test loop"):
        crossing.post(lambda: None)
    crossing.post(lambda: None, must=True)


def test_a_crossing_into_an_ended_loop_says_so_every_time() -> None:
    def wake(_: Callable[[], object]) -> None:
        raise RuntimeError("Event loop is closed")

    crossing = Crossing(wake, 10, "test loop")
    for _ in range(2):
        with pytest.raises(BridgeClosedError, match="test loop has ended"):
            crossing.post(lambda: None)


async def test_a_failing_post_is_logged_and_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> None:
        raise ValueError("a bug in a post")

    async with open_bridge() as bridge:
        bridge.post_edge(fail)
        assert await bridge.call(add, 1, 1) == 2
    assert "a bug in a post" in caplog.text


async def test_the_loops_death_is_noticed_and_the_bridge_starts_again() -> None:
    def die() -> None:
        raise SystemExit(3)

    async with open_bridge() as bridge:
        async with trio.open_nursery() as nursery:

            async def wait_forever() -> None:
                with pytest.raises(BridgeClosedError):
                    await bridge.call(asyncio.sleep, 3600)

            nursery.start_soon(wait_forever)
            await trio.testing.wait_all_tasks_blocked()
            bridge.post_edge(die)
            with trio.fail_after(5), pytest.raises(BridgeClosedError, match="died"):
                await bridge.wait_closed()
        with pytest.raises(BridgeClosedError, match="SystemExit"):
            await bridge.call(add, 1, 1)
        assert not bridge.is_open
        await bridge.start()
        assert await bridge.call(add, 1, 1) == 2


async def test_a_call_that_exits_ends_the_loop_and_not_the_kernel() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    async with open_bridge() as bridge:
        with pytest.raises(BridgeClosedError, match="SystemExit"):
            await bridge.call(leave)


async def test_closing_ends_the_calls_that_wait() -> None:
    bridge = Bridge()
    await bridge.start()
    errors: list[BaseException] = []

    async def wait_forever() -> None:
        try:
            await bridge.call(asyncio.sleep, 3600)
        except BridgeClosedError as error:
            errors.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_forever)
        nursery.start_soon(bridge.wait_closed)
        await trio.testing.wait_all_tasks_blocked()
        await bridge.aclose()
    assert len(errors) == 1


async def test_closing_ends_the_questions_that_the_kernel_still_answers() -> None:
    ended = trio.Event()
    started = trio.Event()

    async def slow() -> None:
        started.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    bridge = Bridge()
    await bridge.start()

    def begin() -> None:
        keep.append(asyncio.ensure_future(bridge.ask_kernel(slow)))

    keep: list[asyncio.Future[None]] = []
    bridge.post_edge(begin)
    await started.wait()
    await bridge.aclose()
    with trio.fail_after(5):
        await ended.wait()


async def test_closing_twice_and_before_the_start_does_nothing() -> None:
    bridge = Bridge()
    await bridge.aclose()
    await bridge.start()
    await bridge.aclose()
    await bridge.aclose()
    with pytest.raises(BridgeClosedError):
        await bridge.call(add, 1, 1)
    with pytest.raises(BridgeClosedError):
        bridge.post_edge(print)


async def test_starting_twice_is_misuse() -> None:
    async with open_bridge() as bridge:
        with pytest.raises(MisuseError):
            await bridge.start()


async def test_using_a_bridge_that_was_not_started_says_so() -> None:
    bridge = Bridge()
    with pytest.raises(BridgeClosedError, match="not started"):
        await bridge.call(add, 1, 1)
    with pytest.raises(BridgeClosedError, match="not started"):
        await bridge.wait_closed()


async def test_a_task_that_ignores_cancellation_cannot_hold_the_end_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def immortal() -> None:
        for _ in range(3):
            try:
                await asyncio.sleep(0.2)
            except asyncio.CancelledError:
                continue

    bridge = Bridge(shutdown_timeout=0.05)
    await bridge.start()
    keep: list[asyncio.Future[None]] = []
    bridge.post_edge(lambda: keep.append(asyncio.ensure_future(immortal())))
    await bridge.call(asyncio.sleep, 0)
    with trio.fail_after(2):
        await bridge.aclose()
    assert "did not end when cancelled" in caplog.text


async def test_a_blocked_loop_is_left_behind_and_replaced() -> None:
    release = threading.Event()
    bridge = Bridge(shutdown_timeout=0.05)
    await bridge.start()
    bridge.post_edge(release.wait, 10)
    blocked = [t for t in threading.enumerate() if t.name.startswith("EdgeLoop")]
    with trio.fail_after(2):
        await bridge.aclose()
        with pytest.raises(BridgeClosedError, match="did not end"):
            await bridge.wait_closed()
        await bridge.start()
        assert await bridge.call(add, 1, 1) == 2
        await bridge.aclose()
    release.set()
    await trio.to_thread.run_sync(blocked[0].join)


async def test_a_hundred_tasks_cross_at_once() -> None:
    async with open_bridge() as bridge:

        async def round_trip(number: int) -> None:
            async def ask() -> int:
                return await bridge.ask_kernel(add_in_kernel, number, 1)

            assert await bridge.call(ask) == number + 1

        async with trio.open_nursery() as nursery:
            for number in range(100):
                nursery.start_soon(round_trip, number)
