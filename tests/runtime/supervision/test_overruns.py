"""Proves that the operator is told rightly whether an actor got over an overrun."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from runtime.actor.actor import Actor
from runtime.actor.messages import Keyed
from runtime.supervision.child import ChildSpec
from runtime.supervision.keyed import KeyedConfig, KeyedSupervisor
from runtime.supervision.restarts import Backoff
from runtime.supervision.supervisor import Supervisor, SupervisorConfig
from runtime.testing import Reports
from tests.support.puppet import Puppet, be_deaf, hang, virtual


async def clean_up(_me: Actor) -> None:
    """Take half a second to end when it is cancelled."""
    try:
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True):
            await trio.sleep(0.5)


def swallow_for(seconds: float) -> Any:
    """Make a message that ends by itself after so long, whoever cancels it."""

    async def run(_me: Actor) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(seconds)

    return run


@pytest.mark.parametrize(
    ("order", "back_off", "action"),
    [
        (swallow_for(11), 0.0, "recovered"),
        (hang, 0.0, "recovered"),
        (hang, 50.0, "not_recovered"),
    ],
    ids=["ends in time", "restarted", "waits for its restart"],
)
async def test_the_recovery_from_an_overrun_is_verified(
    order: Any, back_off: float, action: str, autojump_clock: MockClock
) -> None:
    reports = Reports()
    async with virtual(autojump_clock, reports) as system:
        config = SupervisorConfig(backoff=Backoff(first=back_off))
        specs = [ChildSpec(name="child", start=Puppet)]
        await system.start_root(Supervisor(specs, config))
        ref = system.find("root/child")
        assert ref is not None
        ref.ask(order)
        await trio.sleep(100)
        assert system.statistics().watchdog["Puppet", action] == 1
        told = reports.of("actor did not recover")
        assert bool(told) is (action == "not_recovered")


@pytest.mark.parametrize(
    ("order", "killed_at"),
    [(clean_up, 9.8), (be_deaf, 9.8), (clean_up, 10.2), (be_deaf, 10.2)],
)
async def test_a_kill_stays_one_whatever_the_deadline_says(
    order: Any, killed_at: float, autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        ref = system.spawn(puppet)
        ref.tell(order)
        await trio.sleep(killed_at)
        ref.kill()
        await trio.sleep(10)
        exit_ = ref.final_exit
        assert exit_ is not None
        assert exit_.how == "killed"
        assert puppet.log == ["start"]


async def test_who_takes_too_long_to_fall_asleep_sleeps_all_the_same(
    autojump_clock: MockClock,
) -> None:
    started: list[float] = []

    class Restless(Puppet):
        deadline = 1.0

        def on_start(self) -> None:
            started.append(trio.current_time())

        async def on_stop(self) -> None:
            await trio.sleep_forever()

    reports = Reports()
    async with virtual(autojump_clock, reports) as system:
        keyed = KeyedSupervisor(lambda _key: Restless(), KeyedConfig(idle_after=2.0))
        keys = system.spawn(keyed, name="keys")
        assert await keys.ask(Keyed("ann", "x")) == "x"
        await trio.sleep(60)
        assert started == [0]
        assert system.find("keys/ann") is None
        assert len(reports.of("hook past its deadline, cancelled")) == 1
        assert await keys.ask(Keyed("ann", "y")) == "y"
