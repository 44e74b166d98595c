"""An actor as somebody writes it who knows only the public names.

Never run by itself: both type checkers must accept every line, see `pyproject.toml`,
and `tests/runtime/test_testing.py` runs `main` once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from runtime import (
    Actor,
    ActorRef,
    ActorSystem,
    ChildSpec,
    Keyed,
    KeyedConfig,
    KeyedSupervisor,
    MailboxConfig,
    Reply,
    Supervisor,
    SupervisorConfig,
    SystemConfig,
    Terminated,
    Timer,
    open_system,
)


class Add(msgspec.Struct, frozen=True):
    """Asks for a new sum."""

    amount: int


class Forget(msgspec.Struct, frozen=True):
    """Says that the sum is out of date."""


class Adder(Actor):
    """Keeps a sum, for a while."""

    mailbox = MailboxConfig(capacity=16, overflow="wait")
    deadline = 5.0

    def __init__(self, start: int = 0) -> None:
        super().__init__()
        self.sum = start
        self.timer: Timer | None = None

    def on_start(self) -> None:
        self.timer = self.after(60.0, Forget())

    async def on_receive(self, message: Any) -> int | None:
        match message:
            case Add(amount=amount):
                self.sum += amount
                return self.sum
            case Forget():
                self.sum = 0
            case Terminated(ref=ref):
                self.unwatch(ref)
            case _:
                super().on_receive(message)
        return None


async def use(system: ActorSystem) -> int:
    """Ask a supervised actor and one that is addressed by key."""
    spec = ChildSpec(name="adder", start=lambda: Adder(1), restart="transient")
    await system.start_root(Supervisor([spec], SupervisorConfig(intensity=1)))
    ref: ActorRef | None = system.find("root/adder")
    assert ref is not None
    first: int = await ref.ask(Add(2), timeout=1.0)
    later: Reply = ref.ask(Add(3))
    await ref.send(Add(4))
    keyed = system.spawn(
        KeyedSupervisor(lambda _key: Adder(), KeyedConfig(idle_after=60.0))
    )
    second: int = await keyed.ask(Keyed("anna", Add(10)))
    third: int = await later
    return first + second + third


async def main() -> int:
    """Open a system and use it."""
    async with open_system(SystemConfig(ask_timeout=2.0)) as system:
        return await use(system)
