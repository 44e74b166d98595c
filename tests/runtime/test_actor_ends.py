"""Proves how handlers are interrupted, actors killed, and what is left of them."""

from __future__ import annotations

import threading
from functools import partial
from types import TracebackType
from typing import Any, ClassVar

import pykka
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from runtime.actor import lifecycle
from runtime.actor.actor import Actor
from runtime.actor.envelope import Notice
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Passivate, Terminated
from runtime.actor.ref import ActorRef, cell_of
from runtime.errors import DeadlineError, InterruptedActorError, MisuseError
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import Supervisor
from runtime.testing import CrashError, Probe, open_test_system, wait_settled
from tests.support.puppet import (
    Puppet,
    be_deaf,
    crash,
    do,
    hang,
    supervise,
    virtual,
    wait,
)

blocked = partial(trio.testing.wait_all_tasks_blocked, 0.001)


async def test_an_interrupted_message_that_was_stashed_is_kept(
    autojump_clock: MockClock,
) -> None:
    async def stash_and_hang(me: Puppet) -> str:
        if "interrupt" not in me.log:
            me.stash()
            await trio.sleep_forever()
        return "handled"

    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        ref = system.spawn(puppet)
        asked = ref.ask(stash_and_hang)
        await blocked()
        ref.interrupt()
        await blocked()
        assert puppet.unstash() == 1
        assert await asked == "handled"
        assert system.dead_letters.counts == {}


async def test_an_interrupted_message_is_no_dead_letter(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet())
        asked = ref.ask(hang)
        await blocked()
        ref.interrupt()
        with pytest.raises(InterruptedActorError):
            await asked
        ref.tell(hang)
        await blocked()
        ref.interrupt()
        await blocked()
        assert system.dead_letters.counts == {}


async def test_an_interrupt_reaches_a_handler_before_its_task_has_begun(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        for end in ("interrupt", "kill"):
            ref = system.spawn(Puppet())
            asked = ref.ask(hang)
            system.kernel.dispatcher.lend(
                cell_of(ref)
            )  # the handler is due, not yet running
            getattr(ref, end)()
            with pytest.raises((InterruptedActorError, pykka.ActorDeadError)):
                await asked
        assert trio.current_time() == pytest.approx(0, abs=0.1)


async def test_a_failing_on_interrupt_fails_the_actor(
    autojump_clock: MockClock,
) -> None:
    class Touchy(Puppet):
        def on_interrupt(self, message: Any) -> None:
            assert message is hang
            raise CrashError("touchy")

    async with virtual(autojump_clock) as system:
        ref = system.spawn(Touchy())
        ref.tell(hang)
        await blocked()
        ref.interrupt()
        await wait_settled(system)
        assert not ref.is_alive()


async def test_an_interruption_of_another_is_an_error_like_any(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        other, ref = system.spawn(Puppet()), system.spawn(puppet)

        async def delegate(_me: Actor) -> Any:
            return await other.ask(hang)

        asked = ref.ask(delegate)
        await blocked()
        other.interrupt()
        with pytest.raises(InterruptedActorError):
            await asked
        assert puppet.log == ["start"]


async def test_anothers_deadline_is_an_error_like_any(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Patient())
        other = system.spawn(Puppet())

        async def delegate(_me: Actor) -> Any:
            return await other.ask(hang)

        with pytest.raises(DeadlineError):
            await ref.ask(delegate)
        assert (ref.is_alive(), other.is_alive()) == (True, False)


async def test_a_handler_that_swallows_an_interrupt_is_done(
    autojump_clock: MockClock,
) -> None:
    async def swallow(_me: Actor) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
        return "done"

    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet())
        for end, alive in ((ref.interrupt, True), (ref.kill, False)):
            asked = ref.ask(swallow)
            await blocked()
            end()
            assert await asked == "done"
            await wait_settled(system)
            assert ref.is_alive() is alive


async def test_what_an_interrupted_handler_raises_counts(
    autojump_clock: MockClock,
) -> None:
    async def clean_up_badly(_me: Actor) -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise CrashError("while cleaning up")

    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet())
        asked = ref.ask(clean_up_badly)
        await blocked()
        ref.interrupt()
        with pytest.raises(CrashError):
            await asked
        asked = ref.ask(clean_up_badly)
        with pytest.raises(DeadlineError) as overran:
            await asked
        assert isinstance(overran.value.__cause__, CrashError)
        assert not ref.is_alive()


