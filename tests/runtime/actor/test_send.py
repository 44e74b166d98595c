"""Proves that `send` keeps trio's rule: who is cancelled has sent nothing."""

from __future__ import annotations

from typing import ClassVar

import pykka
import pytest
import trio
import trio.testing
from trio.testing import MockClock

from runtime.actor.mailbox import MailboxConfig
from runtime.testing import Probe, wait_settled
from tests.support.puppet import Puppet, hang, virtual


class Narrow(Puppet):
    """A puppet with one place."""

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=1, overflow="wait")


async def test_who_is_cancelled_has_sent_nothing(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        probe = Probe()
        ref = system.spawn(probe)
        with trio.CancelScope() as scope:
            scope.cancel()
            await ref.send("never sent")
        assert scope.cancelled_caught
        with trio.CancelScope() as scope:
            await ref.send("sent")
            scope.cancel()
        await wait_settled(system)
        assert probe.received == ["sent"]


async def test_who_waits_when_the_actor_ends_keeps_the_message(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        ref, refused = system.spawn(Narrow()), list[str]()

        async def send(word: str) -> None:
            with pytest.raises(pykka.ActorDeadError):
                await ref.send(word)
            refused.append(word)

        ref.tell(hang)
        await trio.testing.wait_all_tasks_blocked(0.001)
        ref.tell("lost")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send, "kept 1")
            nursery.start_soon(send, "kept 2")
            await trio.sleep(1)
            ref.kill()
        await send("kept 3")
        assert sorted(refused) == ["kept 1", "kept 2", "kept 3"]
        assert system.dead_letters.counts == {"killed": 2}
