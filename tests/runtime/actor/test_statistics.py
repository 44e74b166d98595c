"""Proves what actors tell of themselves, besides how many messages they handled."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Keyed
from runtime.system import LONGEST_END
from runtime.testing import CrashError, wait_settled
from tests.support.puppet import Puppet, do, supervise, virtual, wait


async def test_actors_tell_what_they_are_about(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet(), mailbox=MailboxConfig(capacity=7))
        ref.ask(Keyed("key", "words"))
        await wait_settled(system)
        (idle,) = system.actors()
        assert (idle.handling, idle.limit, idle.last_end) == ("", 7, "")
        reply = ref.ask(wait(2))
        await trio.sleep(1)
        assert [each.handling for each in system.actors()] == ["function"]
        await reply


async def test_actors_tell_how_they_ended_last(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        failing, killed = await supervise(system, Puppet, Puppet)
        failing.tell(do(lambda _: fail("x" * 2 * LONGEST_END)))
        killed.kill()
        await wait_settled(system)
        ends = {each.name: each.last_end for each in system.actors()}
        assert ends["root"] == ""
        assert ends[killed.name] == "killed"
        assert ends[failing.name].startswith("CrashError: xxx")
        assert len(ends[failing.name]) == LONGEST_END


def fail(text: str) -> None:
    raise CrashError(text)