class Patient(Puppet):
    """A puppet without a deadline."""

    deadline: ClassVar[float | None] = None


async def test_an_actor_may_have_no_deadline(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        assert await system.spawn(Patient()).ask(wait(9999), timeout=1e5) == "waited"


async def test_who_was_left_behind_may_not_act(autojump_clock: MockClock) -> None:
    async def come_back(me: Puppet) -> None:
        await be_deaf(me)
        for act in (me.stop, me.stash, me.unstash, me.defer_reply):
            with pytest.raises(MisuseError, match="has ended"):
                act()
        me.log.append("refused")

    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        (ref,) = await supervise(system, partial(Puppet, log))
        asked = ref.ask(come_back)
        with pytest.raises(pykka.ActorDeadError):
            await asked
        assert await ref.ask("next") == "next"
        await trio.sleep(200)
        assert log[-2:] == ["deaf no more", "refused"]
        assert await ref.ask("alive") == "alive"


async def test_who_was_left_behind_may_say_nothing(
    autojump_clock: MockClock,
) -> None:
    async def come_back(me: Puppet) -> None:
        await be_deaf(me)
        me.note("from the dead")
        me.log.append(me.tell("other", "from the dead"))
        with pytest.raises(MisuseError, match="has ended"):
            me.requeue("from the dead")

    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        other = Probe()
        system.spawn(other, name="other")
        (ref,) = await supervise(system, partial(Puppet, log))
        ref.tell(come_back)
        await trio.sleep(200)
        assert log == ["start", "start", "deaf no more", False]
        assert other.received == []
        assert system.dead_letters.counts == {"failed": 1, "left_behind": 1}


async def test_what_comes_back_to_an_older_incarnation_is_the_next_ones(
    autojump_clock: MockClock,
) -> None:
    """A commit, say, whose result is told to who submitted it."""
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        older: list[Puppet] = []
        (ref,) = await supervise(system, partial(Puppet, log))
        ref.tell(do(older.append))
        ref.tell(crash)
        await trio.sleep(5)
        older[0].note("stored")
        assert older[0].tell(ref, "stored, too")
        await wait_settled(system)
        assert log[-2:] == ["stored", "stored, too"]


async def test_who_was_left_behind_does_not_end_its_actor_twice(
    autojump_clock: MockClock,
) -> None:
    class Parent(Puppet):
        has_children = True

        async def end_children(self, *, brutally: bool) -> None:
            self.log.append(f"brutally: {brutally}")
            await trio.sleep(200)

    async with virtual(autojump_clock) as system:
        parent = Parent()
        ref = system.spawn(parent)
        ref.tell(be_deaf)
        await blocked()
        ref.kill()
        await trio.sleep(300)  # the handler comes back while the children end
        assert parent.log == ["start", "brutally: True", "deaf no more"]
        assert system.dead_letters.counts == {"killed": 1}
        assert system.statistics().watchdog["Parent", "came_back"] == 1


class Weary(Puppet):
    """Kills itself at a given place.

    Args:
        where: the place.
    """

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def act(self, here: str) -> None:
        self.log.append(here)
        if here == self.where:
            self.actor_ref.kill()

    def on_start(self) -> Any:
        self.act("on_start")

    def on_stop(self) -> Any:
        self.act("on_stop")

    def on_receive(self, message: Any) -> Any:
        del message
        if self.where == "stash":
            self.stash()
        self.act("on_receive")
        self.act("stash")


@pytest.mark.parametrize("where", ["on_start", "on_stop", "on_receive", "stash"])
async def test_an_actor_may_kill_itself_anywhere(
    where: str, autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        weary = Weary(where)
        ref = system.spawn(weary)
        ref.tell("one")
        ref.tell("two")
        await trio.sleep(1)
        if ref.is_alive():
            await ref.stop()
        assert not ref.is_alive()
        assert weary.log.count("on_receive") in {0, 1, 2}
        assert ("on_stop" in weary.log) is (where == "on_stop")


class Torn(Puppet):
    """Kills itself in its own plain code, and goes on all the same."""

    passes_on = True

    def on_start(self) -> Any:
        super().on_start()
        return self.go_on() if self.kill_at("start, then wait") else None

    def pass_on(self, message: Any) -> bool:
        if message == "pass on, then raise":
            self.kill_at(message)
            raise CrashError(message)
        return False

    def on_receive(self, message: Any) -> Any:
        if self.kill_at("raise"):
            raise CrashError(message)
        return self.go_on() if self.kill_at("wait") else super().on_receive(message)

    def kill_at(self, where: str) -> bool:
        if where not in self.log:
            return False
        self.log.remove(where)  # the next incarnation does not
        self.actor_ref.kill()
        return True

    async def go_on(self) -> None:
        await trio.lowlevel.checkpoint()
        self.log.append("went on")
        await trio.sleep_forever()


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("raise", "x"),
        ("wait", "x"),
        ("start, then wait", "x"),
        ("pass on, then raise", "pass on, then raise"),
    ],
)
async def test_who_kills_itself_is_killed_whatever_it_does_then(
    autojump_clock: MockClock, where: str, message: str
) -> None:
    log: list[Any] = [where]
    async with virtual(autojump_clock) as system:
        watcher = Probe()
        system.spawn(watcher)
        sender = system.spawn(Puppet())
        ref = system.spawn(Torn(log))
        watcher.watch(ref)
        sender.tell(do(lambda me: me.tell(ref, message)))
        (news,) = await watcher.wait_count(1)
        assert (news.exit.how, trio.current_time()) == ("killed", 0)
    assert log == ["start"]


