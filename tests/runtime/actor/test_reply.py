"""Proves that a reply is answered once and reaches tasks and threads alike."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections import Counter
from functools import partial
from operator import add, mul
from threading import get_ident
from typing import Any

import pykka
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from runtime.actor.actor import Actor
from runtime.actor.reply import Reply
from runtime.errors import MisuseError
from runtime.system import ActorSystem, open_system
from runtime.testing import CrashError, wait_settled
from tests.support.puppet import Puppet, crash, do, supervise, virtual


def test_only_the_first_answer_counts() -> None:
    reply = Reply()
    assert repr(reply) == "<Reply pending>"
    assert reply.offer(1)
    assert not reply.offer(2)
    assert not reply.offer_error(ValueError())
    assert reply.get() == 1
    assert repr(reply) == "<Reply answered>"
    with pytest.raises(MisuseError, match="answered before"):
        reply.set(3)
    with pytest.raises(MisuseError, match="answered before"):
        reply.set_exception((None, ValueError(), None))


def test_the_exception_being_handled_is_the_answer() -> None:
    reply = Reply()
    with pytest.raises(MisuseError, match="none was given"):
        reply.set_exception()
    try:
        _ = dict[str, int]()["lost"]
    except KeyError:
        reply.set_exception()
    with pytest.raises(KeyError, match="lost"):
        reply.get()


def test_a_thread_that_waited_too_long_makes_the_answer_late() -> None:
    reply = Reply(timeout=0.01)
    with pytest.raises(pykka.Timeout):
        reply.get()
    assert not reply.offer("late")


def test_of_many_answers_one_is_first() -> None:
    replies = [Reply() for _ in range(300)]
    won: list[int] = []
    gate = threading.Barrier(4)

    def answer(number: int) -> None:
        gate.wait()
        won.extend(number for reply in replies if reply.offer(number))

    threads = [threading.Thread(target=answer, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == len(replies)


async def test_a_task_that_would_block_the_loop_is_told_to_await() -> None:
    with pytest.raises(MisuseError, match="use `await`"):
        Reply().get(timeout=0.0)


async def test_a_task_waits_for_a_threads_answer() -> None:
    for _ in range(50):
        reply = Reply()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, reply.set, "answer")
            assert await reply == "answer"


async def test_two_threads_and_two_tasks_hear_one_answer() -> None:
    reply = Reply(5)
    heard: list[Any] = []

    async def listen() -> None:
        heard.append(await reply)

    async def listen_in_thread() -> None:
        heard.append(await trio.to_thread.run_sync(reply.get))

    async with trio.open_nursery() as nursery:
        for listener in (listen, listen, listen_in_thread, listen_in_thread):
            nursery.start_soon(listener)
        await trio.testing.wait_all_tasks_blocked(0.01)
        reply.set(7)
    assert heard == [7, 7, 7, 7]


async def test_who_is_cancelled_while_waiting_is_forgotten(
    autojump_clock: trio.testing.MockClock,
) -> None:
    reply = Reply()
    with trio.move_on_after(1):
        await reply
    assert autojump_clock.current_time() == 1
    reply.set(1)
    assert await reply == 1


async def test_an_answer_on_its_way_beats_a_cancellation() -> None:
    reply = Reply()
    listener = Listener(reply)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener.listen)
            await trio.testing.wait_all_tasks_blocked()
            reply.set("in time")
            scope.cancel()
    assert listener.heard == ["in time"]


class Listener:
    """Awaits a reply and writes down what it says."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.heard: list[Any] = []

    async def listen(self) -> None:
        self.heard.append(await self.reply)


async def test_derived_replies_can_be_awaited_and_read() -> None:
    number, other = Reply(), Reply()
    doubled = number.map(partial(mul, 2))
    both = number.join(other, doubled)
    odd = both.filter(range(1, 9, 2).count)
    total = both.reduce(add, 100)
    with pytest.raises(MisuseError, match="answered before"):
        doubled.set(1)
    with pytest.raises(MisuseError, match="answered before"):
        doubled.set_exception((None, ValueError(), None))
    number.set(1)
    other.set(5)
    assert await doubled == 2
    assert await odd == [1, 5]
    assert await total == 108
    assert total.get() == 108
    assert both.get() == [1, 5, 2]


async def test_a_derived_reply_gives_the_error_of_its_source() -> None:
    broken = Reply()
    broken.offer_error(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await broken.map(str)


async def test_another_loops_task_is_woken_or_given_up() -> None:
    alive, gone = Reply(), Reply()
    tasks: list[trio.lowlevel.Task] = []

    async def other_loop() -> Any:
        tasks.append(trio.lowlevel.current_task())
        token = trio.lowlevel.current_trio_token()
        gone._waiters = [(tasks[0], get_ident(), token)]
        return await alive

    async with trio.open_nursery() as nursery:
        run = partial(trio.run, other_loop)
        nursery.start_soon(trio.to_thread.run_sync, run)
        while not alive._waiters:
            await trio.lowlevel.checkpoint()
        alive.set(1)
    gone.set(1)
    assert await gone == 1


async def test_an_answer_from_a_thread_meets_a_task_that_leaves_just_then() -> None:
    ended = Counter[str]()

    async def wait_or_leave(reply: Reply, patience: int) -> None:
        with trio.CancelScope() as scope:
            nursery.start_soon(leave, scope, patience)
            ended[await reply] += 1
            return
        ended["left"] += 1

    async def leave(scope: trio.CancelScope, patience: int) -> None:
        for _ in range(patience):
            await trio.lowlevel.checkpoint()
        scope.cancel()

    replies = [Reply() for _ in range(2000)]

    def answer() -> None:
        for reply in replies:
            assert reply.offer("answered")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, answer)
        for number, reply in enumerate(replies):
            nursery.start_soon(wait_or_leave, reply, number % 7)
            if number % 50 == 0:
                await trio.lowlevel.checkpoint()
    assert ended.total() == 2000


