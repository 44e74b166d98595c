"""Proves that an actor whose handler runs as long as it does ends when told to."""

from __future__ import annotations

from typing import Any, ClassVar

import trio
import trio.testing
from trio.testing import MockClock

from tests.support.puppet import Puppet, hang, supervise, virtual


class Listener(Puppet):
    """A puppet that may hang for as long as it lives."""

    deadline: ClassVar[float | None] = None
    ends_by_interrupt: ClassVar[bool] = True


def hang_next(me: Puppet) -> None:
    me.note(hang)
    me.stop()


async def test_stop_ends_what_it_is_handling(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        listener = Listener()
        ref = system.spawn(listener)
        ref.tell(hang)
        await trio.testing.wait_all_tasks_blocked(0.001)
        with trio.fail_after(1):
            await ref.stop()
    assert listener.log == ["start", "interrupt", "stop"]


async def test_stop_overtakes_notes_it_wrote_itself(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        listener = Listener()
        ref = system.spawn(listener)
        ref.tell(hang_next)
        with trio.fail_after(1):
            await system.stop()
    assert "interrupt" not in listener.log


async def test_its_supervisor_need_not_wait_either(autojump_clock: MockClock) -> None:
    log: list[Any] = []
    async with virtual(autojump_clock) as system:
        (ref,) = await supervise(system, lambda: Listener(log))
        ref.tell(hang)
        await trio.testing.wait_all_tasks_blocked(0.001)
        began = trio.current_time()
        await system.stop()
        assert trio.current_time() - began < 1
    assert log == ["start", "interrupt", "stop"]