async def test_a_kill_between_two_batches_ends_the_burst(
    autojump_clock: MockClock,
) -> None:
    class Parent(Puppet):
        has_children = True

        async def end_children(self, *, brutally: bool) -> None:
            self.log.append(brutally)
            await trio.sleep(1)

    async with virtual(autojump_clock) as system:
        puppet = Parent()
        ref = system.spawn(puppet, mailbox=MailboxConfig(capacity=1000))
        ref.tell(wait(1))
        for number in range(200):
            ref.tell(number)
        system.kernel.timers.call_in(1, ref.kill)
        await trio.sleep(1)
        while ref.is_alive() and system.actors()[0].state == "running":
            await trio.lowlevel.checkpoint()
        seen = len(puppet.log)
        await trio.sleep(5)
        assert len(puppet.log) <= seen + 1


async def test_sleep_is_declined_while_something_is_set_aside(
    autojump_clock: MockClock,
) -> None:
    class Sleepy(Puppet):
        def may_passivate(self) -> bool:
            if "fail" in self.log:
                raise CrashError("in may_passivate")
            return "tired" in self.log

    async with virtual(autojump_clock) as system:
        refs: list[ActorRef] = []
        for words in (("stash", "tired"), ("tired",), ("fail",), ("awake",)):
            ref = system.spawn(Sleepy())
            refs.append(ref)
            for word in words:
                ref.tell(Puppet.stash if word == "stash" else word)
            await wait_settled(system)
            cell_of(ref).post_system(Passivate())
        await wait_settled(system)
        assert [ref.is_alive() for ref in refs] == [True, False, False, True]


