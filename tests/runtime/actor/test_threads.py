"""Proves that threads may speak to actors: nothing is lost, each keeps its order."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator
from functools import partial
from types import FrameType, FunctionType
from typing import Any, cast

import pykka
import pytest
import trio
import trio.testing

from runtime.actor import dispatcher
from runtime.actor.kernel import Kernel
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.ref import ActorRef
from runtime.errors import MailboxFullError, MisuseError
from runtime.system import open_system
from runtime.testing import Probe
from tests.support.puppet import Puppet, crash, do, hang, wait
from tests.support.tiers import examples

THREADS = 8
EACH = 12_500

in_thread = trio.to_thread.run_sync


async def in_threads(run: Callable[[int], object]) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(THREADS):
            nursery.start_soon(in_thread, run, number)


async def test_eight_threads_lose_nothing_and_keep_their_order() -> None:
    async with open_system() as system:
        probe = Probe()
        ref = system.spawn(probe)

        def send(thread: int) -> None:
            for number in range(EACH):
                ref.tell((thread, number))

        await in_threads(send)
        await probe.wait_count(THREADS * EACH, within=60)
        assert len(probe.received) == THREADS * EACH
        for thread in range(THREADS):
            mine = [number for who, number in probe.received if who == thread]
            assert mine == list(range(EACH))


async def test_eight_threads_get_their_answers() -> None:
    async with open_system() as system:
        ref = system.spawn(Probe(lambda message: message))

        def ask(thread: int) -> None:
            for number in range(300):
                assert ref.ask((thread, number)) == (thread, number)
            later = ref.ask("later", block=False)
            assert later.get() == "later"

        await in_threads(ask)
        assert system.statistics().timers == 0


async def test_threads_hear_of_errors_and_deadlines() -> None:
    async with open_system() as system:
        ref = system.spawn(Puppet(), mailbox=MailboxConfig(capacity=1))

        def ask() -> None:
            with pytest.raises(ZeroDivisionError):
                ref.ask(do(lambda _me: 1 / 0))
            with pytest.raises(pykka.Timeout):
                ref.ask(hang, timeout=0.05)
            ref.tell("fills it")
            while system.actors()[0].depth == 0:
                pass
            with pytest.raises(MailboxFullError) as refused:
                ref.tell("refused")
            assert refused.value.message == "refused"
            with pytest.raises(MailboxFullError):
                ref.ask("refused")
            ref.interrupt()
            while system.actors()[0].depth:
                pass
            assert ref.ask("goes on") == "goes on"
            ref.tell(hang)
            ref.kill()

        await in_thread(ask)


async def test_a_flood_over_the_bound_becomes_dead_letters() -> None:
    async with open_system() as system:
        probe = Probe()
        ref = system.spawn(probe, mailbox=MailboxConfig(capacity=10))
        done = threading.Event()

        def flood() -> None:
            for number in range(50):
                ref.tell(number)
            asked = ref.ask("asked", block=False)
            done.set()
            with pytest.raises(MailboxFullError):
                asked.get(timeout=5)

        thread = threading.Thread(target=flood)
        thread.start()
        done.wait(5)  # the loop is busy: nothing arrives meanwhile
        await in_thread(thread.join)
        assert probe.received == list(range(10))
        assert system.dead_letters.counts == {"mailbox_full": 41}


async def test_dropping_the_oldest_works_from_threads() -> None:
    async with open_system() as system:
        probe = Probe()
        config = MailboxConfig(capacity=2, overflow="drop_oldest")
        ref = system.spawn(probe, mailbox=config)

        def send() -> None:
            for number in range(100):
                ref.tell(number)

        await in_thread(send)
        await probe.wait_count(2)
        assert probe.received[-1] == 99


async def test_an_ended_system_answers_threads_at_once() -> None:
    async with open_system() as system:
        ref = system.spawn(Puppet())
        asked = await in_thread(lambda: ref.ask(hang, block=False))
        await in_thread(ref.kill)
    for _ in range(2):
        assert await in_thread(ref.stop) is False
        with pytest.raises(pykka.ActorDeadError):
            await in_thread(ref.tell, "late")
        with pytest.raises(pykka.ActorDeadError):
            await in_thread(lambda: ref.ask("late"))
        with pytest.raises(pykka.ActorDeadError):
            await in_thread(ref.kill)
    with pytest.raises(pykka.ActorDeadError):
        await asked


def test_a_finished_loop_answers_threads_at_once() -> None:
    kernels: list[Kernel] = []

    async def main() -> None:
        kernel = Kernel(1.0, lambda _event, _fields: None)
        kernel.dispatcher.open()
        kernels.append(kernel)

    trio.run(main)
    pump = kernels[0].dispatcher
    assert not kernels[0].on_kernel_thread or pump.thread_id == threading.get_ident()
    for _ in range(2):
        with pytest.raises(pykka.ActorDeadError, match="its system has ended"):
            pump.call_soon(Named(), print)
    assert pump.foreign_waiting == 0


class Named:
    """Something that could be run."""

    name = "anna"

    def step(self, batch: int) -> int:
        return batch


def test_a_system_that_is_not_open_refuses_threads() -> None:
    pump = dispatcher.Dispatcher(print)
    with pytest.raises(MisuseError, match="not open"):
        pump.call_soon(Named(), print)


async def test_too_many_messages_on_their_way_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dispatcher, "MOST_FOREIGN", 5)
    async with open_system() as system:
        ref = system.spawn(Probe())
        done = threading.Event()
        refused: list[Any] = []

        def flood() -> None:
            for number in range(7):
                try:
                    ref.tell(number)
                except MailboxFullError as error:
                    refused.append(error.message)
            ref.interrupt()  # is never refused
            done.set()

        thread = threading.Thread(target=flood)
        thread.start()
        done.wait(5)
        await in_thread(thread.join)
        assert refused == [5, 6]


async def test_what_arrives_while_arrivals_are_made_is_made_as_well() -> None:
    async with open_system() as system:
        pump = system.kernel.dispatcher
        order: list[str] = []

        def late() -> None:
            order.append("first")
            pump.call_soon(Named(), partial(order.append, "third"))
            pump.call_soon(Named(), partial(order.append, "fourth"))

        await in_thread(pump.call_soon, Named(), late)
        await in_thread(pump.call_soon, Named(), partial(order.append, "second"))
        while len(order) < 4:
            await trio.lowlevel.checkpoint()
        assert order[0] == "first"
        assert order.index("third") < order.index("fourth")
        assert pump.foreign_waiting == 0


async def test_a_reply_may_be_awaited_on_another_loop() -> None:
    async with open_system() as system:
        ref = system.spawn(Puppet())
        reply = ref.ask(wait(0.1))

        async def other() -> Any:
            return await reply

        assert await in_thread(trio.run, other) == "waited"


async def test_spawning_is_for_the_kernel_thread() -> None:
    async with open_system() as system:
        with pytest.raises(MisuseError, match="kernel thread"):
            await in_thread(system.spawn, Puppet())
        assert isinstance(system.spawn(Puppet()), ActorRef)
        ref = system.spawn(Puppet())
        ref.tell(crash)


def test_what_threads_left_is_made_when_the_kernel_closes() -> None:
    pump = dispatcher.Dispatcher(print)
    made: list[int] = []
    pump._foreign.append(partial(made.append, 1))
    pump.close()
    assert made == [1]


async def test_a_system_leaves_nothing_of_its_own_in_the_loop() -> None:
    async with open_system() as system:
        pump = system.kernel.dispatcher
    with pytest.raises(KeyError):
        trio.lowlevel.remove_instrument(pump.turn)


class Nobody:
    name = "nobody"

    def step(self, batch: int) -> int:
        return batch


@pytest.mark.property
def test_threads_that_meet_the_loops_end_are_all_served_or_refused() -> None:
    served = Counter[str]()

    def ask_for_calls(pump: dispatcher.Dispatcher) -> None:
        with contextlib.suppress(pykka.ActorDeadError):
            while True:
                pump.call_soon(Nobody(), lambda: served.update(["made"]))
                accepted.append(1)

    async def end_soon() -> dispatcher.Dispatcher:
        pump = dispatcher.Dispatcher(print)
        pump.open()
        threads.extend(
            threading.Thread(target=ask_for_calls, args=(pump,)) for _ in range(3)
        )
        for thread in threads:
            thread.start()
        while served["made"] < 100:
            await trio.lowlevel.checkpoint()
        pump.close()
        return pump

    for _ in range(examples(5, deep=20)):
        accepted: list[int] = []
        threads: list[threading.Thread] = []
        served.clear()
        pump = trio.run(end_soon)
        for thread in threads:
            thread.join()
        assert (served["made"], pump.foreign_waiting) == (len(accepted), 0)


class Posts:
    """A dispatcher, and what became of the calls that were handed in."""

    def __init__(self) -> None:
        self.pump = dispatcher.Dispatcher(print)
        self.made: list[str] = []
        self.refused: list[str] = []

    def send(self, name: str) -> None:
        """Hand in a call."""
        try:
            self.pump.call_soon(Nobody(), partial(self.made.append, name))
        except pykka.ActorDeadError:
            self.refused.append(name)

    def send_from_thread(self, name: str) -> None:
        """Hand in a call from another thread, and wait until that has ended."""
        thread = threading.Thread(target=self.send, args=(name,))
        thread.start()
        thread.join()


@contextlib.contextmanager
def at_line(
    line: int, act: Callable[[], object], *functions: FunctionType
) -> Generator[list[int]]:
    """Act before one of the lines that this thread runs of some functions, from 1.

    Gives what holds a number once that was done: there may be fewer lines.
    """
    codes = {each.__code__ for each in functions}
    left, done = line, list[int]()

    def step(_frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal left
        left -= event == "line"
        if left == 0 and not done:
            done.append(line)
            act()
        return step

    def trace(frame: FrameType, _event: str, _arg: object) -> Any:
        return step if frame.f_code in codes else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield done
    finally:
        sys.settrace(before)


CALL_SOON = cast("FunctionType", dispatcher.Dispatcher.call_soon)
MAKERS = tuple(
    cast("FunctionType", each)
    for each in (
        dispatcher.Dispatcher._make_foreign_calls,
        dispatcher.Dispatcher._make_calls,
        dispatcher.Dispatcher.close,
    )
)


class StoppedThread(threading.Thread):
    """Hands in a call, and stops before one of its lines until it may go on."""

    def __init__(self, posts: Posts, line: int) -> None:
        super().__init__()
        self.posts = posts
        self.line = line
        self.is_there = threading.Event()
        self.goes_on = threading.Event()

    def run(self) -> None:
        with at_line(self.line, self.stop, CALL_SOON):
            self.posts.send("one")
        self.is_there.set()

    def stop(self) -> None:
        self.is_there.set()
        self.goes_on.wait(5)

    def end(self) -> None:
        self.goes_on.set()
        self.join()


@pytest.mark.parametrize("meanwhile", ["made", "closed", "told", "finished"])
@pytest.mark.parametrize("line", range(1, 12))
def test_wherever_a_thread_stops_on_its_way_its_call_is_made_once_or_refused(
    line: int, meanwhile: str
) -> None:
    posts = Posts()
    thread = StoppedThread(posts, line)
    acts: dict[str, Callable[[], object]] = {
        "made": posts.pump._make_foreign_calls,
        "closed": posts.pump.close,
        "told": partial(posts.send_from_thread, "two"),
    }

    async def main() -> None:
        posts.pump.open()
        thread.start()
        assert thread.is_there.wait(5)
        if meanwhile in acts:
            acts[meanwhile]()
            await in_thread(thread.end)
            await trio.testing.wait_all_tasks_blocked()
            posts.pump.close()

    trio.run(main)
    thread.end()
    check(posts, ["one", "two"] if meanwhile == "told" else ["one"])
    assert not posts.refused or meanwhile in {"closed", "finished"}


def check(posts: Posts, names: list[str]) -> None:
    assert sorted(posts.made + posts.refused) == names
    assert posts.pump.foreign_waiting == 0


@pytest.mark.parametrize("line", range(1, 12))
def test_wherever_a_finalizer_tells_in_the_midst_of_a_call_both_are_made(
    line: int,
) -> None:
    posts = Posts()

    def run() -> list[int]:
        # The collector may run one anywhere, in the same thread.
        with at_line(line, partial(posts.send, "finalizer"), CALL_SOON) as done:
            posts.send("call")
        return done

    async def main() -> list[int]:
        posts.pump.open()
        done = await in_thread(run)
        await trio.testing.wait_all_tasks_blocked()
        posts.pump.close()
        return done

    check(posts, ["call", "finalizer"][: 1 + len(trio.run(main))])
    assert posts.refused == []


@pytest.mark.parametrize("is_closing", [True, False])
@pytest.mark.parametrize("line", range(1, 16))
def test_wherever_the_loop_stops_a_threads_call_is_made_once_or_refused(
    line: int, *, is_closing: bool
) -> None:
    posts = Posts()

    async def main() -> list[int]:
        posts.pump.open()
        posts.send_from_thread("one")  # the loop has not seen to it yet
        act = partial(posts.send_from_thread, "two")
        with at_line(line, act, *MAKERS) as done:
            if is_closing:
                posts.pump.close()
            await trio.testing.wait_all_tasks_blocked()
        return done

    check(posts, ["one", "two"][: 1 + len(trio.run(main))])
    assert posts.made[:1] == ["one"]
    assert is_closing or not posts.refused


def test_a_thread_that_is_interrupted_on_its_way_stops_nobody_elses_calls() -> None:
    made: list[int] = []

    def interrupt(frame: FrameType, _event: str, _arg: object) -> None:
        if frame.f_code is trio.lowlevel.TrioToken.run_sync_soon.__code__:
            sys.settrace(None)
            raise KeyboardInterrupt

    async def main() -> None:
        pump = dispatcher.Dispatcher(print)
        pump.open()

        def send() -> None:
            sys.settrace(interrupt)
            with pytest.raises(KeyboardInterrupt):
                pump.call_soon(Nobody(), partial(made.append, 1))
            pump.call_soon(Nobody(), partial(made.append, 2))

        await in_thread(send)
        await trio.testing.wait_all_tasks_blocked()
        assert made == [1, 2]
        pump.close()

    trio.run(main)


def ctrl_c() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("line", range(1, 12))
def test_wherever_a_thread_is_interrupted_the_next_ones_call_is_made(line: int) -> None:
    posts = Posts()

    def send() -> None:
        hurt = contextlib.suppress(KeyboardInterrupt)
        with hurt, at_line(line, ctrl_c, CALL_SOON):
            posts.send("one")

    async def main() -> None:
        posts.pump.open()
        await in_thread(send)
        posts.send_from_thread("two")
        await trio.testing.wait_all_tasks_blocked()
        assert posts.made[-1] == "two"
        posts.pump.close()

    trio.run(main)


def test_who_is_interrupted_as_the_loop_ends_lets_the_next_one_be_refused() -> None:
    posts = Posts()

    def interrupt(frame: FrameType, _event: str, _arg: object) -> None:
        if frame.f_code is trio.lowlevel.TrioToken.run_sync_soon.__code__:
            sys.settrace(None)
            raise KeyboardInterrupt

    def send() -> None:
        sys.settrace(interrupt)
        with pytest.raises(KeyboardInterrupt):
            posts.send("one")

    async def main() -> None:
        posts.pump.open()

    trio.run(main)  # it ends in the midst, as by a crash: nobody closes
    thread = threading.Thread(target=send)
    thread.start()
    thread.join()
    posts.send_from_thread("two")
    assert posts.refused == ["two"]


def test_a_call_that_came_while_another_thread_was_interrupted_is_made() -> None:
    posts = Posts()

    def interrupt(frame: FrameType, _event: str, _arg: object) -> None:
        if frame.f_code is trio.lowlevel.TrioToken.run_sync_soon.__code__:
            sys.settrace(None)
            posts.send_from_thread("two")
            raise KeyboardInterrupt

    def send() -> None:
        sys.settrace(interrupt)
        with pytest.raises(KeyboardInterrupt):
            posts.send("one")

    async def main() -> None:
        posts.pump.open()
        await in_thread(send)
        await trio.testing.wait_all_tasks_blocked()
        assert posts.made == ["one", "two"]
        posts.pump.close()

    trio.run(main)


async def test_what_a_thread_tells_comes_before_what_it_asks_of_the_loop_later() -> (
    None
):
    async with open_system() as system:
        probe = Probe()
        ref = system.spawn(probe)
        token = trio.lowlevel.current_trio_token()

        def send() -> None:
            ref.tell(1)
            token.run_sync_soon(ref.tell, 2)

        await in_thread(send)
        await probe.wait_count(2)
        assert probe.received == [1, 2]
