"""A test kit for actors: systems in virtual time, probes, crashes to order.

Public: whoever writes an actor tests it with this. Use it under trio's
`MockClock` (pytest-trio's `autojump_clock`), so that an hour takes no time.

    async def test_the_echo_answers(autojump_clock):
        async with open_test_system() as system:
            echo = system.spawn(Echo())
            assert await echo.ask("hello") == "hello"
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import trio
import trio.testing

from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.system import ActorSystem, SystemConfig, open_system

T = TypeVar("T")


class CrashError(Exception):
    """Raised to order by `CrashOn`."""


class Reports:
    """What the kernel reported to the operator, in order."""

    def __init__(self) -> None:
        self.all: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, event: str, fields: dict[str, Any]) -> None:
        """Keep one report."""
        self.all.append((event, fields))

    def of(self, event: str) -> list[dict[str, Any]]:
        """Give the fields of every report of that event."""
        return [fields for name, fields in self.all if name == event]


@asynccontextmanager
async def open_test_system(
    reports: Reports | None = None, *, ask_timeout: float = 30.0
) -> AsyncGenerator[ActorSystem]:
    """Open a system without a watchdog thread, which virtual time cannot see.

    Args:
        reports: collects what an operator would be told; None: thrown away.
        ask_timeout: seconds an ask waits unless it says otherwise.
    """
    config = SystemConfig(ask_timeout=ask_timeout)
    async with open_system(config, report=reports or Reports()) as system:
        yield system


class Probe(Actor):
    """An actor that keeps what it is told, for a test to look at.

    Args:
        answer: makes the answer to an ask; None answers None.
    """

    mailbox = MailboxConfig(capacity=1_000_000)

    def __init__(self, answer: Callable[[Any], Any] | None = None) -> None:
        super().__init__()
        self._answer = answer
        self.received: list[Any] = []
        self._changed = trio.Event()

    def on_receive(self, message: Any) -> Any:
        """Keep a message, wake who waits for it, answer."""
        self.received.append(message)
        self._changed.set()
        self._changed = trio.Event()
        return self._answer(message) if self._answer is not None else None

    async def wait_count(self, count: int, *, within: float = 10.0) -> list[Any]:
        """Wait until at least `count` messages have come; give them all.

        Raises:
            AssertionError: they did not come within `within` seconds.
        """
        with trio.move_on_after(within):
            while len(self.received) < count:
                await self._changed.wait()
        if len(self.received) < count:
            text = f"{len(self.received)} of {count} messages came: {self.received!r}"
            raise AssertionError(text)
        return self.received

    async def wait_for(self, kind: type[T], *, within: float = 10.0) -> T:
        """Wait for the first message of a class.

        Raises:
            AssertionError: none came within `within` seconds.
        """
        with trio.move_on_after(within):
            while True:
                for message in self.received:
                    if isinstance(message, kind):
                        return message
                await self._changed.wait()
        text = f"no {kind.__name__} came within {within} s: {self.received!r}"
        raise AssertionError(text)


def crash_on(actor_class: type[Actor], *counts: int) -> type[Actor]:
    """Make a subclass that raises `CrashError` at the n-th messages it gets.

    Counted over all incarnations; a message that comes again after a crash counts
    again.

    Args:
        counts: which messages to crash on, from 1.
    """
    seen = [0]

    class CrashOn(actor_class):  # type: ignore[misc,valid-type]
        def on_receive(self, message: Any) -> Any:
            seen[0] += 1
            if seen[0] in counts:
                raise CrashError(f"message {seen[0]}, to order")
            return super().on_receive(message)

    CrashOn.__name__ = f"CrashOn{actor_class.__name__}"
    return CrashOn


@contextmanager
def seeded_order(seed: int) -> Generator[None]:
    """Let trio run ready tasks in an order fixed by `seed`.

    trio shuffles them with a private generator; a test of this repository fails
    loudly if it goes away.
    """
    dice = trio._core._run._r  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    before = dice.getstate()
    dice.seed(seed)
    try:
        yield
    finally:
        dice.setstate(before)


async def wait_settled(system: ActorSystem, *, within: float = 10.0) -> None:
    """Wait until nobody has a message waiting, handles one, starts or ends.

    An actor between two incarnations counts as settled: only time will change it.

    Raises:
        AssertionError: that was not so within `within` seconds.
    """
    busy: list[str] = []
    with trio.move_on_after(within):
        while True:
            await trio.testing.wait_all_tasks_blocked()
            actors = system.actors()
            busy = [a.name for a in actors if not a.is_idle and a.state != "down"]
            if not busy:
                return
            await trio.sleep(0.01)
    raise AssertionError(f"still busy after {within} s: {', '.join(busy)}")
