"""Carries out the rows of the supervisor tables, and writes down what happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pykka
import trio
import trio.testing

from runtime.actor.actor import Actor
from runtime.actor.ref import ActorRef
from runtime.errors import DeclineStart, KernelError
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import (
    RenewChild,
    RestartChild,
    StartChild,
    StopChild,
    Supervisor,
    SupervisorConfig,
)
from runtime.system import ActorSystem
from tests.support.supervisor.cases import Case, Kid

PATIENT = 1e6


class CrashError(Exception):
    """Raised to order."""


class Crash:
    """Crashes whoever handles it, `times` times, `after` some seconds."""

    def __init__(self, times: int = 1, after: float = 0.0) -> None:
        self.left = times
        self.after = after

    def strike(self) -> None:
        self.left -= 1
        if self.left >= 0:
            raise CrashError("to order")

    async def strike_late(self) -> None:
        await trio.sleep(self.after)
        self.strike()


async def sleep_deaf() -> None:
    with trio.CancelScope(shield=True):
        await trio.sleep(1000)


async def sleep_long() -> None:
    await trio.sleep_forever()


class Stage:
    """One supervisor on its system, and the log of its children."""

    def __init__(self, system: ActorSystem, case: Case) -> None:
        self.system = system
        self.case = case
        self.log: list[str] = []
        self.born: Counter[str] = Counter()
        self.refs: dict[str, ActorRef] = {}
        self.refusal: str | None = None

    def note(self, name: str, event: str) -> None:
        now = round(trio.current_time(), 3)
        self.log.append(f"{name} {event} {now:g}" if now else f"{name} {event}")

    def spec(self, kid: Kid, path: str = "") -> ChildSpec:
        path += kid.name
        return ChildSpec(
            name=kid.name,
            start=lambda: self.make(kid, path),
            restart=kid.restart,
            shutdown=kid.shutdown,
            start_timeout=kid.start_timeout,
        )

    def make(self, kid: Kid, path: str) -> Actor:
        if kid.kids is not None:
            specs = [self.spec(each, f"{path}/") for each in kid.kids]
            return Supervisor(specs, kid.config)
        self.born[path] += 1

        class Kind(Worker):
            deadline = kid.deadline

        return Kind(self, kid, path)

    async def play(self) -> None:
        case = self.case
        config = SupervisorConfig(
            strategy=case.strategy,
            intensity=case.intensity,
            period=5.0,
            backoff=case.backoff,
        )
        top = Supervisor([self.spec(each) for each in case.kids], config)
        try:
            self.refs["."] = await self.system.start_root(top, ".")
        except KernelError as error:
            self.refusal = type(error).__name__
            self.note(".", self.refusal)
            return
        for step in case.steps:
            async with trio.open_nursery() as nursery:
                for part in step.split(" & "):
                    self.act(nursery, *part.split())
            await trio.testing.wait_all_tasks_blocked()

    def ref(self, name: str) -> ActorRef:
        """Give the first ref there was of that name, as long as it is alive."""
        known = self.refs.get(name)
        if known is None or not known.is_alive():
            found = self.system.find(f"./{name}")
            assert found is not None, f"nobody is called {name}"
            known = self.refs[name] = found
        return known

    def act(
        self, nursery: trio.Nursery, verb: str, name: str = "", word: str = ""
    ) -> None:
        match verb:
            case _ if verb in ASKS:
                nursery.start_soon(self.ask, verb, name)
            case "end":
                nursery.start_soon(self.end)
            case "wait":
                nursery.start_soon(trio.sleep, float(name))
            case "look":
                self.note(str(len(self.alive())), "alive")
            case "tell":
                self.ref(name).tell(word)
            case _ if verb in ORDERS:
                self.ref(name).tell(ORDERS[verb]())
            case _:
                CALLS[verb](self.ref(name))

    async def end(self) -> None:
        self.note("end", str(await self.refs["."].stop()))

    async def ask(self, verb: str, name: str) -> None:
        message = ASKS[verb](self, name)
        answer: Any
        try:
            answer = await self.refs["."].ask(message, timeout=PATIENT)
        except (KernelError, CrashError, pykka.ActorDeadError) as error:
            answer = type(error).__name__
        self.note(f"{verb} {name}", str(answer))

    def new(self, name: str) -> StartChild:
        return StartChild(
            self.spec(next(kid for kid in self.case.extra if kid.name == name))
        )

    def why_ended(self) -> str | None:
        """Tell why the supervisor is gone, if it is."""
        top = self.refs.get(".")
        if top is None or top.is_alive():
            return self.refusal
        exit_ = top.final_exit
        return exit_.reason if exit_ is not None else ""

    def alive(self) -> list[str]:
        names = [stats.name for stats in self.system.actors()]
        return sorted(name.removeprefix("./") for name in names if name != ".")


ORDERS: dict[str, Callable[[], object]] = {
    "crash": Crash,
    "poison": lambda: Crash(times=99),
    "late": lambda: Crash(after=1),
    "busy": lambda: "busy",
    "hang": lambda: "hang",
    "deaf": lambda: "deaf",
    "exit": lambda: "exit",
}

CALLS: dict[str, Callable[[ActorRef], object]] = {
    "interrupt": lambda ref: ref.interrupt(),
    "kill": lambda ref: ref.kill(),
    "shutdown": lambda ref: ref.stop(),
}

ASKS: dict[str, Callable[[Stage, str], object]] = {
    "start": Stage.new,
    "stop": lambda _, name: StopChild(name),
    "forget": lambda _, name: StopChild(name, forget=True),
    "restart": lambda _, name: RestartChild(name),
    "renew": lambda stage, name: RenewChild(stage.new(name).spec),
    "say": lambda _, name: name,
}


class Worker(Actor):
    """A child that does as its row says."""

    def __init__(self, stage: Stage, kid: Kid, path: str) -> None:
        super().__init__()
        self._stage = stage
        self._kid = kid
        self._path = path
        words = kid.start.split()
        self._start = words[min(stage.born[path], len(words)) - 1]
        if self._start == "unborn":
            raise CrashError("to order")

    def on_start(self) -> Any:
        match self._start:
            case "fail":
                raise CrashError("to order")
            case "decline":
                raise DeclineStart
            case "ok":
                self._stage.note(self._path, "up")
                return None
            case word:
                return self._start_late(word)

    async def _start_late(self, word: str) -> None:
        match word:
            case "hang":
                await trio.sleep_forever()
            case "deaf":
                await sleep_deaf()
            case _:
                await trio.sleep(1)
        if word == "late-fail":
            raise CrashError("to order")
        if word == "late-decline":
            raise DeclineStart
        self._stage.note(self._path, "up")

    def on_stop(self) -> Any:
        return self._end("down")

    def on_failure(
        self, exception_type: object, exception_value: object, traceback: object
    ) -> Any:
        del exception_type, exception_value, traceback
        return self._end("failed")

    def _end(self, event: str) -> Any:
        match self._kid.stop:
            case "fail":
                raise CrashError("to order")
            case "ok":
                self._stage.note(self._path, event)
                return None
            case word:
                return self._end_late(word, event)

    async def _end_late(self, word: str, event: str) -> None:
        match word:
            case "hang":
                await trio.sleep_forever()
            case "deaf":
                await sleep_deaf()
            case "late-fail":
                await trio.sleep(1)
                raise CrashError("to order")
            case _:
                await trio.sleep(1)
        self._stage.note(self._path, event)

    def on_receive(self, message: Any) -> Any:
        match message:
            case Crash(after=0):
                message.strike()
            case Crash():
                return message.strike_late()
            case "exit":
                self.stop()
            case "hang":
                return sleep_long()
            case "deaf":
                return sleep_deaf()
            case "busy":
                return self._work()
            case _:
                self._stage.note(self._path, f"got {message}")
        return None

    async def _work(self) -> None:
        await trio.sleep(1)
        self._stage.note(self._path, "done")
