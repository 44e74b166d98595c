"""Proves that no actor, plain or `async`, keeps the others or the loop waiting."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import trio

from runtime.actor.actor import Actor
from runtime.actor.dispatcher import BATCH
from runtime.actor.mailbox import MailboxConfig
from runtime.testing import Probe, wait_settled
from tests.support.puppet import virtual

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio.testing import MockClock

ROOMY = MailboxConfig(capacity=100_000)


class Plain(Actor):
    """Calls what it is told; its handler does not wait.

    Takes: functions.
    Sends: what they send.
    Keeps: how many it called.
    Fails: as they do.
    Ends: with its system.
    """

    mailbox = ROOMY

    def __init__(self) -> None:
        super().__init__()
        self.handled = 0

    def on_receive(self, message: Callable[[], None] | None) -> Any:
        self.handled += 1
        if message is not None:
            message()


class Swift(Plain):
    """The same from an `async` handler that never suspends."""

    async def on_receive(self, message: Callable[[], None] | None) -> None:
        super().on_receive(message)


KINDS = pytest.mark.parametrize("kind", [Plain, Swift])


@KINDS
async def test_a_flooded_actor_gives_way(
    kind: type[Plain], autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        flooded = kind()
        other = Probe(lambda _message: seen.append(flooded.handled))
        seen: list[int] = []
        ref, other_ref = system.spawn(flooded), system.spawn(other)
        ref.tell(lambda: other_ref.tell("your turn"))
        for _ in range(5000):
            ref.tell(None)
        await wait_settled(system)
        assert flooded.handled == 5001
        assert seen[0] <= BATCH


@KINDS
async def test_who_tells_itself_leaves_the_loop_its_turns(
    kind: type[Plain], autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        actor, turns = kind(), Counter[str]()
        ref = system.spawn(actor)

        def again() -> None:
            if turns["loop"] < 10 and actor.handled < 100_000:
                ref.tell(again)

        ref.tell(again)
        while turns["loop"] < 10:
            await trio.lowlevel.checkpoint()
            turns["loop"] += 1
        assert actor.handled < 100_000


@KINDS
async def test_a_flooded_actor_keeps_its_order(
    kind: type[Plain], autojump_clock: MockClock, order: int
) -> None:
    async with virtual(autojump_clock) as system:
        ref, told = system.spawn(kind(), name=f"order{order}"), list[int]()

        def teller(number: int) -> Callable[[], None]:
            return lambda: told.append(number)

        for number in range(300):
            ref.tell(teller(number))
        await wait_settled(system)
        assert told == list(range(300))