async def test_a_wake_on_its_way_is_not_cancelled() -> None:
    reply = Reply()
    listener = Listener(reply)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener.listen)
            await trio.testing.wait_all_tasks_blocked()
            assert reply._waiters is not None
            ((task, _, token),) = reply._waiters  # as a thread does that answers
            reply._outcome, reply._waiters = ("in time", None), None
            scope.cancel()
            with trio.CancelScope(shield=True):
                await trio.testing.wait_all_tasks_blocked()
            token.run_sync_soon(trio.lowlevel.reschedule, task)
    assert listener.heard == ["in time"]


@pytest.mark.parametrize("end", ["fail", "stop", "kill"])
async def test_who_waits_for_a_deferred_reply_learns_of_the_end(
    end: str, autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        kept: list[Any] = []
        ref = system.spawn(Puppet())
        asked = ref.ask(do(lambda me: kept.append(me.defer_reply())))
        answered = ref.ask(do(lambda me: kept.append(me.defer_reply())))
        await wait_settled(system)
        kept[1].offer("answered")
        ends = {"fail": lambda: ref.tell(crash), "stop": ref.stop, "kill": ref.kill}
        ends[end]()
        with pytest.raises(pykka.ActorDeadError, match="before it answered"):
            await asked
        assert await answered == "answered"
        assert trio.current_time() < 1


async def crash_late(_me: Actor) -> None:
    await trio.lowlevel.checkpoint()
    raise CrashError("to order")


class Faulty(Puppet):
    """Fails at the start or the end, at once or late, as its orders are.

    Args:
        at_start: what to do then.
        at_stop: what to do then.
    """

    def __init__(self, at_start: Any = None, at_stop: Any = None) -> None:
        super().__init__()
        self._at_start, self._at_stop = at_start, at_stop

    def on_start(self) -> Any:
        return self._at_start and self._at_start(self)

    def on_stop(self) -> Any:
        return self._at_stop and self._at_stop(self)


def tell_nobody(_event: str, _fields: dict[str, Any]) -> None:
    """Keep no report: the error in it would hold its traceback."""


async def ask(system: ActorSystem, act: Any) -> None:
    ref = system.spawn(Puppet())
    with contextlib.suppress(CrashError):
        await ref.ask(act)


async def tell(system: ActorSystem, act: Any) -> None:
    system.spawn(Puppet()).tell(act)


async def start(system: ActorSystem, act: Any) -> None:
    with contextlib.suppress(CrashError):
        system.spawn(Faulty(at_start=act))


async def stop(system: ActorSystem, act: Any) -> None:
    await system.spawn(Faulty(at_stop=act)).stop()


@pytest.mark.parametrize("act", [crash, crash_late])
@pytest.mark.parametrize("way", [ask, tell, start, stop])
async def test_an_error_leaves_no_circle_behind(
    way: Any, act: Any, autojump_clock: MockClock
) -> None:
    assert autojump_clock.autojump_threshold == 0
    async with open_system(report=tell_nobody) as system:
        await way(system, act)  # the first call leaves a parked task for later ones
        await wait_settled(system)
        gc.collect()
        gc.disable()
        try:
            for _ in range(10):
                await way(system, act)
                await wait_settled(system)
            assert gc.collect() == 0
        finally:
            gc.enable()


class Reluctant(Puppet):
    """Fails at every other start.

    Args:
        starts: counts them over all incarnations.
        act: how to fail.
    """

    def __init__(self, starts: list[int], act: Any) -> None:
        super().__init__()
        starts.append(1)
        self._act = None if len(starts) % 2 else act

    def on_start(self) -> Any:
        return self._act and self._act(self)


@pytest.mark.parametrize("act", [crash, crash_late])
async def test_a_restart_that_fails_leaves_no_circle_behind(
    act: Any, autojump_clock: MockClock
) -> None:
    assert autojump_clock.autojump_threshold == 0
    async with open_system(report=tell_nobody) as system:
        starts: list[int] = []
        make = partial(Reluctant, starts, act)
        (ref,) = await supervise(system, make, intensity=1000)
        gc.collect()
        gc.disable()
        try:
            for _ in range(10):
                ref.tell(crash)
                await trio.sleep(100)
            assert len(starts) == 61, "each kills three times, each restart fails once"
            assert gc.collect() == 0
        finally:
            gc.enable()
