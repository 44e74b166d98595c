"""Proves that no actor, plain or `async`, keeps the others or the loop waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from runtime.actor.actor import Actor
from runtime.actor.dispatcher import BATCH, MESSAGES_PER_TURN
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.ref import cell_of
from runtime.actor.reply import Reply
from runtime.system import open_system
from runtime.testing import CrashError, Probe, wait_settled
from tests.support.puppet import virtual

ROOMY = MailboxConfig(capacity=100_000)


class Plain(Actor):
    """Calls what it is told; its handler does not wait.

    Takes: functions.
    Sends: what they send.
    Keeps: how many it called.
    Fails: as they do.
    Ends: with its system.
    """

    mailbox = ROOMY

    def __init__(self) -> None:
        super().__init__()
        self.handled = 0

    def on_receive(self, message: Callable[[], None] | None) -> Any:
        self.handled += 1
        if message is not None:
            message()


class Swift(Plain):
    """The same from an `async` handler that never suspends."""

    async def on_receive(self, message: Callable[[], None] | None) -> None:
        super().on_receive(message)


def fail() -> None:
    raise CrashError("to order")


KINDS = pytest.mark.parametrize("kind", [Plain, Swift])


@KINDS
async def test_a_flooded_actor_gives_way(
    kind: type[Plain], autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        flooded = kind()
        other = Probe(lambda _message: seen.append(flooded.handled))
        seen: list[int] = []
        ref, other_ref = system.spawn(flooded), system.spawn(other)
        ref.tell(lambda: other_ref.tell("your turn"))
        for _ in range(5000):
            ref.tell(None)
        await wait_settled(system)
        assert flooded.handled == 5001
        assert seen[0] <= BATCH


@KINDS
async def test_who_tells_itself_leaves_the_loop_its_turns(
    kind: type[Plain], autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        actor, turns = kind(), Counter[str]()
        ref = system.spawn(actor)

        def again() -> None:
            if turns["loop"] < 10 and actor.handled < 100_000:
                ref.tell(again)

        ref.tell(again)
        while turns["loop"] < 10:
            await trio.lowlevel.checkpoint()
            turns["loop"] += 1
        assert actor.handled < 100_000


@KINDS
async def test_a_flooded_actor_keeps_its_order(
    kind: type[Plain], autojump_clock: MockClock, order: int
) -> None:
    async with virtual(autojump_clock) as system:
        ref, told = system.spawn(kind(), name=f"order{order}"), list[int]()

        def teller(number: int) -> Callable[[], None]:
            return lambda: told.append(number)

        for number in range(300):
            ref.tell(teller(number))
        await wait_settled(system)
        assert told == list(range(300))


class Stopwatch:
    """How long, and for how many messages, another task had to wait for its turn.

    Args:
        count: tells how much has been handled by now.
    """

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count
        self.seconds = 0.0
        self.messages = 0

    async def run(self) -> None:
        at, count = trio.current_time(), self._count()
        while True:
            await trio.lowlevel.checkpoint()
            self.seconds = max(self.seconds, trio.current_time() - at)
            self.messages = max(self.messages, self._count() - count)
            at, count = trio.current_time(), self._count()


@KINDS
async def test_slow_handlers_leave_trio_its_turns_in_time(
    kind: type[Plain], autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system, trio.open_nursery() as nursery:
        actors = [kind() for _ in range(64)]
        watch = Stopwatch(lambda: sum(actor.handled for actor in actors))
        nursery.start_soon(watch.run)
        for actor in actors:
            ref = system.spawn(actor)
            for _ in range(50):
                ref.tell(lambda: autojump_clock.jump(0.0002))
        while sum(actor.handled for actor in actors) < 64 * 50:
            await trio.lowlevel.checkpoint()
        assert watch.seconds <= 0.1  # all of it is 0.64
        nursery.cancel_scope.cancel()


async def test_many_askers_leave_trio_its_turns(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system, trio.open_nursery() as nursery:
        flooded, asked = Plain(), Plain()
        watch = Stopwatch(lambda: flooded.handled + asked.handled)
        flood, ref = system.spawn(flooded), system.spawn(asked)
        for _ in range(50_000):
            flood.tell(None)

        async def ask() -> None:
            for _ in range(1000):
                await ref.ask(None)

        async with trio.open_nursery() as askers:
            nursery.start_soon(watch.run)
            for _ in range(8):
                askers.start_soon(ask)
        assert watch.messages <= 3 * MESSAGES_PER_TURN
        nursery.cancel_scope.cancel()


async def test_a_burst_of_threads_leaves_trio_its_turns() -> None:
    async with open_system() as system, trio.open_nursery() as nursery:
        made = Counter[str]()
        ref = system.spawn(Plain())
        watch = Stopwatch(lambda: made["calls"])

        def burst() -> None:
            for _ in range(20_000):
                system.kernel.dispatcher.call_soon(cell_of(ref), call)

        def call() -> None:
            made["calls"] += 1

        nursery.start_soon(watch.run)
        await trio.to_thread.run_sync(burst)
        while made["calls"] < 20_000:
            await trio.lowlevel.checkpoint()
        assert watch.messages <= 2 * MESSAGES_PER_TURN
        nursery.cancel_scope.cancel()


async def test_a_lent_turn_is_the_asked_actors_alone(
    autojump_clock: MockClock,
) -> None:
    variable: ContextVar[str] = ContextVar("variable", default="unset")
    async with virtual(autojump_clock) as system:
        stranger = Plain()
        asked = system.spawn(Probe(lambda _message: (stranger.handled, variable.get())))
        system.spawn(stranger).tell(None)
        variable.set("the asker's")
        assert await asked.ask("how many?") == (0, "unset")


async def test_an_answer_that_is_there_is_a_turn_all_the_same(
    autojump_clock: MockClock,
) -> None:
    autojump_clock.rate = 0
    reply = Reply()
    reply.offer("answered")
    with trio.CancelScope() as scope:
        scope.cancel()
        for _ in range(100):
            await reply
    assert scope.cancelled_caught
    assert await reply == "answered"


@KINDS
async def test_asks_that_fail_count_like_others(
    kind: type[Plain], autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        actors = [kind() for _ in range(80)]
        refs = [system.spawn(actor) for actor in actors]
        replies = [ref.ask(fail) for ref in refs for _ in range(BATCH)]
        seen = [0]
        while seen[-1] < len(replies):
            await trio.lowlevel.checkpoint()
            seen.append(sum(actor.handled for actor in actors))
        steps = [after - before for before, after in pairwise(seen)]
        # The order is open, so up to two turns may pass before other tasks run.
        assert max(steps) <= 2 * (MESSAGES_PER_TURN + BATCH)
        for reply in replies:
            with pytest.raises(CrashError):
                await reply
