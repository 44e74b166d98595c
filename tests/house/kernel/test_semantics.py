"""Proves the promises of `runtime/SEMANTICS.md`, one test per number: actors."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pykka
import pytest
import trio
import trio.testing
from trio.testing import MockClock

import runtime
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Terminated
from runtime.errors import InterruptedActorError, MailboxFullError
from runtime.testing import CrashError, Probe, wait_settled
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

PAGE = Path(runtime.__file__).with_name("SEMANTICS.md")


def test_every_promise_has_a_test_and_every_test_a_promise() -> None:
    promised = re.findall(
        r"^- P(\d+)\. ", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    files = sorted(Path(__file__).parent.glob("test_semantics*.py"))
    source = "".join(file.read_text(encoding="utf-8") for file in files)
    tested = re.findall(r"^(?:async )?def test_p(\d+)_", source, re.MULTILINE)
    assert [int(number) for number in promised] == list(range(1, len(promised) + 1))
    assert sorted(int(number) for number in tested) == list(range(1, len(tested) + 1))
    assert len(promised) == len(tested)


async def test_p01_one_senders_messages_keep_their_order(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        probe = Probe()
        ref = system.spawn(probe)
        for number in range(1000):
            ref.tell(number)
        assert await probe.wait_count(1000) == list(range(1000))


async def test_p02_a_stop_overtakes_messages(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        ref = system.spawn(puppet)
        ref.tell("one")
        assert await ref.stop()
        assert puppet.log == ["start", "stop"]


async def test_p03_one_message_at_a_time(autojump_clock: MockClock, order: int) -> None:
    async with virtual(autojump_clock) as system:
        running = [0]

        async def alone(_me: Actor) -> None:
            running[0] += 1
            assert running[0] == 1
            await trio.sleep(0.1 * (order % 3))
            running[0] -= 1

        ref = system.spawn(Puppet())
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ref.send, alone)
                nursery.start_soon(partial(ask, ref, alone))


async def ask(ref: Any, message: Any) -> Any:
    return await ref.ask(message)


async def test_p04_tell_never_waits(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Probe(), mailbox=MailboxConfig(capacity=1))
        ref.tell("one")
        with pytest.raises(MailboxFullError) as refused:
            ref.tell("two")
        assert refused.value.message == "two"
        await ref.stop()
        with pytest.raises(pykka.ActorDeadError):
            ref.tell("three")


async def test_p05_an_ask_has_a_deadline(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet())
        with pytest.raises(pykka.Timeout):
            await ref.ask(wait(2), timeout=1)
        assert trio.current_time() == pytest.approx(1)
        await wait_settled(system)
        assert system.dead_letters.counts == {"late_reply": 1}
        reply = ref.ask(wait(9))
        await trio.sleep(5)
        assert not reply.is_set


async def test_p06_the_asker_gets_the_error(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet())
        with pytest.raises(CrashError):
            await ref.ask(crash)
        assert await ref.ask("still there") == "still there"
        ref.tell(crash)
        await wait_settled(system)
        assert not ref.is_alive()


async def test_p07_a_full_mailbox_does_as_configured(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        probe = Probe()
        config = MailboxConfig(capacity=9, max_bytes=10, overflow="drop_oldest")
        ref = system.spawn(probe, mailbox=config)
        for text in ("x" * 99, "small", "words", "again"):
            ref.tell(text)
        assert await probe.wait_count(2) == ["words", "again"]
        assert system.dead_letters.counts == {"dropped_oldest": 2}


async def test_p08_waiting_senders_are_served_in_order(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        config = MailboxConfig(capacity=1, overflow="wait")
        ref = system.spawn(Puppet(log), mailbox=config)
        ref.tell(wait(1, "first"))
        await trio.sleep(0.5)
        ref.tell("second")
        async with trio.open_nursery() as nursery:
            for word in ("third", "fourth", "fifth"):
                nursery.start_soon(ref.send, word)
                await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(MailboxFullError):
                ref.tell("overtakes")
            with trio.move_on_after(0.1):
                await ref.send("cancelled")
        await wait_settled(system)
        assert log == ["start", "first", "second", "third", "fourth", "fifth"]


async def test_p09_a_stash_comes_first(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        (ref,) = await supervise(system, partial(Fussy, log))
        for message in ("one", "two", crash, "three"):
            ref.tell(message)
        await wait_settled(system)
        assert [word for word in log if word in {"one", "two", "three"}] == [
            "one",
            "two",
            "three",
        ]


class Fussy(Puppet):
    """Sets everything aside in its first incarnation."""

    def on_receive(self, message: Any) -> Any:
        if self.log.count("start") == 1 and not callable(message):
            self.stash()
            return None
        if self.log.count("start") > 1 and callable(message):
            return None
        return super().on_receive(message)


async def test_p10_nothing_is_dropped_in_silence(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet())
        ref.tell(hang)
        for number in range(200):
            ref.tell(number)
        asked = ref.ask("asked")
        await wait_hanging()
        ref.kill()
        with pytest.raises(pykka.ActorDeadError):
            await asked
        letters = system.dead_letters
        assert letters.counts == {"killed": 202}
        assert [letter.message for letter in letters.last()][-2:] == [199, "asked"]


async def wait_hanging() -> None:
    await trio.testing.wait_all_tasks_blocked(0.001)


async def test_p11_stop_lets_the_handler_finish(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        for drain in (False, True):
            ref = system.spawn(Puppet(log))
            ref.tell(wait(1))
            ref.tell("next")
            await trio.sleep(0.5)
            assert await ref.stop(drain=drain)
            assert not await ref.stop()
        assert log == ["start", "waited", "stop", "start", "waited", "next", "stop"]
        assert system.dead_letters.counts == {"stopped": 1}


async def test_p12_kill_cancels_at_once(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        ref = system.spawn(puppet)
        asked = ref.ask(hang)
        await wait_hanging()
        ref.kill()
        with pytest.raises(pykka.ActorDeadError):
            await asked
        assert puppet.log == ["start"]


async def test_p13_interrupt_cancels_the_handler_only(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        ref = system.spawn(puppet)
        ref.interrupt()
        asked = ref.ask(hang)
        ref.tell("next")
        await wait_hanging()
        ref.interrupt()
        with pytest.raises(InterruptedActorError):
            await asked
        await wait_settled(system)
        assert puppet.log == ["start", "interrupt", "next"]


async def test_p14_a_restart_keeps_ref_and_mailbox(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        (ref,) = await supervise(system, partial(Puppet, log))
        ref.tell(fail_once(log))
        ref.tell("kept")
        assert await ref.ask("asked") == "asked"
        assert log == ["start", "failure", "start", "again", "kept", "asked"]
        assert system.find("root/child0") is ref


def fail_once(log: list[Any]) -> Any:
    def run(me: Puppet) -> None:
        if log.count("start") == 1:
            crash(me)
        log.append("again")

    return run


async def test_p15_a_message_that_kills_is_poison(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        (ref,) = await supervise(system, partial(Puppet, log))
        ref.tell(crash)
        ref.tell("next")
        await trio.sleep(10)
        assert log.count("failure") == 3
        assert log[-1] == "next"
        assert system.dead_letters.counts == {"poison": 1}


async def test_p16_a_handler_past_its_deadline(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        polite, deaf = await supervise(
            system, partial(Puppet, log), partial(Puppet, log)
        )
        polite.tell(wait(99))
        deaf.tell(be_deaf)
        await trio.sleep(40)
        assert await deaf.ask("next") == "next"
        polite.interrupt()
        await trio.sleep(200)
        assert log.count("start") > 2
        assert "deaf no more" in log
        actions = {action for _kind, action in system.statistics().watchdog}
        assert actions >= {"cancelled", "abandoned", "came_back"}


async def test_p17_watchers_are_told_once(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        (watched,) = await supervise(system, Puppet)
        puppet = Puppet()
        watcher = system.spawn(puppet)
        await watcher.ask(do(lambda me: me.watch(watched)))
        with pytest.raises(CrashError):
            await watched.ask(crash)
        watched.kill()
        await trio.sleep(1)
        assert watched.is_alive()
        await watched.stop()
        await watcher.ask(do(lambda me: me.watch(watched)))
        await wait_settled(system)
        assert [type(word) for word in puppet.log[1:]] == [Terminated, Terminated]
