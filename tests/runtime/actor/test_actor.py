"""Proves how one actor handles its messages, answers, and sets them aside."""

from __future__ import annotations

from functools import partial
from typing import Any

import pykka
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from runtime.actor.actor import Actor
from runtime.actor.envelope import Envelope
from runtime.actor.mailbox import Mailbox, MailboxConfig
from runtime.actor.posting import Intake
from runtime.actor.ref import ActorRef, cell_of
from runtime.actor.reply import Reply
from runtime.errors import MailboxFullError, MisuseError
from runtime.testing import CrashError, Probe, wait_settled
from tests.support.puppet import Puppet, crash, do, supervise, virtual, wait

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
            self.log.append(name)
            return f"{self.greeting} {name}"

    async with virtual(autojump_clock) as system:
        speaker = Speaker()
        proxy: Any = system.spawn(speaker).proxy()
        proxy.greet.defer("bob")  # told, not asked
        assert await proxy.greet("anna") == "hello anna"
        assert speaker.log == ["start", "bob", "anna"]
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
        with pytest.raises(pykka.ActorDeadError, match="before it answered"):
            await ref.ask(defer_and_crash)
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


async def test_the_dead_make_no_room_either(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        config = MailboxConfig(capacity=1, overflow="drop_oldest")
        ref = system.spawn(Puppet(), mailbox=config)
        await ref.stop()
        with pytest.raises(pykka.ActorDeadError):
            ref.tell("too late")
        assert system.dead_letters.counts == {}


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


async def test_who_is_cancelled_lets_those_behind_in(autojump_clock: MockClock) -> None:
    class Heavy:
        weight = 5

        def __call__(self, me: Puppet) -> None:
            me.stash()

    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        config = MailboxConfig(max_bytes=10, overflow="wait")
        ref = system.spawn(puppet, mailbox=config)
        ref.tell(Heavy())
        await wait_settled(system)
        async with trio.open_nursery() as nursery:
            with trio.move_on_after(1):
                nursery.start_soon(send_after, 0.5, ref, "fits")
                await ref.send("x" * 6)
        await wait_settled(system)
        assert puppet.log == ["start", "fits"]


async def send_after(seconds: float, ref: ActorRef, message: str) -> None:
    await trio.sleep(seconds)
    await ref.send(message)


async def test_what_arrives_too_late_is_a_dead_letter(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        cell = cell_of(system.spawn(Puppet()))
        for _ in range(2):
            cell.enqueue()
        assert system.statistics().run_queue == 1
        with pytest.raises(NotImplementedError):
            Intake.step(cell, 1)
        await cell.ref.stop()
        cell.arrive("late", None, 0.0)
        assert system.dead_letters.counts == {"stopped": 1}
