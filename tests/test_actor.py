"""Proves how one actor handles its messages, fails, and is stopped."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pykka
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from runtime.actor import Actor
from runtime.envelope import Envelope, Notice
from runtime.errors import (
    DeadlineError,
    InterruptedActorError,
    MailboxFullError,
    MisuseError,
)
from runtime.mailbox import Mailbox, MailboxConfig
from runtime.messages import Passivate, Terminated
from runtime.ref import cell_of
from runtime.reply import Reply
from runtime.testing import CrashError, Probe, open_test_system, wait_settled
from tests.puppet import Puppet, be_deaf, crash, do, hang, supervise, virtual, wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio.testing import MockClock

    from runtime.ref import ActorRef
    from runtime.system import ActorSystem

blocked = partial(trio.testing.wait_all_tasks_blocked, 0.001)


async def test_an_unknown_message_is_the_senders_mistake(
    autojump_clock: MockClock,
) -> None:
    class Plain(Actor):
        """Handles nothing."""

    async with virtual(autojump_clock) as system:
        with pytest.raises(MisuseError, match="Plain does not handle int"):
            await system.spawn(Plain()).ask(7)


def test_an_actor_starts_in_a_system_only() -> None:
    with pytest.raises(MisuseError, match=r"system\.spawn"):
        Puppet.start()
    with pytest.raises(MisuseError, match="has not started yet"):
        _ = Puppet().actor_ref
    with pytest.raises(MisuseError, match="no loop of its own"):
        Puppet()._start_actor_loop()
    assert isinstance(Puppet._create_actor_inbox(), Mailbox)
    assert isinstance(Puppet._create_future(), Reply)


async def test_an_actor_knows_its_names(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        ref = system.spawn(puppet, name="anna")
        assert str(puppet) == "Puppet (anna)"
        assert (str(ref), repr(ref)) == ("anna", "<ActorRef anna>")
        assert (ref.actor_urn, ref.name, ref.actor_class) == ("anna", "anna", Puppet)
        assert puppet.actor_ref is ref
        assert puppet.actor_inbox is ref.actor_inbox
        assert not puppet.actor_stopped.is_set()
        await ref.stop()
        assert ref.actor_stopped.is_set()


async def test_pykkas_proxy_can_be_awaited(autojump_clock: MockClock) -> None:
    class Speaker(Puppet):
        """Has methods and attributes for a proxy."""

        greeting = "hello"

        async def greet(self, name: str) -> str:
            await trio.sleep(1)
            return f"{self.greeting} {name}"

    async with virtual(autojump_clock) as system:
        proxy: Any = system.spawn(Speaker()).proxy()
        assert await proxy.greet("anna") == "hello anna"
        setattr(proxy, "greeting", "bye")  # noqa: B010  a checker takes it literally
        assert await proxy.greeting == "bye"


async def test_a_deferred_reply_is_answered_later(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet())
        replies: list[Reply | None] = []
        asked = ref.ask(do(lambda me: replies.append(me.defer_reply())))
        ref.tell(do(lambda me: replies.append(me.defer_reply())))
        await wait_settled(system)
        assert replies[1] is None
        assert replies[0] is not None
        replies[0].set("later")
        assert await asked == "later"


async def test_an_error_after_deferring_fails_the_actor(
    autojump_clock: MockClock,
) -> None:
    def defer_and_crash(me: Puppet) -> None:
        assert me.defer_reply() is not None
        crash(me)

    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet())
        with pytest.raises(pykka.Timeout):
            await ref.ask(defer_and_crash, timeout=1)
        assert not ref.is_alive()


async def test_some_actors_fail_with_their_asks(autojump_clock: MockClock) -> None:
    class Strict(Puppet):
        fail_on_ask_error = True

    async with virtual(autojump_clock) as system:
        ref = system.spawn(Strict())
        with pytest.raises(CrashError):
            await ref.ask(crash)
        await wait_settled(system)
        assert not ref.is_alive()


async def test_a_stash_can_be_made_once_per_message(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        ref = system.spawn(puppet)
        with pytest.raises(MisuseError, match="called once"):
            puppet.stash()

        def stash(me: Puppet) -> None:
            if "go" in me.log:
                me.log.append("handled")
                return
            me.stash()
            with pytest.raises(MisuseError, match="called once"):
                me.stash()

        asked = ref.ask(stash)
        ref.tell("go")
        await wait_settled(system)
        assert not asked.is_set
        assert puppet.unstash() == 1  # from outside of a handler: it wakes up
        assert await asked is None
        assert puppet.log == ["start", "go", "handled"]


@pytest.mark.parametrize("is_asked", [True, False])
async def test_a_stashed_message_that_fails_is_not_kept(
    autojump_clock: MockClock, *, is_asked: bool
) -> None:
    def stash_and_crash(me: Puppet) -> None:
        me.stash()
        crash(me)

    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        (ref,) = await supervise(system, partial(Puppet, log))
        if is_asked:
            with pytest.raises(CrashError):
                await ref.ask(stash_and_crash)
        else:
            ref.tell(stash_and_crash)
        await trio.sleep(10)
        assert await ref.ask("next") == "next"
        assert log.count("start") == (1 if is_asked else 4)
        assert system.dead_letters.counts["poison"] == (0 if is_asked else 1)


async def test_a_message_that_waits_again_is_not_doubled(
    autojump_clock: MockClock,
) -> None:
    def unstash_and_crash(me: Puppet) -> None:
        if me.log.count("start") == 1:
            me.stash()
            me.unstash()
            crash(me)
        me.log.append("once")

    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        (ref,) = await supervise(system, partial(Puppet, log))
        ref.tell(unstash_and_crash)
        await wait_settled(system)
        assert log == ["start", "failure", "start", "once"]


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


async def test_an_interrupt_reaches_a_handler_before_its_task_has_begun(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        for end in ("interrupt", "kill"):
            ref = system.spawn(Puppet())
            asked = ref.ask(hang)
            system.kernel.dispatcher.lend()  # the handler is due, not yet running
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


async def test_an_actor_may_have_no_deadline(autojump_clock: MockClock) -> None:
    class Patient(Puppet):
        deadline: ClassVar[float | None] = None

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


@pytest.mark.parametrize("where", ["on_start", "on_stop", "on_receive", "stash"])
async def test_an_actor_may_kill_itself_anywhere(
    where: str, autojump_clock: MockClock
) -> None:
    class Weary(Puppet):
        def act(self, here: str) -> None:
            self.log.append(here)
            if here == where:
                self.actor_ref.kill()

        def on_start(self) -> Any:
            self.act("on_start")

        def on_stop(self) -> Any:
            self.act("on_stop")

        def on_receive(self, message: Any) -> Any:
            del message
            if where == "stash":
                self.stash()
            self.act("on_receive")
            self.act("stash")

    async with virtual(autojump_clock) as system:
        weary = Weary()
        ref = system.spawn(weary)
        ref.tell("one")
        ref.tell("two")
        await trio.sleep(1)
        if ref.is_alive():
            await ref.stop()
        assert not ref.is_alive()
        assert weary.log.count("on_receive") in {0, 1, 2}
        assert ("on_stop" in weary.log) is (where == "on_stop")


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


async def test_a_full_stash_does_not_make_room(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(
            Puppet(), mailbox=MailboxConfig(capacity=2, overflow="drop_oldest")
        )
        ref.tell(Puppet.stash)
        ref.tell(Puppet.stash)
        await wait_settled(system)
        with pytest.raises(MailboxFullError):
            ref.tell("no room")
        with pytest.raises(MailboxFullError):
            await ref.ask("no room")


async def test_a_stop_that_waits_is_not_dropped(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        config = MailboxConfig(capacity=2, overflow="drop_oldest")
        ref = system.spawn(puppet, mailbox=config)
        ref.tell(wait(1))
        await blocked()
        dropped = ref.ask("dropped")
        ended = ref.stop(drain=True)
        for _ in range(2):
            assert not fits(ref)
            assert not fits(ref)
        with pytest.raises(MailboxFullError):
            await dropped
        assert await ended
        assert puppet.log[-2:] == ["waited", "stop"]


def fits(ref: ActorRef) -> bool:
    try:
        for word in ("one", "two"):
            ref.tell(word)
    except MailboxFullError:
        return False
    return True


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


def test_only_our_own_refs_have_a_cell() -> None:
    foreign: Any = "not a ref"
    with pytest.raises(MisuseError, match="not an actor of this system"):
        cell_of(foreign)


async def test_an_ask_without_a_reply_is_refused(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        cell = cell_of(system.spawn(Puppet()))
        with pytest.raises(MisuseError, match="needs a reply"):
            cell.post_ask(Envelope("told"), 1)
        await cell.ref.stop()
        cell.post_system("the dead hear nothing")
        with pytest.raises(pykka.ActorDeadError):
            await cell.ref.ask("the dead answer nothing")
        with pytest.raises(pykka.ActorDeadError):
            await cell.ref.send("nor this")
        cell.ref.kill()


async def test_senders_wait_until_the_actor_is_gone(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        config = MailboxConfig(capacity=1, overflow="wait")
        ref = system.spawn(Puppet(), mailbox=config)
        ref.tell(hang)
        await blocked()
        await ref.send("fills it")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ref.send, "waits")
            await blocked()
            ref.kill()
        assert system.dead_letters.counts == {"killed": 3}


Act = tuple[str, float]
ACTS = st.tuples(
    st.sampled_from(["tell", "ask", "send", "interrupt", "crash", "kill"]),
    st.sampled_from([0.0, 0.0, 0.5, 1.0]),
)


@given(acts=st.lists(ACTS, max_size=25))
def test_whatever_happens_every_message_is_accounted_for(acts: list[Act]) -> None:
    async def main() -> None:
        async with open_test_system() as system:
            await play(system, acts)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def play(system: ActorSystem, acts: list[Act]) -> None:
    log: list[Any] = []
    (ref,) = await supervise(system, partial(Puppet, log), intensity=1000)
    asked: list[Any] = []
    sent = 0
    for number, (act, pause) in enumerate(acts):
        steps: dict[str, Callable[[], Any]] = {
            "tell": partial(ref.tell, wait(0.7, f"told {number}")),
            "send": partial(ref.tell, f"sent {number}"),
            "crash": partial(ref.tell, crash),
            "ask": partial(ref.ask, wait(0.7, f"asked {number}")),
            "interrupt": ref.interrupt,
            "kill": ref.kill,
        }
        result = steps[act]()
        sent += act in {"tell", "send", "crash", "ask"}
        if act == "ask":
            asked.append(result)
        await trio.sleep(pause)
    await trio.sleep(300)
    await wait_settled(system)
    handled = [word for word in log if str(word).startswith(("told", "sent", "asked"))]
    order = [int(word.split()[1]) for word in handled]
    assert order == sorted(set(order))
    given_up = system.dead_letters.counts
    assert len(handled) + given_up.total() - given_up["late_reply"] == sent
    assert all(reply.is_set for reply in asked)
    assert system.statistics().timers == 0


async def test_telling_by_name_never_raises(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        puppet, probe = Puppet(), Probe()
        ref = system.spawn(puppet)
        other = system.spawn(probe, name="other", mailbox=MailboxConfig(capacity=1))
        assert puppet.find("other") is other
        assert puppet.find("nobody") is None
        assert puppet.tell("other", "one")
        assert not puppet.tell(other, "no room")
        assert not puppet.tell("nobody", "lost")
        await other.stop()
        assert not puppet.tell(other, "dead")
        counts = system.dead_letters.counts
        assert counts == {"mailbox_full": 1, "no_such_actor": 1, "stopped": 2}
        await ref.stop()


async def test_a_requeued_message_and_a_note_come_first(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        ref = system.spawn(puppet)
        ref.tell("two")
        puppet.requeue("one")
        puppet.note("note")
        await wait_settled(system)
        puppet.requeue("woken")
        await wait_settled(system)
        assert puppet.log == ["start", "note", "one", "two", "woken"]


async def test_three_put_back_keep_their_order(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        system.spawn(puppet)
        for word in ("three", "two", "one"):
            puppet.requeue(word)
        await wait_settled(system)
        assert puppet.log == ["start", "one", "two", "three"]


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


async def test_a_full_mailbox_that_waits_admits_by_weight(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        config = MailboxConfig(max_bytes=10, overflow="wait")
        ref = system.spawn(Puppet(log), mailbox=config)
        ref.tell(wait(1))
        await blocked()
        for text in ("a" * 5, "b" * 5):
            ref.tell(text)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ref.send, "c" * 9)
            await blocked()
            with pytest.raises(MailboxFullError):
                ref.tell("")  # would fit, but somebody waits
        await wait_settled(system)
        assert [len(word) for word in log[2:]] == [5, 5, 9]
