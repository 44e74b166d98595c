"""Proves that a mistake in one actor, hook or stranger's function is only its own."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pykka
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from runtime import ActorRef, ChildSpec
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Keyed
from runtime.errors import DeadlineError, KernelError, MisuseError, StartError
from runtime.supervision.keyed import KeyedConfig, KeyedSupervisor, KeyGivenUp
from runtime.supervision.watchdog import WatchdogConfig
from runtime.system import SystemConfig, open_system
from runtime.testing import CrashError, Probe, Reports, wait_settled
from tests.support.keyed_bed import STEADY, Sleeper, open_bed
from tests.support.puppet import Puppet, crash, do, hang, supervise, virtual


class Keeper(Puppet):
    """Shows whether it was ended in order, as what keeps a database must be."""

    ended = False

    def on_stop(self) -> None:
        self.ended = True


async def test_who_is_killed_in_the_hook_of_an_interrupt_handles_nothing_more(
    autojump_clock: MockClock,
) -> None:
    handled: list[tuple[Puppet, Any]] = []

    class Quitter(Puppet):
        def on_receive(self, message: Any) -> Any:
            handled.append((self, message))
            return super().on_receive(message)

        def on_interrupt(self, message: Any) -> None:
            del message
            self.actor_ref.kill()

    async with virtual(autojump_clock) as system:
        (ref,) = await supervise(system, Quitter)
        ref.tell(hang)
        ref.tell("next")
        # No time passes: what comes next would be handled in the same turn.
        await trio.testing.wait_all_tasks_blocked()
        ref.interrupt()
        await trio.sleep(1)
        (first, _), (second, message) = handled
        assert message == "next"
        assert first is not second


async def test_who_kills_itself_in_the_hook_of_an_interrupt_is_itself_to_the_hooks_end(
    autojump_clock: MockClock,
) -> None:
    class Parting(Puppet):
        def on_interrupt(self, message: Any) -> None:
            del message
            self.actor_ref.kill()
            self.unwatch(heir)  # which only the present incarnation may do
            self.tell(heir, "my last words")

    async with virtual(autojump_clock) as system:
        probe = Probe()
        heir = system.spawn(probe)
        (ref,) = await supervise(system, Parting)
        ref.tell(hang)
        await trio.testing.wait_all_tasks_blocked()
        ref.interrupt()
        await trio.sleep(1)
        assert probe.received == ["my last words"]


async def test_who_was_killed_stays_so_whatever_its_hook_raises(
    autojump_clock: MockClock,
) -> None:
    class Stubborn(Puppet):
        async def on_stop(self) -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise CrashError("in the end")

    async with virtual(autojump_clock) as system:
        watcher = Probe()
        system.spawn(watcher)
        ref = system.spawn(Stubborn())
        watcher.watch(ref)
        ended = ref.stop()
        await trio.sleep(0.1)
        ref.kill()
        assert await ended
        (news,) = await watcher.wait_count(1)
        assert news.exit.how == "killed"


async def test_a_cancellation_that_was_kept_ends_only_who_meets_it(
    autojump_clock: MockClock,
) -> None:
    class Hoarder(Puppet):
        async def on_receive(self, message: Any) -> None:
            del message
            reply = self.defer_reply()
            assert reply is not None
            try:
                await trio.sleep_forever()
            except BaseException as raised:
                reply.offer_error(raised)
                raise

    keeper = Keeper()
    async with virtual(autojump_clock) as system:
        system.spawn(keeper)
        hoarder = system.spawn(Hoarder())
        asker = system.spawn(Puppet())

        async def ask(_me: Actor) -> None:
            await hoarder.ask("for ever")

        asked = asker.ask(ask)
        await trio.testing.wait_all_tasks_blocked(0.001)
        hoarder.interrupt()
        with pytest.raises(KernelError, match="Cancelled"):
            await asked
        assert await asker.ask(do(lambda _me: "goes on")) == "goes on"
    assert keeper.ended


@pytest.mark.parametrize("deadline", [math.nan, -1.0])
def test_a_deadline_that_is_none_is_refused_with_its_class(deadline: float) -> None:
    with pytest.raises(MisuseError, match="deadline must be None or 0 seconds"):
        type("Hasty", (Actor,), {"deadline": deadline})


@pytest.mark.parametrize("seconds", [math.nan, -1.0])
def test_times_that_are_none_are_refused_with_their_spec(seconds: float) -> None:
    with pytest.raises(ValueError, match="shutdown must be None or 0 s"):
        ChildSpec(name="child", start=Puppet, shutdown=seconds)
    with pytest.raises(ValueError, match="start_timeout must be None or 0 s"):
        ChildSpec(name="child", start=Puppet, start_timeout=seconds)
    with pytest.raises(ValueError, match="shutdown must be None or 0 s"):
        KeyedConfig(shutdown=seconds)


async def test_one_actor_cannot_be_two_children(autojump_clock: MockClock) -> None:
    shared = Puppet()
    async with virtual(autojump_clock) as system:
        first = system.spawn(shared)
        with pytest.raises(StartError, match="make a new one"):
            await supervise(system, lambda: shared)
        assert await first.ask(do(lambda me: me.actor_urn)) == first.name


async def test_what_tells_the_operator_may_raise(autojump_clock: MockClock) -> None:
    def report(_event: str, _fields: dict[str, Any]) -> None:
        raise RuntimeError("the operator is out")

    keeper = Keeper()
    async with open_system(report=report) as system:
        assert autojump_clock.autojump_threshold == 0
        system.spawn(keeper)
        failing = system.spawn(Puppet())
        failing.tell(crash)
        await trio.sleep(1)
        assert not failing.is_alive()
    assert keeper.ended


async def test_who_observes_dead_letters_may_raise(autojump_clock: MockClock) -> None:
    def observe(_letter: object) -> None:
        raise RuntimeError("no more letters")

    keeper = Keeper()
    async with virtual(autojump_clock) as system:
        seen: list[object] = []
        system.dead_letters.observe(observe)
        system.dead_letters.observe(seen.append)
        system.spawn(keeper)
        failing = system.spawn(Puppet())
        failing.tell(crash)
        failing.tell("lost")
        await wait_settled(system)
        assert len(seen) == 2
    assert keeper.ended


async def test_a_hook_that_is_told_of_the_end_may_raise(
    autojump_clock: MockClock,
) -> None:
    class Hasty(Keeper):
        has_children: ClassVar[bool] = True

        def on_stop_due(self) -> None:
            raise ValueError("not now")

    hasty, reports = Hasty(), Reports()
    async with open_system(report=reports) as system:
        assert autojump_clock.autojump_threshold == 0
        system.spawn(hasty)
    assert hasty.ended
    assert [str(each["error"]) for each in reports.of("hook failed")] == ["not now"]


async def test_who_is_late_all_the_same_fails_though_it_answered(
    autojump_clock: MockClock,
) -> None:
    class Slow(Puppet):
        deadline: ClassVar[float | None] = 1.0

    async def come_to_an_end(_me: Actor) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(2)
        return "late"

    async with virtual(autojump_clock) as system:
        watcher = Probe()
        slow = system.spawn(Slow())
        seeing = system.spawn(watcher)
        seeing.tell("watch")
        watcher.watch(slow)
        assert await slow.ask(come_to_an_end) == "late"
        await wait_settled(system)
        ended = watcher.received[-1]
        assert isinstance(ended.exit.error, DeadlineError)


async def test_a_handlers_helper_in_another_thread_may_tell_and_nothing_else() -> None:
    heard = Probe()

    class Busy(Puppet):
        async def on_receive(self, message: Any) -> Any:
            del message
            return await trio.to_thread.run_sync(self.help_out)

        def help_out(self) -> bool:
            for act in (
                self.stop,
                self.unstash,
                lambda: self.note("x"),
                lambda: self.after(1, "x"),
            ):
                with pytest.raises(MisuseError, match="another thread"):
                    act()
            return self.tell("heard", "from a thread")

    async with open_system() as system:
        system.spawn(heard, name="heard")
        assert await system.spawn(Busy()).ask("help")
        assert await heard.wait_count(1) == ["from a thread"]


async def test_a_thread_may_wait_for_an_answer_as_long_as_it_takes() -> None:
    async with open_system() as system:
        ref: ActorRef = system.spawn(Puppet())

        def ask() -> Any:
            return ref.ask(do(lambda _me: "answer"), timeout=math.inf)

        assert await trio.to_thread.run_sync(ask) == "answer"


async def test_a_helper_thread_learns_that_the_system_has_ended() -> None:
    puppet = Puppet()
    async with open_system() as system:
        ref = system.spawn(puppet)
    with pytest.raises(pykka.ActorDeadError):
        ref.tell("late")
    assert not await trio.to_thread.run_sync(puppet.tell, "anybody", "late")


async def test_keys_that_fail_in_turn_are_given_up_for_their_own_failures_alone(
    autojump_clock: MockClock,
) -> None:
    assert autojump_clock.autojump_threshold == 0
    config = KeyedConfig(intensity=1, period=60.0, backoff=STEADY)
    keys = [f"key-{number}" for number in range(12)]
    async with open_bed(config) as bed:
        assert await bed.ask("neighbour", "x") == "x, of course"
        bed.child("neighbour").kill()
        await trio.sleep(0.5)
        for number, key in enumerate(keys):
            began = trio.current_time()
            # What breaks it comes again, and breaks its successor.
            bed.tell(key, "break" if number % 2 else "x")
            assert await bed.ask("neighbour", "y") == "y, of course"
            assert trio.current_time() == began
            while child := bed.system.find(f"bed/{key}"):
                child.kill()
                await trio.sleep(0.5)
        await trio.sleep(1)
        # Each was started once more before it was given up, and its owner told once.
        assert bed.born == dict.fromkeys(["neighbour", *keys], 2)
        told = {each.key: each for each in bed.heard.received}
        assert sorted(told) == sorted(keys)
        assert len(bed.heard.received) == len(keys)


async def test_an_owner_without_room_does_not_fail_who_gives_up_a_key(
    autojump_clock: MockClock,
) -> None:
    class Full(Puppet):
        mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=1)

    async with open_bed() as bed:
        assert autojump_clock.autojump_threshold == 0
        owner = bed.system.spawn(Full())
        owner.tell(hang)
        await trio.testing.wait_all_tasks_blocked()
        owner.tell("no more room")
        keyed = KeyedSupervisor(
            lambda key: Sleeper(bed, key), KeyedConfig(is_permanent=False), owner
        )
        keys = bed.system.spawn(keyed)
        keys.tell(Keyed("ann", "break"))
        assert await keys.ask(Keyed("bob", "x")) == "x, of course"
        assert keys.is_alive()
        assert KeyGivenUp("ann", "BrokenError") in [each for _, each in bed.lost()]


async def test_who_swallows_that_it_was_broken_off_is_broken_off_again() -> None:
    watchdog = WatchdogConfig(period=0.01, limit=0.03)
    swallowed: list[str] = []

    async with open_system(SystemConfig(watchdog=watchdog), report=Reports()) as system:
        seen = system.kernel.watchdog

        def spin() -> None:
            until = seen["Puppet", "loop_blocked"] + 20
            while seen["Puppet", "loop_blocked"] < until:
                pass

        def handle(_me: Actor) -> None:
            for _ in range(2):
                try:
                    spin()
                except DeadlineError as error:
                    swallowed.append(error.actor)
            spin()

        other = system.spawn(Keeper())
        ref = system.spawn(Puppet(), name="stubborn")
        with pytest.raises(DeadlineError, match="stubborn blocked the loop"):
            await ref.ask(do(handle))
        assert swallowed == ["stubborn", "stubborn"]
        assert not ref.is_alive()
        assert await other.ask(do(lambda _me: "goes on")) == "goes on"
