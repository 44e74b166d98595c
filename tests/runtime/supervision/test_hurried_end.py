"""Proves that an end does not wait for starts that are under way."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from runtime.errors import StartError
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import (
    RenewChild,
    StartChild,
    Supervisor,
    SupervisorConfig,
)
from tests.support.puppet import Puppet, crash, virtual


class SlowAgain(Puppet):
    """Starts at once the first time, and then takes almost half a minute."""

    async def on_start(self) -> None:
        self.log.append("start")
        if self.log.count("start") > 1:
            await trio.sleep(29)
            self.log.append("up")


class SlowToStop(Puppet):
    """Takes three seconds to stop."""

    async def on_stop(self) -> None:
        await trio.sleep(3)


def slow_again(log: list[Any]) -> ChildSpec:
    return ChildSpec(name="slow", start=partial(SlowAgain, log))


@pytest.mark.parametrize("depth", [0, 1])
async def test_an_end_does_not_wait_for_a_restart(
    depth: int, autojump_clock: MockClock
) -> None:
    log: list[Any] = []
    async with virtual(autojump_clock) as system:
        specs = [slow_again(log)]
        for _ in range(depth):
            below = partial(Supervisor, specs)
            specs = [ChildSpec(name="below", start=below)]
        await system.start_root(Supervisor(specs))
        name = "/".join(["root", *["below"] * depth, "slow"])
        ref = system.find(name)
        assert ref is not None
        ref.tell(crash)
        await trio.sleep(1)
    assert trio.current_time() < 10
    assert log == ["start", "failure", "start"]


async def test_an_end_during_a_restart_of_a_group_starts_nobody(
    autojump_clock: MockClock,
) -> None:
    log: list[Any] = []
    async with virtual(autojump_clock) as system:
        specs = [slow_again(log), ChildSpec(name="last", start=SlowToStop)]
        config = SupervisorConfig(strategy="one_for_all")
        await system.start_root(Supervisor(specs, config))
        ref = system.find("root/slow")
        assert ref is not None
        ref.tell(crash)
        await trio.sleep(1)  # now the last one stops
    assert trio.current_time() < 10
    assert log.count("up") == 0


@pytest.mark.parametrize("kind", [StartChild, RenewChild])
async def test_who_asked_for_a_start_hears_why_it_was_given_up(
    kind: Any, autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        boss = system.spawn(Supervisor())
        asked = boss.ask(kind(slow_again(["start"])))
        await trio.sleep(1)
        await boss.stop()
        with pytest.raises(StartError, match="asked to end"):
            await asked
        assert trio.current_time() < 10
