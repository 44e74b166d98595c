"""Proves that whatever an actor's code raises is judged, and ends nobody else."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest
import trio
from trio.testing import MockClock

from runtime.actor.actor import Actor
from runtime.actor.messages import Passivate
from runtime.actor.ref import ActorRef, cell_of
from runtime.errors import KernelError
from runtime.testing import wait_settled
from tests.support.puppet import Puppet, hang, virtual


class StrangeError(BaseException):
    """What some libraries raise to get past `except Exception`."""


def leave(_me: Actor) -> NoReturn:
    raise SystemExit(3)


async def leave_late() -> None:
    await trio.sleep(0.1)
    raise SystemExit(3)


async def leave_from_a_nursery(_me: Actor) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(leave_late)
        nursery.start_soon(trio.sleep, 100)


class Leaver(Puppet):
    """Leaves when it is interrupted, or asked whether it may sleep."""

    def on_interrupt(self, message: Any) -> None:
        del message
        raise SystemExit(3)

    def may_passivate(self) -> bool:
        raise SystemExit(3)


async def be_interrupted(ref: ActorRef) -> None:
    ref.tell(hang)
    await trio.sleep(1)
    ref.interrupt()


async def be_put_to_sleep(ref: ActorRef) -> None:
    await trio.sleep(1)
    cell_of(ref).post_system(Passivate())


async def be_told(ref: ActorRef) -> None:
    await trio.lowlevel.checkpoint()
    ref.tell(leave)


async def be_told_of_a_nursery(ref: ActorRef) -> None:
    await trio.lowlevel.checkpoint()
    ref.tell(leave_from_a_nursery)


@pytest.mark.parametrize(
    "how", [be_told, be_told_of_a_nursery, be_interrupted, be_put_to_sleep]
)
async def test_wherever_the_program_is_ended_it_ends_in_order(
    how: Any, autojump_clock: MockClock
) -> None:
    keeper = Puppet()
    with pytest.raises(SystemExit) as left:  # noqa: PT012  the block is what raises
        async with virtual(autojump_clock) as system:
            system.spawn(keeper)
            await how(system.spawn(Leaver()))
            await trio.sleep(10)
    assert left.value.code == 3
    assert keeper.log == ["start", "stop"]


def be_strange(_me: Actor) -> NoReturn:
    raise StrangeError


async def be_strange_late(_me: Actor) -> NoReturn:
    await trio.sleep(1)
    raise StrangeError


@pytest.mark.parametrize("act", [be_strange, be_strange_late])
async def test_what_is_no_exception_fails_its_actor_only(
    act: Any, autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        ref, keeper = system.spawn(puppet), system.spawn(Puppet())
        with pytest.raises(KernelError) as asked:
            await ref.ask(act)
        assert isinstance(asked.value.__cause__, StrangeError)
        assert ref.is_alive()
        ref.tell(act)
        await wait_settled(system)
        assert puppet.log == ["start", "failure"]
        assert keeper.is_alive()