async def test_watchers_that_ended_are_forgotten(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        watched = system.spawn(Puppet())
        for _ in range(100):
            watcher = system.spawn(Puppet())
            await watcher.ask(do(lambda me: me.watch(watched)))
            await watcher.stop()
        watchers = cell_of(watched).watchers
        assert watchers is not None
        assert len(watchers) <= 16
        probe = Probe()
        ref = system.spawn(probe)
        probe.watch(watched)
        probe.unwatch(watched)
        probe.watch(system.spawn(Puppet(), name="other"))
        await watched.stop()
        other = system.find("other")
        assert other is not None
        await other.stop()
        assert (await probe.wait_for(Terminated)).ref is other
        await ref.stop()
        probe_free = system.spawn(Puppet())
        await probe_free.ask(do(lambda me: me.unwatch(ref)))


async def test_an_older_incarnations_notice_is_skipped(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        ref = system.spawn(puppet)
        cell = cell_of(ref)
        cell.post_system(Notice("old", cell.generation - 1))
        cell.post_system(Notice("new", cell.generation))
        ref.tell("next")
        await wait_settled(system)
        assert puppet.log == ["start", "new", "next"]


async def test_an_interrupted_tick_comes_again(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        (ref,) = await supervise(system, partial(Puppet, log))
        await ref.ask(do(lambda me: me.every(1, crash)))
        await trio.sleep(1.5)
        assert await ref.ask("next") == "next"
        assert log == ["start", "failure", "start", "next"]
        assert system.dead_letters.counts == {}


async def test_some_are_interrupted_by_a_stop(autojump_clock: MockClock) -> None:
    class Listener(Puppet):
        ends_by_interrupt: ClassVar[bool] = True

    async with virtual(autojump_clock) as system:
        listener = Listener()
        ref = system.spawn(listener)
        ref.tell(hang)
        await blocked()
        await ref.stop()
        assert listener.log == ["start", "interrupt", "stop"]


async def test_who_has_children_is_not_interrupted(autojump_clock: MockClock) -> None:
    class Parent(Puppet):
        has_children: ClassVar[bool] = True

    async with virtual(autojump_clock) as system:
        ref = system.spawn(Parent())
        asked = ref.ask(wait(1))
        await blocked()
        ref.interrupt()
        assert await asked == "waited"


async def test_the_news_of_an_end_outlives_a_restart_of_who_has_not_heard_it_yet(
    autojump_clock: MockClock,
) -> None:
    async def fail_later(_me: Actor) -> None:
        await trio.sleep(1)
        raise CrashError("to order")

    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        watched = system.spawn(Puppet())
        (watcher,) = await supervise(system, partial(Puppet, log))
        # Once, by this incarnation; the next one does not watch anew.
        await watcher.ask(do(lambda me: me.watch(watched)))
        watcher.tell(fail_later)
        await blocked()
        await watched.stop()  # it is told in the midst of what will fail it
        await trio.sleep(100)
        assert log.count("start") > 1
        assert sum(isinstance(each, Terminated) for each in log) == 1


async def test_a_child_that_goes_on_is_killed_when_its_time_to_stop_is_over(
    autojump_clock: MockClock,
) -> None:
    class Long(Puppet):
        deadline: ClassVar[float | None] = 1000.0

    log: list[Any] = []
    async with virtual(autojump_clock) as system:
        spec = ChildSpec(name="long", start=partial(Long, log), shutdown=3.0)
        await system.start_root(Supervisor([spec]))
        child = system.find("root/long")
        assert child is not None
        child.tell(wait(100))
        await blocked()
        began = trio.current_time()
    assert trio.current_time() - began == pytest.approx(3)
    assert log == ["start"]


async def test_a_restart_leaves_no_timer_of_the_incarnation_before(
    autojump_clock: MockClock,
) -> None:
    def set_timers(me: Puppet) -> None:
        me.every(1, "tick")
        me.after(1000, "once")
        raise CrashError("to order")

    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        (ref,) = await supervise(system, partial(Puppet, log))
        before = system.statistics().timers
        ref.tell(set_timers)
        await trio.sleep(100)
        assert log.count("start") > 1
        assert "tick" not in log
        assert system.statistics().timers == before


@pytest.mark.parametrize("where", ["handler", "start"])
async def test_who_kills_itself_handles_nothing_more(
    where: str, autojump_clock: MockClock
) -> None:
    """Not even what it has noted itself before."""

    def end(me: Actor) -> None:
        me.note("noted")
        me.actor_ref.kill()

    class Hasty(Puppet):
        def on_start(self) -> None:
            if where == "start":
                end(self)

    puppet = Hasty()
    async with virtual(autojump_clock) as system:
        ref = system.spawn(puppet)
        ref.tell(end)
        await wait_settled(system)
        assert not ref.is_alive()
    assert puppet.log == []


class Parting(Torn):
    """Kills itself in the plain part of its hook, then waits if its log says so."""

    def on_stop(self) -> Any:
        self.actor_ref.kill()
        return self.go_on() if "wait" in self.log else None

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> Any:
        del exception_type, exception_value, traceback
        return self.on_stop()


class PartingParent(Parting):
    """The same, with children."""

    has_children: ClassVar[bool] = True


@pytest.mark.parametrize("make", [Parting, PartingParent])
async def test_who_kills_itself_in_the_plain_part_of_a_hook_is_killed_at_once(
    make: type[Parting], autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        watcher = Probe()
        system.spawn(watcher)
        for words, act in (([], Puppet.stop), (["wait"], Puppet.stop), ([], crash)):
            ref = system.spawn(make(list[Any](words)))
            watcher.watch(ref)
            ref.tell(act)
        ends = await watcher.wait_count(3)
        assert [each.exit.how for each in ends] == ["killed"] * 3
        assert trio.current_time() == 0


async def test_who_is_killed_while_starting_was_killed(
    autojump_clock: MockClock,
) -> None:
    class Slow(Puppet):
        async def on_start(self) -> None:
            await trio.sleep(100)

    async with virtual(autojump_clock) as system:
        watcher = Probe()
        system.spawn(watcher)
        ref = system.spawn(Slow())
        watcher.watch(ref)
        await blocked()
        ref.kill()
        (news,) = await watcher.wait_count(1)
        assert news.exit.how == "killed"
        assert trio.current_time() < 1


async def test_a_long_chain_of_those_who_crash_the_next_ends_as_a_whole(
    autojump_clock: MockClock,
) -> None:
    refs: list[ActorRef] = []

    class Link(Puppet):
        def on_failure(
            self,
            exception_type: type[BaseException] | None,
            exception_value: BaseException | None,
            traceback: TracebackType | None,
        ) -> Any:
            del exception_type, traceback
            assert isinstance(exception_value, CrashError)
            following: int = self.log[0]
            refs[following].crash(exception_value)

        def on_start(self) -> None:
            """Its log says who is next."""

    async with virtual(autojump_clock) as system:
        refs += [system.spawn(Link([number])) for number in range(1, 401)]
        refs.append(system.spawn(Puppet()))
        refs[0].crash(CrashError("the first"))
        await wait_settled(system)
        assert not any(ref.is_alive() for ref in refs)


async def test_who_takes_a_watch_back_is_told_nothing_any_more(
    autojump_clock: MockClock,
) -> None:
    def regret(me: Actor) -> None:
        me.watch(one)
        me.watch(two)
        one.kill()
        two.kill()
        me.unwatch(one)

    async with virtual(autojump_clock) as system:
        one, two = system.spawn(Puppet()), system.spawn(Puppet())
        puppet = Puppet()
        await system.spawn(puppet).ask(regret)
        await wait_settled(system)
        told = [each.ref for each in puppet.log if isinstance(each, Terminated)]
        assert told == [two]


class Helped(Puppet):
    """Has a thread tell something when it may."""

    may_tell = threading.Event()

    async def on_receive(self, message: Any) -> Any:
        del message
        assert await trio.to_thread.run_sync(self.help_out)

    def help_out(self) -> bool:
        self.may_tell.wait(60)
        return self.tell("nobody", "late")


async def test_what_a_thread_that_was_left_behind_tells_is_counted_in_its_turn() -> (
    None
):
    """Dead letters are the kernel thread's; two threads would lose count of them."""
    told, threads = trio.Event(), set[int]()

    def observe(_letter: object) -> None:
        threads.add(threading.get_ident())
        told.set()

    async with open_test_system() as system:
        system.dead_letters.observe(observe)
        ref = system.spawn(Helped())
        ref.tell("go")
        await trio.testing.wait_all_tasks_blocked()
        cell = cell_of(ref)
        assert cell.scope is not None
        lifecycle._abandon(cell, cell.scope)  # as time would
        Helped.may_tell.set()
        with trio.fail_after(60):
            await told.wait()
    assert threads == {threading.get_ident()}
