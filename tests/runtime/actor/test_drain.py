"""Proves that a stop that drains has all that waits handled, whatever comes between."""

from __future__ import annotations

from functools import partial
from typing import Any

from trio.testing import MockClock

from runtime.actor.ref import ActorRef
from runtime.supervision.child import ChildSpec
from runtime.supervision.restarts import Backoff, RestartKind
from runtime.supervision.supervisor import Supervisor, SupervisorConfig
from runtime.system import ActorSystem
from runtime.testing import CrashError, wait_settled
from tests.support.puppet import Puppet, crash, do, virtual


class CrashingOnce(Puppet):
    """Fails at its first 'bad' message."""

    def on_receive(self, message: Any) -> Any:
        if message == "bad" and "failure" not in self.log:
            raise CrashError("to order")
        return super().on_receive(message)


async def child_of(
    system: ActorSystem, log: list[Any], restart: RestartKind = "permanent"
) -> ActorRef:
    spec = ChildSpec(name="child", start=partial(CrashingOnce, log), restart=restart)
    config = SupervisorConfig(intensity=10, backoff=Backoff(first=1.0))
    await system.start_root(Supervisor([spec], config))
    ref = system.find("root/child")
    assert ref is not None
    return ref


async def test_a_failure_does_not_end_a_drain(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        ref = await child_of(system, log)
        for word in ("bad", "good 1", "good 2"):
            ref.tell(word)
        assert await ref.stop(drain=True)
        assert log == ["start", "failure", "start", "bad", "good 1", "good 2", "stop"]
        assert system.dead_letters.counts == {}
        assert not ref.is_alive()


async def test_who_waits_for_its_restart_drains_then(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        ref = await child_of(system, log)
        ref.tell(do(lambda me: None if "failure" in log else crash(me)))
        ref.tell("good")
        await wait_settled(system)
        assert ref.is_down()
        assert await ref.stop(drain=True)
        assert log == ["start", "failure", "start", "good", "stop"]
        assert system.dead_letters.counts == {}


async def test_a_drain_is_answered_if_nobody_is_left_to_drain(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        for restart in ("temporary", "permanent"):
            log: list[Any] = []
            ref = (
                await child_of(system, log, "temporary")
                if restart == "temporary"
                else system.spawn(CrashingOnce(log))
            )
            ref.tell("bad")
            ref.tell("good")
            assert await ref.stop(drain=True)
            assert log == ["start", "failure"]
            assert not ref.is_alive()
        assert system.dead_letters.counts == {"failed": 4}


async def test_a_stop_at_once_overtakes_a_drain(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        ref = await child_of(system, log)
        ref.tell("good")
        drained, stopped = ref.stop(drain=True), ref.stop()
        assert (await drained, await stopped) == (True, True)
        assert log == ["start", "stop"]
        assert not ref.is_alive()
        assert await ref.stop(drain=True) is False
