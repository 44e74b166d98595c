"""Proves the promises of `runtime/SEMANTICS.md`, one test per number: systems."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pykka
import pytest
import trio
from trio.testing import MockClock

from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Keyed
from runtime.actor.ref import ActorRef
from runtime.errors import KernelError, MisuseError, StartError
from runtime.supervision.child import ChildSpec
from runtime.supervision.keyed import KeyedConfig, KeyedSupervisor, KeyGivenUp
from runtime.supervision.restarts import RestartKind
from runtime.supervision.supervisor import StopChild, Supervisor, SupervisorConfig
from runtime.supervision.watchdog import WatchdogConfig
from runtime.system import ActorSystem, SystemConfig, open_system
from runtime.testing import CrashError, Probe, Reports, wait_settled
from tests.support.puppet import Puppet, be_deaf, crash, hang, supervise, virtual, wait


async def test_p31_crash_is_a_failure_like_any(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        idle_log: list[Any] = []
        busy_log: list[Any] = []
        makes = partial(Puppet, idle_log), partial(Puppet, busy_log)
        idle, busy = await supervise(system, *makes)
        busy.tell(hang)
        await trio.sleep(1)
        for ref in (idle, busy):
            ref.crash(CrashError("by hand"))
        await trio.sleep(1)
        assert idle_log == ["start", "failure", "start"]
        assert busy_log == ["start", "start"]
        ends = {each.name: each.last_end for each in system.actors()}
        assert ends[idle.name] == "CrashError: by hand"
        assert ends[busy.name] == "killed"


async def test_p18_children_stop_in_reverse(autojump_clock: MockClock) -> None:
    log: list[Any] = []

    class Named(Puppet):
        def on_start(self) -> Any:
            log.append(f"start {self.actor_urn[-1]}")

        def on_stop(self) -> Any:
            log.append(f"stop {self.actor_urn[-1]}")

    async with virtual(autojump_clock) as system:
        await supervise(system, Named, Named, Named)
    starts = ["start 0", "start 1", "start 2"]
    assert log == [*starts, "stop 2", "stop 1", "stop 0"]


async def test_p19_too_many_restarts_fail_the_supervisor(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        (ref,) = await supervise(system, Puppet, intensity=1)
        ref.tell(crash)
        with pytest.raises(KernelError):
            await system.wait_ended()
        assert not ref.is_alive()


async def test_p20_a_key_is_woken_and_sleeps(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        config = KeyedConfig(idle_after=10)
        ref = system.spawn(KeyedSupervisor(lambda _key: Puppet(log), config))
        assert await ref.ask(Keyed("anna", "hello")) == "hello"
        await trio.sleep(20)
        assert log == ["start", "hello", "stop"]
        ref.tell(Keyed("anna", "again"))
        await wait_settled(system)
        assert log[3:] == ["start", "again"]


async def test_p21_a_key_is_given_up_alone(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        owner = Probe()
        ref = system.spawn(
            KeyedSupervisor(lambda _key: Puppet(), KeyedConfig(), system.spawn(owner))
        )
        await ref.ask(Keyed("bert", "hello"))
        for _ in range(2):
            ref.tell(Keyed("anna", crash))
        given_up = await owner.wait_for(KeyGivenUp)
        assert given_up.key == "anna"
        bert = system.find(f"{ref.name}/bert")
        assert bert is not None


async def test_p22_timers_belong_to_an_incarnation(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        (ref,) = await supervise(system, partial(Puppet, log))

        def arm(me: Puppet) -> None:
            me.after(5, "void")
            me.after(5, "survives", survives_restart=True)
            me.every(2, "tick", survives_restart=True)

        await ref.ask(arm)
        ref.kill()
        await trio.sleep(1)
        ref.tell(wait(6))
        await trio.sleep(6.5)
        assert log == ["start", "start", "waited", "tick", "survives"]


async def test_p23_a_flooded_actor_lets_others_have_their_turn(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        counted, seen = list[int](), list[int]()

        def plain(_me: Actor) -> None:
            counted.append(1)

        async def swift(_me: Actor) -> None:
            counted.append(1)

        other = system.spawn(Probe(lambda _message: seen.append(len(counted))))
        for message in (plain, swift):
            counted.clear()
            flood = system.spawn(Puppet(), mailbox=MailboxConfig(capacity=1000))
            for _ in range(1000):
                flood.tell(message)
            other.tell("how many?")
            await wait_settled(system)
        assert seen[0] == 64
        assert seen[1] <= 64


async def test_p24_threads_may_send() -> None:
    async with open_system() as system:
        puppet = Puppet()
        ref = system.spawn(puppet)

        def run() -> None:
            for number in range(100):
                ref.tell(number)
            assert ref.ask("asked") == "asked"
            assert ref.stop() is True
            assert ref.stop() is False

        await trio.to_thread.run_sync(run)
        assert puppet.log == ["start", *range(100), "asked", "stop"]
    with pytest.raises(pykka.ActorDeadError):
        await trio.to_thread.run_sync(ref.tell, "late")


async def test_p25_nothing_blocks_the_kernel(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet())
        reply = ref.ask("asked")
        with pytest.raises(MisuseError, match="await"):
            reply.get(timeout=0.1)  # real seconds, should it block all the same
        with pytest.raises(MisuseError, match="await"):
            reply.get()
        assert await reply == "asked"
        assert reply.get() == "asked"


async def test_p26_a_cancelled_block_ends_in_order(autojump_clock: MockClock) -> None:
    log: list[Any] = []
    with trio.CancelScope() as scope:
        async with virtual(autojump_clock) as system:
            await supervise(system, lambda: Slow("tree", log))
            first, last = (system.spawn(Slow(name, log)) for name in ("a", "b"))
            first.tell(wait(1, "finished"))
            last.tell(hang)
            await trio.sleep(0.5)
            scope.cancel()
    assert log == ["finished", "tree saved", "a saved"]


class Slow(Puppet):
    """Takes a second to save, and may not be spoken to meanwhile."""

    def __init__(self, name: str, log: list[Any]) -> None:
        super().__init__(log)
        self.name = name

    def on_start(self) -> Any:
        return None

    async def on_stop(self) -> None:
        await trio.sleep(1)
        self.log.append(f"{self.name} saved")


async def test_p27_a_handler_may_end_the_program(autojump_clock: MockClock) -> None:
    puppet, other = Puppet(), Puppet()

    def leave(_me: Actor) -> None:
        raise SystemExit(3)

    async def run() -> None:
        async with virtual(autojump_clock) as system:
            system.spawn(other)
            system.spawn(puppet).tell(leave)
            await trio.sleep_forever()

    with pytest.raises(SystemExit):
        await run()
    assert other.log == ["start", "stop"]


async def test_p28_the_watchdog_breaks_a_busy_handler_off() -> None:
    def spin(_me: Actor) -> None:
        while True:
            pass

    reports = Reports()
    config = SystemConfig(watchdog=WatchdogConfig(period=0.02, limit=0.05))
    async with open_system(config, report=reports) as system:
        ref = system.spawn(Puppet(), name="spinner")
        ref.tell(spin)
        assert await ref.stop(drain=True)
    (blocked,) = reports.of("the loop is blocked")[:1]
    assert blocked["actor"] == "spinner"
    assert Path(__file__).name in blocked["where"]
    assert system.statistics().watchdog["Puppet", "broken_off"] == 1


async def test_p29_a_group_is_restarted_together(autojump_clock: MockClock) -> None:
    log: list[Any] = []
    names = ("a", "gone", "b", "once", "c")
    kinds: dict[str, RestartKind] = {"gone": "transient", "once": "temporary"}
    specs = [
        ChildSpec(
            name=name,
            start=partial(Named, name, log),
            restart=kinds.get(name, "permanent"),
        )
        for name in names
    ]
    async with virtual(autojump_clock) as system:
        config = SupervisorConfig(strategy="one_for_all")
        root = await system.start_root(Supervisor(specs, config))
        first, gone, broken = (child(system, name) for name in ("a", "gone", "b"))
        gone.tell(Puppet.stop)
        await root.ask(StopChild("a"))
        log.clear()
        broken.tell(crash)
        await wait_settled(system)
        downs, ups = log[:3], log[3:]
        assert downs == ["failure", "c down", "once down"]
        assert ups[:2] == ["a up", "gone up"]
        assert "once up" not in ups
        assert not first.is_alive()
        assert system.find("root/a") is not None


class Named(Puppet):
    """Writes its name down when it comes and goes."""

    def __init__(self, name: str, log: list[Any]) -> None:
        super().__init__(log)
        self.name = name

    def on_start(self) -> None:
        self.log.append(f"{self.name} up")

    def on_stop(self) -> None:
        self.log.append(f"{self.name} down")


def child(system: ActorSystem, name: str) -> ActorRef:
    ref = system.find(f"root/{name}")
    assert ref is not None
    return ref


async def test_p30_a_hook_past_its_deadline(autojump_clock: MockClock) -> None:
    class Stuck(Puppet):
        def on_stop(self) -> Any:
            return hang(self)

        def on_failure(
            self, exception_type: Any, exception_value: Any, traceback: Any
        ) -> Any:
            del exception_type, exception_value, traceback
            return be_deaf(self)

    async with virtual(autojump_clock) as system:
        polite, rude = system.spawn(Stuck()), system.spawn(Stuck())
        rude.tell(crash)
        assert await polite.stop()
        assert trio.current_time() == pytest.approx(10, abs=0.1)
        assert rude.is_alive()
        await trio.sleep(5.1)
        assert not rude.is_alive()
        with pytest.raises(StartError):
            await supervise(system, Late)
        assert trio.current_time() == pytest.approx(45.1, abs=0.3)


class Late(Puppet):
    """Takes for ever to start."""

    def on_start(self) -> Any:
        return hang(self)
