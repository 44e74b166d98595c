"""Proves how a system opens, ends, and what it tells of itself."""

from __future__ import annotations

import os
import signal
import threading
from functools import partial
from typing import Any

import pykka
import pytest
import trio
from trio.testing import MockClock

import runtime
from runtime.actor import lifecycle
from runtime.actor.actor import Actor
from runtime.actor.cell import Cell
from runtime.actor.kernel import Kernel
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Exit
from runtime.actor.ref import cell_of
from runtime.errors import (
    DeclineStart,
    KernelError,
    MisuseError,
    ProgramEndError,
    StartError,
)
from runtime.signals import STOP_SIGNALS, wait_for_stop_signal
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import Supervisor
from runtime.supervision.watchdog import Watchdog, WatchdogConfig
from runtime.system import (
    AT_ONCE,
    ActorSystem,
    Running,
    SystemConfig,
    log_report,
    open_system,
)
from runtime.testing import CrashError, Reports, open_test_system, wait_settled
from tests.support.puppet import Puppet, crash, hang, supervise, virtual, wait


async def test_names_are_unique(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet(), name="anna")
        assert system.find("anna") is ref
        assert system.find("bert") is None
        with pytest.raises(MisuseError, match="already"):
            system.spawn(Puppet(), name="anna")
        assert system.spawn(Puppet()).name != system.spawn(Puppet()).name


