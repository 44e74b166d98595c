"""An actor that does what its messages say, so that a test reads from top to bottom."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, ClassVar

import trio
import trio.testing

from runtime.actor.actor import Actor
from runtime.actor.ref import ActorRef
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import Supervisor, SupervisorConfig
from runtime.system import ActorSystem
from runtime.testing import CrashError, Reports, open_test_system

FOR_EVER = 1e9
"""Seconds of virtual time in which whatever ends has ended."""

FAR = 60.0
"""Most seconds of virtual time between two looks."""


class Puppet(Actor):
    """Calls a message that can be called, with itself; keeps any other.

    Args:
        log: what all incarnations were told, and what became of them.
    """

    deadline: ClassVar[float | None] = 10.0

    def __init__(self, log: list[Any] | None = None) -> None:
        super().__init__()
        self.log: list[Any] = [] if log is None else log

    def on_start(self) -> Any:
        self.log.append("start")

    def on_stop(self) -> Any:
        self.log.append("stop")

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> Any:
        del exception_type, exception_value, traceback
        self.log.append("failure")

    def on_interrupt(self, message: Any) -> None:
        del message
        self.log.append("interrupt")

    def on_receive(self, message: Any) -> Any:
        if callable(message):
            return message(self)
        self.log.append(message)
        return message


def do(act: Callable[[Puppet], Any]) -> Any:
    """Make a message of what a puppet is to do; says its type for a lambda."""
    return act


async def hang(_me: Actor) -> None:
    """Wait for ever."""
    await trio.sleep_forever()


async def be_deaf(me: Puppet) -> str:
    """Wait for a hundred seconds, whoever cancels it; write down when it is over."""
    with trio.CancelScope(shield=True):
        await trio.sleep(100)
    me.log.append("deaf no more")
    return "late"


def crash(_me: Actor) -> None:
    """Fail."""
    raise CrashError("to order")


def wait(seconds: float, word: str = "waited") -> Callable[[Puppet], Any]:
    """Make a message that takes that long, then writes down `word` and answers it."""

    async def run(me: Puppet) -> str:
        await trio.sleep(seconds)
        me.log.append(word)
        return word

    return run


@asynccontextmanager
async def virtual(
    clock: trio.testing.MockClock, reports: Reports | None = None
) -> AsyncGenerator[ActorSystem]:
    """Open a system whose time jumps, so that an hour takes no time.

    A test in which everybody waits for ever fails at once, instead of hanging.
    """
    assert clock.autojump_threshold == 0
    with trio.fail_after(FOR_EVER):
        async with open_test_system(reports) as system:
            yield system


async def pause(step: float) -> None:
    """Wait `step` seconds, or in time that jumps: as many of them as change nothing.

    Whoever looks again and again whether something is so looks at the same moments as
    if each step were waited for by itself, less those before which nobody has done
    anything. All that can be done at such a moment has been done.
    """
    clock = trio.lowlevel.current_clock()
    steps = 1
    # A thread at work is no deadline, and may change anything.
    if (
        isinstance(clock, trio.testing.MockClock)
        and clock.autojump_threshold == 0
        and not trio.to_thread.current_default_thread_limiter().borrowed_tokens
    ):
        left = trio.lowlevel.current_statistics().seconds_to_next_deadline
        steps = max(1, math.ceil(min(left, FAR) / step))
    await trio.sleep(step * steps)
    await trio.testing.wait_all_tasks_blocked()


async def supervise(
    system: ActorSystem, *makes: Callable[[], Actor], intensity: int = 5
) -> list[ActorRef]:
    """Start a root supervisor with these children; give their refs."""
    specs = [
        ChildSpec(name=f"child{number}", start=make)
        for number, make in enumerate(makes)
    ]
    config = SupervisorConfig(intensity=intensity)
    await system.start_root(Supervisor(specs, config))
    refs = [system.find(f"root/{spec.name}") for spec in specs]
    return [ref for ref in refs if ref is not None]
