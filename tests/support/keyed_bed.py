"""Actors addressed by key, for tests: what they do, and what they were told."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import msgspec
import trio

from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Keyed
from runtime.actor.ref import ActorRef
from runtime.actor.reply import Reply
from runtime.errors import DeclineStart
from runtime.supervision.keyed import KeyedConfig, KeyedSupervisor
from runtime.supervision.restarts import Backoff
from runtime.system import ActorSystem
from runtime.testing import Probe, Reports, open_test_system

STEADY = Backoff(jitter=0.0)
SLEEPY = KeyedConfig(idle_after=10.0, backoff=STEADY)


class BrokenError(Exception):
    """Raised to order."""


class Ways(msgspec.Struct):
    """How the children of a bed behave; may be changed while they run."""

    start: str = "ok"
    """ok, fail, decline, unborn; slow (1 s), late-fail, late-decline, hang,
    deaf (to its cancellation)."""

    stop: str = "ok"
    """ok, slow (1 s), hang."""

    is_sleepy: bool = True


class Bed:
    """A keyed supervisor, its children's log and the probe that hears of keys."""

    def __init__(self, system: ActorSystem, ways: Ways) -> None:
        self.system = system
        self.ways = ways
        self.log: list[str] = []
        self.born: Counter[str] = Counter()
        self.heard = Probe()
        self._ref: ActorRef | None = None

    def open(self, config: KeyedConfig) -> None:
        notify = self.system.spawn(self.heard, name="heard")
        actor = KeyedSupervisor(lambda key: Sleeper(self, key), config, notify)
        self._ref = self.system.spawn(actor, name="bed")

    @property
    def ref(self) -> ActorRef:
        assert self._ref is not None
        return self._ref

    def note(self, key: str, event: object) -> None:
        now = round(trio.current_time(), 3)
        self.log.append(f"{key} {event} {now:g}" if now else f"{key} {event}")

    def tell(self, key: str, *messages: object) -> None:
        for message in messages:
            self.ref.tell(Keyed(key, message))

    async def ask(self, key: str, message: object) -> Any:
        return await self.asked(key, message)

    def asked(self, key: str, message: object) -> Reply:
        reply: Reply = self.ref.ask(Keyed(key, message), timeout=1e6)
        return reply

    def child(self, key: str) -> ActorRef:
        ref = self.system.find(f"bed/{key}")
        assert ref is not None, f"{key} is not awake"
        return ref

    def awake(self) -> str:
        names = [each.name for each in self.system.actors()]
        return " ".join(sorted(name[4:] for name in names if name.startswith("bed/")))

    def lost(self) -> list[tuple[str, object]]:
        letters = self.system.dead_letters.last()
        return [(letter.reason, letter.message) for letter in letters]


@asynccontextmanager
async def open_bed(
    config: KeyedConfig = SLEEPY,
    ways: Ways | None = None,
    reports: Reports | None = None,
) -> AsyncGenerator[Bed]:
    async with open_test_system(reports) as system:
        bed = Bed(system, ways or Ways())
        bed.open(config)
        yield bed


class Sleeper(Actor):
    """A child that writes down what it is told and does some of it."""

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=50)

    def __init__(self, bed: Bed, key: str) -> None:
        super().__init__()
        self._bed = bed
        self._key = key
        bed.born[key] += 1
        if bed.ways.start == "unborn":
            raise BrokenError("to order")

    def on_start(self) -> Any:
        match self._bed.ways.start:
            case "ok":
                self._bed.note(self._key, "up")
                return None
            case "fail":
                raise BrokenError("to order")
            case "decline":
                raise DeclineStart
            case word:
                return self._start_late(word)

    async def _start_late(self, word: str) -> None:
        if word == "hang":
            await trio.sleep_forever()
        with trio.CancelScope(shield=word == "deaf"):
            await trio.sleep(1000 if word == "deaf" else 1)
        if word == "late-fail":
            raise BrokenError("to order")
        if word == "late-decline":
            raise DeclineStart
        self._bed.note(self._key, "up")

    def on_stop(self) -> Any:
        if self._bed.ways.stop == "ok":
            self._bed.note(self._key, "down")
            return None
        return self._stop_late()

    async def _stop_late(self) -> None:
        if self._bed.ways.stop == "hang":
            await trio.sleep_forever()
        await trio.sleep(1)
        self._bed.note(self._key, "down")

    def may_passivate(self) -> bool:
        return self._bed.ways.is_sleepy

    def on_receive(self, message: Any) -> Any:
        self._bed.note(self._key, message)
        match message:
            case "break":
                raise BrokenError("to order")
            case "leave":
                self.stop()
            case "keep":
                self.stash()
            case float():
                return self._work(message)
            case _:
                pass
        return f"{message}, of course"

    async def _work(self, seconds: float) -> str:
        await trio.sleep(seconds)
        return "done"

    def on_interrupt(self, message: object) -> None:
        self._bed.note(self._key, f"{message} interrupted")