async def test_an_actor_is_spawned_once(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        await system.spawn(puppet).stop()
        with pytest.raises(MisuseError, match="started before"):
            system.spawn(puppet)


NO_ACTORS = [
    (Puppet, "Puppet is a class, not an actor of it: give Puppet\\(…\\)"),
    (lambda: 7, "is a function, not an actor: give what it returns"),
    (7, "7 is no actor: derive its class from runtime.Actor"),
]


@pytest.mark.parametrize(("given", "says"), NO_ACTORS)
async def test_what_is_no_actor_is_refused_in_words(
    given: Any, says: str, autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        with pytest.raises(MisuseError, match=says):
            system.spawn(given)
        with pytest.raises(MisuseError, match=says):
            await system.start_root(given)
        wrong = Supervisor([ChildSpec(name="child", start=lambda: given)])
        with pytest.raises(StartError, match=f"child 'child' did not start: .*{says}"):
            await system.start_root(wrong)
        assert not system.actors()


class Broken(Puppet):
    """Does not start.

    Args:
        error: what it raises instead.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def on_start(self) -> Any:
        raise self.error


async def test_a_start_that_fails_at_once_is_raised(
    autojump_clock: MockClock,
) -> None:
    error = CrashError("x")
    async with virtual(autojump_clock) as system:
        with pytest.raises(CrashError):
            system.spawn(Broken(error), name="broken")
        assert system.find("broken") is None
        with pytest.raises(CrashError):
            await system.start_root(as_supervisor(Broken(error)))


async def test_a_start_may_end_the_program(autojump_clock: MockClock) -> None:
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012  the block is what raises
        async with virtual(autojump_clock) as system:
            with pytest.raises(ProgramEndError):
                system.spawn(Broken(KeyboardInterrupt()), name="broken")
            assert system.find("broken") is None


def as_supervisor(actor: Any) -> Any:
    """Pass any actor for a supervisor: the kernel does not look."""
    return actor


async def test_a_start_that_fails_later_is_reported(autojump_clock: MockClock) -> None:
    class Late(Puppet):
        async def on_start(self) -> None:
            await trio.sleep(1)
            raise CrashError("late")

    reports = Reports()
    async with virtual(autojump_clock, reports) as system:
        ref = system.spawn(Late())
        asked = ref.ask("waits")
        with pytest.raises(pykka.ActorDeadError):
            await asked
    assert [fields["actor"] for fields in reports.of("actor failed")] == [ref.name]


async def test_who_is_killed_or_stopped_while_starting_is_gone(
    autojump_clock: MockClock,
) -> None:
    class Slow(Puppet):
        async def on_start(self) -> None:
            await trio.sleep(1)

    async with virtual(autojump_clock) as system:
        killed, stopped, interrupted = (system.spawn(Slow()) for _ in range(3))
        await trio.sleep(0.5)
        killed.kill()
        ended = stopped.stop()
        interrupted.interrupt()
        assert {a.state for a in system.actors()} == {"starting"}
        assert [a.busy_for for a in system.actors()] == [0.0] * 3
        assert await ended
        await wait_settled(system)
        assert not killed.is_alive()
        assert interrupted.is_alive()


async def test_a_system_has_one_root(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        await supervise(system, Puppet)
        with pytest.raises(MisuseError, match="one root"):
            await system.start_root(Supervisor())
        assert system.root is not None
        await system.root.stop()
        await system.wait_ended()


async def test_a_root_that_cannot_start_says_so(autojump_clock: MockClock) -> None:
    class Broken(Puppet):
        async def on_start(self) -> None:
            raise DeclineStart("not today")

    async with virtual(autojump_clock) as system:
        with pytest.raises(DeclineStart):
            await system.start_root(as_supervisor(Broken()))
        assert system.root is None
        assert system.find("root") is None


async def test_a_root_that_is_cancelled_while_starting_ends_in_order(
    autojump_clock: MockClock,
) -> None:
    class Slow(Puppet):
        async def on_start(self) -> None:
            await trio.sleep(3)
            self.log.append("up")

    slow = Slow()
    async with virtual(autojump_clock) as system:
        with trio.move_on_after(1):
            await system.start_root(as_supervisor(slow))
    assert slow.log == ["up", "stop"]


async def test_a_failed_root_is_the_error(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        (ref,) = await supervise(system, Puppet, intensity=0)
        ref.tell(crash)
        with pytest.raises(KernelError, match="root supervisor failed"):
            await system.wait_ended()


async def test_an_error_of_the_block_comes_out_as_it_is() -> None:
    with pytest.raises(CrashError):
        async with open_system():
            raise CrashError("as it is")


async def test_who_does_not_stop_is_killed_then_left_behind(
    autojump_clock: MockClock,
) -> None:
    async def be_deaf_for_long(_me: Actor) -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(60)

    async with virtual(autojump_clock) as system:
        system.spawn(Puppet()).tell(be_deaf_for_long)
        asked = system.spawn(Puppet()).ask(hang)
        await trio.sleep(0.1)
    with pytest.raises(pykka.ActorDeadError):
        await asked
    assert 60 <= autojump_clock.current_time() < 61


async def test_nobody_is_spawned_while_the_system_ends(
    autojump_clock: MockClock,
) -> None:
    class Heir(Puppet):
        def on_stop(self) -> None:
            system.spawn(Puppet(), name="heir")

    reports = Reports()
    async with virtual(autojump_clock, reports) as system:
        system.spawn(Heir())
    assert "nobody can be spawned" in str(reports.of("actor failed")[0]["error"])
    assert system.find("heir") is None


async def test_orphans_are_ended_too(autojump_clock: MockClock) -> None:
    class Parent(Puppet):
        def on_start(self) -> None:
            self.child = Cell(self._cell.kernel, "orphan", Puppet, Puppet, self._cell)
            self._cell.kernel.names["orphan"] = self.child
            lifecycle.start(self.child)

    async with virtual(autojump_clock) as system:
        parent = system.spawn(Parent())
        assert [a.supervisor for a in system.actors()] == ["", parent.name]
        await parent.stop()
        assert [a.name for a in system.actors()] == ["orphan"]
        system.spawn(Puppet())
    assert system.actors() == []


async def test_idle_actors_end_last_first_without_a_turn_for_each() -> None:
    class Turns(trio.abc.Instrument):
        count = 0

        def after_io_wait(self, timeout: float) -> None:
            self.count += timeout >= 0

    class Noting(Puppet):
        def on_stop(self) -> None:
            ended.append(self.actor_urn)

    ended: list[str] = []
    turns = Turns()
    async with open_system() as system:
        names = [system.spawn(Noting()).name for _ in range(2000)]
        trio.lowlevel.add_instrument(turns)
    trio.lowlevel.remove_instrument(turns)
    assert ended == names[::-1]
    assert 2000 // AT_ONCE <= turns.count < 100


async def test_a_hook_that_waits_is_waited_for_before_the_next_one_ends(
    autojump_clock: MockClock,
) -> None:
    class Slow(Puppet):
        async def on_stop(self) -> None:
            await trio.sleep(1)
            ended.append(self.actor_urn)

    ended: list[str] = []
    async with virtual(autojump_clock) as system:
        system.spawn(Slow(), name="first")
        system.spawn(Slow(), name="second")
    assert ended == ["second", "first"]
    assert autojump_clock.current_time() == pytest.approx(2)


async def test_actors_tell_what_they_do(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet(), mailbox=MailboxConfig(max_bytes=100))
        ref.tell(wait(2))
        await trio.sleep(1)
        ref.tell("four")
        (one,) = system.actors()
        assert (one.kind, one.state, one.depth, one.weight) == (
            "Puppet",
            "running",
            1,
            4,
        )
        assert one.busy_for == pytest.approx(1)
        assert one.age == pytest.approx(1)
        assert not one.is_idle
        await wait_settled(system)
        assert system.statistics().handled == 2
        await ref.stop()
        figures = system.statistics()
        assert (figures.actors, figures.handled, figures.handled_by) == (
            0,
            2,
            {"Puppet": 2},
        )


async def test_a_handler_that_exits_in_a_task_ends_the_program(
    autojump_clock: MockClock,
) -> None:
    async def leave(_me: Actor) -> None:
        await trio.sleep(1)
        raise KeyboardInterrupt

    def leave_later(me: Puppet) -> None:
        me.stash()
        me.unstash()
        raise SystemExit(1)

    async def run(handler: Any) -> None:
        async with virtual(autojump_clock) as system:
            asked = system.spawn(Puppet()).ask(handler)
            with pytest.raises(pykka.ActorDeadError):
                await asked
            await trio.sleep_forever()

    for handler in (leave, leave_later):
        with pytest.raises((KeyboardInterrupt, SystemExit)):
            await run(handler)


async def test_control_c_ends_the_block_in_order(autojump_clock: MockClock) -> None:
    puppet = Puppet()

    async def run() -> None:
        async with virtual(autojump_clock) as system:
            system.spawn(puppet)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await run()
    assert puppet.log == ["start", "stop"]


async def test_a_kernel_that_broke_is_not_waited_for() -> None:
    async def run() -> None:
        async with open_system() as system:
            ref = system.spawn(Puppet())
            system.kernel.timers.call_in(0, partial(int, "no number"))
            await ref.ask(hang)

    with pytest.raises(BaseExceptionGroup) as broken:
        await run()
    assert broken.group_contains(ValueError)


async def test_a_kernel_is_crashed_without_a_program() -> None:
    kernel = Kernel(1.0, Reports())
    kernel.crash(SystemExit(1))
    kernel.crash(SystemExit(2))
    assert str(kernel.fatal) == "1"
    assert kernel.now() == 0.0
    assert 0 <= kernel.roll() < 1
    assert not kernel.on_kernel_thread
    system = ActorSystem(kernel)
    with pytest.raises(MisuseError, match="not open"):
        lifecycle.start_task(Cell(kernel, "x", None, Puppet), trio.sleep, 0)
    await Running(kernel).close(system)


def test_reports_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    log_report("actor failed", {"actor": "anna", "error": CrashError("to order")})
    log_report("actor restarts", {"actor": "anna", "after": 1.0})
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


@pytest.mark.parametrize("number", STOP_SIGNALS)
async def test_a_signal_asks_to_stop(number: signal.Signals) -> None:
    async with trio.open_nursery() as nursery:

        async def wait_for_it() -> None:
            assert await wait_for_stop_signal() is number
            nursery.cancel_scope.cancel()

        nursery.start_soon(wait_for_it)
        await trio.testing.wait_all_tasks_blocked()
        os.kill(os.getpid(), number)
        await trio.sleep_forever()


def test_the_public_names_are_sorted_and_there() -> None:
    names = runtime.__all__
    assert sorted(names) == list(names)
    for name in names:
        assert getattr(runtime, name) is not None
    assert issubclass(StartError, KernelError)
    missing = "NoSuchName"
    with pytest.raises(AttributeError, match="NoSuchName"):
        getattr(runtime, missing)


async def test_any_actor_may_be_the_root(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        ref = await system.start_root(as_supervisor(Puppet()))
        assert await ref.ask("hello") == "hello"


async def test_who_waits_for_a_restart_can_be_stopped(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        (ref,) = await supervise(system, Puppet)
        for _ in range(2):
            ref.kill()
            await wait_settled(system)
        assert [a.state for a in system.actors()] == ["running", "down"]
        assert await ref.stop()
        assert not ref.is_alive()


async def test_whatever_holds_an_actor_the_system_ends(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet())
        cell_of(ref).state = "stopping"  # and nothing ever ends it
    assert not ref.is_alive()
    assert autojump_clock.current_time() == pytest.approx(15)


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_system_whose_opening_is_cancelled_ends(
    *, is_late: bool, autojump_clock: MockClock
) -> None:
    del autojump_clock
    opened: list[ActorSystem] = []
    with trio.CancelScope() as scope:
        if is_late:
            trio.lowlevel.current_trio_token().run_sync_soon(scope.cancel)
        else:
            scope.cancel()
        async with open_system() as system:
            opened.append(system)
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert opened[0].actors() == []


async def test_a_name_that_is_made_up_is_nobodys(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        first = system.spawn(Puppet(), name="Puppet-1")
        names = {system.spawn(Puppet()).name for _ in range(3)}
        assert len(names | {first.name}) == 4


async def test_the_root_takes_nobodys_name(autojump_clock: MockClock) -> None:
    keeper = Puppet()
    async with virtual(autojump_clock) as system:
        system.spawn(keeper, name="root")
        with pytest.raises(MisuseError, match="there is an actor 'root' already"):
            await system.start_root(Supervisor())
    assert keeper.log == ["start", "stop"]


async def test_no_root_is_started_in_a_system_that_ends(
    autojump_clock: MockClock,
) -> None:
    refused: list[str] = []

    class Late(Puppet):
        async def on_stop(self) -> None:
            with pytest.raises(MisuseError, match="closing") as error:
                await system.start_root(Supervisor())
            refused.append(str(error.value))

    async with virtual(autojump_clock) as system:
        system.spawn(Late())
    assert len(refused) == 1


async def test_a_watchdog_that_cannot_start_is_the_openers_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_watchdog: Watchdog) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Watchdog, "start", refuse)
    with trio.fail_after(60), pytest.raises(RuntimeError, match="new thread"):
        async with open_system(SystemConfig(watchdog=WatchdogConfig())):
            pytest.fail("it was opened")


@pytest.mark.parametrize("by", ["a task", "a thread"])
def test_ctrl_c_while_the_system_ends_neither_hangs_nor_hurries_it(by: str) -> None:
    """In a handler's hook, or while everybody waits for it."""
    log: list[str] = []

    class Slow(Puppet):
        async def on_stop(self) -> None:
            if by == "a task":
                signal.raise_signal(signal.SIGINT)
            else:
                main = threading.main_thread().ident
                assert main is not None
                await trio.to_thread.run_sync(signal.pthread_kill, main, signal.SIGINT)
            for _ in range(100):
                await trio.lowlevel.checkpoint()
            log.append("slow")

    class Keeper(Puppet):
        def on_stop(self) -> None:
            log.append("keeper")

    async def live() -> None:
        async with open_test_system() as system:
            system.spawn(Keeper())
            system.spawn(Slow())

    with pytest.raises(KeyboardInterrupt):
        trio.run(live)
    assert log == ["slow", "keeper"]


class Slow(Puppet):
    """Suspends in each hook; fails at its start where its log says something."""

    async def on_start(self) -> None:
        await trio.lowlevel.checkpoint()
        if self.log:
            raise CrashError("to order")

    async def on_stop(self) -> None:
        await trio.lowlevel.checkpoint()


def test_ctrl_c_reaches_no_line_of_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keeper, bury = Puppet(), lifecycle.bury

    def press(cell: Cell, exit_: Exit) -> None:
        if cell.name == "slow":
            signal.raise_signal(signal.SIGINT)
        bury(cell, exit_)

    async def live(log: list[Any]) -> None:
        async with open_test_system() as system:
            system.spawn(keeper)
            await system.spawn(Slow(log), name="slow").stop()
            await trio.sleep_forever()

    monkeypatch.setattr(lifecycle, "bury", press)
    for log in ([], ["fail"]):
        keeper = Puppet()
        with pytest.raises(KeyboardInterrupt):
            trio.run(live, log)
        assert keeper.log == ["start", "stop"]
