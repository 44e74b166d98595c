"""Proves that whoever waits for room gets in wherever room is made."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import pytest
import trio
from trio.testing import MockClock

from runtime.actor.mailbox import Mailbox, MailboxConfig
from runtime.actor.ref import ActorRef, cell_of
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import RenewChild, Supervisor
from runtime.testing import CrashError, wait_settled
from tests.support.puppet import Puppet, virtual

NARROW = MailboxConfig(capacity=1, overflow="wait")


class Delicate(Puppet):
    """Whom one message may kill only once."""

    mailbox: ClassVar[MailboxConfig] = NARROW
    poison_after: ClassVar[int] = 1


async def stash_and_fail(me: Puppet) -> None:
    """Set the message aside, and fail when others have begun to wait."""
    me.stash()
    await trio.sleep(1)
    raise CrashError("to order")


async def send(ref: ActorRef, *words: str) -> None:
    await trio.sleep(0.5)
    with trio.fail_after(60):
        for word in words:
            await ref.send(word)


@pytest.mark.parametrize("act", ["ask", "tell"])
async def test_a_failed_message_makes_room_though_it_was_stashed(
    act: str, autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        spec = ChildSpec(name="child", start=partial(Delicate, log))
        ref = await system.spawn(Supervisor()).ask(RenewChild(spec))
        getattr(ref, act)(stash_and_fail)
        await send(ref, "one", "two", "three")
        await wait_settled(system)
        assert log[-3:] == ["one", "two", "three"]


class Wider(Puppet):
    """A puppet with more room."""

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=9, overflow="wait")


async def test_wider_bounds_let_those_in_who_wait(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        boss = system.spawn(Supervisor())

        def spec(kind: type[Puppet]) -> ChildSpec:
            return ChildSpec(name="child", start=partial(kind, log), shutdown=0)

        ref = await boss.ask(RenewChild(spec(Delicate)))
        ref.tell(stash_and_hang)
        cell = cell_of(ref)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send, ref, "one")
            await trio.sleep(1)
            cell.mailbox.adopt(Wider.mailbox)
            assert cell.mailbox.depth == 1
            await boss.ask(RenewChild(spec(Wider)))
        await wait_settled(system)
        assert log[-1] == "one"


async def stash_and_hang(me: Puppet) -> None:
    """Keep the only place, as long as this actor handles messages so."""
    me.stash()
    if me.log.count("start") == 1:
        await trio.sleep_forever()


class Shrinking:
    """A message that weighs less when it is taken than when it came."""

    weight = 100


def test_an_empty_mailbox_weighs_nothing() -> None:
    mailbox = Mailbox(MailboxConfig(max_bytes=100))
    message = Shrinking()
    assert mailbox.offer(message)
    message.weight = 10
    assert mailbox.get() is message
    assert mailbox.weight == 0
