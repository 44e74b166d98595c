"""Proves that the dispatcher is fair, wakes when needed, and lends its turn safely."""

from __future__ import annotations

import sys
from collections import Counter
from functools import partial
from types import FrameType
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from runtime.actor.actor import Actor
from runtime.actor.dispatcher import (
    BATCH,
    MESSAGES_PER_TURN,
    Dispatcher,
)
from runtime.actor.mailbox import MailboxConfig
from runtime.testing import Probe, wait_settled
from tests.support.puppet import Puppet, virtual, wait

ASKS = 20_000


class Endless:
    """Always has something to handle."""

    name = "endless"

    def __init__(self, pump: Dispatcher) -> None:
        self.pump = pump
        self.handled = 0
        self.is_queued = False

    def step(self, batch: int) -> None:
        assert batch == BATCH
        self.handled += 1
        self.pump.schedule(self)


async def test_a_flood_leaves_trio_its_turns() -> None:
    pump = Dispatcher(print)
    pump.open()
    endless = Endless(pump)
    pump.schedule(endless)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pump.run)
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        assert 0 < endless.handled <= 11 * MESSAGES_PER_TURN
        assert pump.waiting == 1
        nursery.cancel_scope.cancel()


async def test_a_cancelled_pump_is_not_woken() -> None:
    pump = Dispatcher(print)
    pump.open()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pump.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    pump.schedule(Endless(pump))
    assert pump.waiting == 1


async def test_who_only_asks_leaves_others_their_turns(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Probe(lambda message: message))
        turns = Counter[str]()

        async def other() -> None:
            while turns["asks"] < ASKS:
                turns["other"] += 1
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            await trio.lowlevel.checkpoint()
            for _ in range(ASKS):
                await ref.ask("x")
                turns["asks"] += 1
        assert turns["other"] >= 20


async def test_a_lent_turn_does_not_run_the_asker_again(
    autojump_clock: MockClock, order: int
) -> None:
    """A handler asks another, which meanwhile tells it more than it can take."""
    async with virtual(autojump_clock) as system:
        running = Counter[str]()
        system.spawn(Probe(), name=f"order{order}")
        asker = system.spawn(Puppet())

        def answer(_message: Any) -> str:
            for _ in range(3):
                asker.tell(alone)
            return "answer"

        other = system.spawn(Probe(answer))

        async def alone(_me: Actor) -> None:
            running["now"] += 1
            assert running["now"] == 1
            if running["all"] < 20:
                running["all"] += 1
                assert await other.ask("question") == "answer"
            running["now"] -= 1

        asker.tell(alone)
        await wait_settled(system)
        assert system.statistics().dead_letters == {}
        assert running == {"now": 0, "all": 20}


async def test_an_actor_may_ask_while_it_starts_ends_or_is_shielded(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        other = system.spawn(Probe(lambda message: message))

        class Asker(Puppet):
            async def on_start(self) -> None:
                self.log.append(await other.ask("starting"))

            async def on_stop(self) -> None:
                with trio.CancelScope(shield=True):
                    self.log.append(await other.ask("stopping"))

        asker = Asker()
        ref = system.spawn(asker)
        assert await ref.ask("running") == "running"
        await ref.stop()
        assert asker.log == ["starting", "running", "stopping"]


async def test_a_chain_of_asks_is_answered(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        refs = [system.spawn(Puppet())]

        def passing_on(depth: int) -> Any:
            async def run(_me: Actor) -> int:
                if depth == 0:
                    return 0
                answer: int = await refs[depth - 1].ask(passing_on(depth - 1))
                return answer + 1

            return run

        refs.extend(system.spawn(Puppet()) for _ in range(300))
        assert await refs[300].ask(passing_on(300)) == 300


async def test_a_burst_lets_others_run(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        ref = system.spawn(puppet, mailbox=MailboxConfig(capacity=10_000))
        other = system.spawn(Probe(lambda _message: len(puppet.log)))
        ref.tell(wait(1))
        for number in range(5000):
            ref.tell(number)
        await trio.sleep(1)
        assert await other.ask("how far?") <= 4 * BATCH
        await wait_settled(system)
        assert len(puppet.log) == 5002


async def test_a_stale_place_on_the_queue_is_no_matter(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        probe = Probe()
        ref = system.spawn(probe)
        ref.tell("one")
        ref.kill()  # it stands on the run queue
        again = system.spawn(Puppet(), name=ref.name)
        again.tell(partial(Puppet.stop))
        await wait_settled(system)
        assert probe.received == []
        assert system.statistics().run_queue == 0


async def test_what_trio_has_seen_to_begins_a_new_turn() -> None:
    pump = Dispatcher(print)
    pump.open()
    assert not pump.spend(MESSAGES_PER_TURN)
    assert not pump.spend(1)
    await trio.lowlevel.checkpoint()
    assert pump.spend(1)
    pump.close()


async def test_an_interrupt_where_a_turn_ends_leaves_it_able_to_begin_anew() -> None:
    pump = Dispatcher(print)
    pump.open()

    def interrupt(frame: FrameType, _event: str, _arg: object) -> None:
        if frame.f_code is trio.lowlevel.add_instrument.__code__:
            sys.settrace(None)
            raise KeyboardInterrupt

    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            pump.spend(MESSAGES_PER_TURN)
    finally:
        sys.settrace(before)
    assert not pump.spend(1)
    await trio.lowlevel.checkpoint()
    assert pump.spend(1)
    pump.close()


@pytest.mark.parametrize("takes", [0.0, 1.0])
async def test_an_idle_actor_keeps_no_line_of_what_waited(
    autojump_clock: MockClock, takes: float
) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        ref = system.spawn(puppet)
        for _ in range(3):
            ref.tell(wait(takes) if takes else "at once")
        assert puppet._cell.mailbox.rest
        await wait_settled(system)
        await trio.sleep(10)
        assert len(puppet.log) == 4  # and its start
        assert puppet._cell.mailbox.rest is None
