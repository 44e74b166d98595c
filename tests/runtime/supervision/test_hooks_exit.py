"""Proves that a hook may end the program, and that the end is in order all the same."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from runtime.actor.actor import Actor
from runtime.actor.messages import Keyed
from runtime.supervision.child import ChildSpec
from runtime.supervision.keyed import KeyedConfig, KeyedSupervisor
from runtime.supervision.supervisor import StartChild, Supervisor
from runtime.system import ActorSystem
from tests.support.puppet import Puppet, virtual


class Leaver(Actor):
    """Ends the program in one of its hooks.

    Args:
        where: the hook, and whether it waits before.
    """

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def _act(self, here: str) -> Any:
        if here == self.where:
            raise SystemExit(3)
        return self._act_late() if f"late {here}" == self.where else None

    async def _act_late(self) -> None:
        await trio.sleep(1)
        raise SystemExit(3)

    def on_start(self) -> Any:
        return self._act("on_start")

    def on_stop(self) -> Any:
        return self._act("on_stop")


async def start(system: ActorSystem, where: str, how: str) -> None:
    match how:
        case "child":
            spec = ChildSpec(name="leaver", start=lambda: Leaver(where))
            root = await system.start_root(Supervisor())
            root.tell(StartChild(spec))
        case "keyed":
            keyed = KeyedSupervisor(lambda _key: Leaver(where), KeyedConfig())
            system.spawn(keyed).tell(Keyed("leaver", "wake"))
        case _:
            system.spawn(Leaver(where))


@pytest.mark.parametrize("how", ["child", "keyed", "alone"])
@pytest.mark.parametrize(
    "where", ["on_start", "late on_start", "on_stop", "late on_stop"]
)
async def test_a_hook_may_end_the_program(
    where: str, how: str, autojump_clock: MockClock
) -> None:
    other = Puppet()

    async def run() -> None:
        async with virtual(autojump_clock) as system:
            system.spawn(other)
            await start(system, where, how)
            await trio.sleep(10)

    with pytest.raises(SystemExit):
        await run()
    assert other.log == ["start", "stop"]
