"""One process of a simulated run, from its start to its end, however that comes."""

from __future__ import annotations

import random  # noqa: TID251  only dice that a seed made are used
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import trio

from actors import names
from actors.inbound.listener import Listener
from actors.tree import tree
from runtime.actor.cell import Cell
from runtime.actor.dead_letters import DeadLetter
from runtime.actor.kernel import ASK_TIMEOUT, Kernel
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import RenewChild
from runtime.system import ActorSystem
from tests.fakes.company.company import Cast, bounce
from tests.simulation.checks.verdicts import Sizes, sizes
from tests.simulation.edges.disk import SimulatedStore
from tests.simulation.edges.edges import ToolBugError
from tests.simulation.faults import Strike
from tests.simulation.trace import Trace

# Kinds of actors whose death takes others with them; struck by `kill` only.
SUPERVISORS = ("Supervisor", "KeyedSupervisor")

# What the kernel reports when an actor has died, also one that was killed.
DEATHS = ("actor failed", "actor restarts", "key given up")


class SlipError(Exception):
    """Raised in the middle of a handler, to order."""


class Bomb:
    """A message that no actor understands: handling it fails the actor.

    Three times, then it is given up as poison. As a note in the system lane it kills
    once.
    """


class SeededKernel(Kernel):
    """A kernel whose jitter comes from the seed.

    Args:
        dice: seeded.
        report: called with what an operator should see.
    """

    def __init__(self, dice: random.Random, report: Any) -> None:
        super().__init__(ASK_TIMEOUT, report)
        self._dice = dice

    def roll(self) -> float:
        """Give a random number from 0 up to 1, for jitter."""
        return self._dice.random()


class Life:
    """One process: kernel, tree of actors and their end.

    Args:
        cast: who plays.
        trace: told of everything.
        dice: seeded.
        died: called when an actor has died.
        renewed: what takes the place of actors of the tree before anybody writes.
    """

    def __init__(
        self,
        cast: Cast,
        trace: Trace,
        dice: random.Random,
        died: Callable[[], object],
        renewed: Sequence[ChildSpec] = (),
    ) -> None:
        self._renewed = renewed
        self._died = died
        self._cast = cast
        self._trace = trace
        self._scope = trio.CancelScope()
        self._over = trio.Event()
        self._bombs = 0
        self._given_up = 0
        self.kernel = SeededKernel(dice, self._report)
        self.system = ActorSystem(self.kernel)
        self.how: Literal["", "crashed", "stopped", "ended"] = ""
        self.is_up = False
        self.sizes: Sizes = {}
        """How much its actors kept when it had just started."""

    @property
    def is_over(self) -> bool:
        """Whether it is ending, or has ended."""
        return bool(self.how)

    async def run(self) -> None:
        """Live until the end; the tasks are gone then, in order or not."""
        store = self._cast.store
        assert isinstance(store, SimulatedStore)
        self._trace.note("life", "", "begins")
        try:
            await self._run_until_over(store)
        except* ToolBugError:
            # Of two tools side by side one was cut off, the other failed just then.
            if self.how != "crashed":
                raise
        self.is_up = False
        self.kernel.dispatcher.close()

    async def _run_until_over(self, store: SimulatedStore) -> None:
        async with trio.open_nursery() as nursery:
            self._scope = nursery.cancel_scope
            self.kernel.open(nursery)
            nursery.start_soon(store.flush_for_ever)
            nursery.start_soon(self.kernel.dispatcher.run)
            nursery.start_soon(self.kernel.timers.run)
            await self._start(nursery)
            await self._over.wait()
            if self.how == "stopped":
                await self.system.stop()
                await store.settle()
            nursery.cancel_scope.cancel()

    async def _start(self, nursery: trio.Nursery) -> None:
        try:
            root = await self.system.start_root(tree(self._cast.company()), names.ROOT)
            for spec in self._renewed:
                await root.ask(RenewChild(spec))
        except Exception as error:  # noqa: BLE001  a process that does not start ends
            self._trace.note("life", "", f"does not start: {error}")
            self._finish("ended")
            return
        self.system.dead_letters.observe(partial(bounce, self.system))
        self.system.dead_letters.observe(self._see_letter)
        self.sizes = sizes(self.kernel, at_start=True)
        self.is_up = True
        nursery.start_soon(self._watch_root)

    async def _watch_root(self) -> None:
        try:
            await self.system.wait_ended()
        except Exception as error:  # noqa: BLE001  whatever it was, the process ends
            self._trace.note("life", "", f"root: {error}")
        self._finish("ended")

    def crash(self) -> None:
        """End at once, with nothing said to anybody."""
        if not self.is_over:
            self._finish("crashed")
        self._scope.cancel()

    def stop(self) -> None:
        """End in order."""
        if self.is_up:
            self._finish("stopped")

    def _finish(self, how: Literal["crashed", "stopped", "ended"]) -> None:
        if not self.how:
            self.how = how
        self.is_up = False
        self._over.set()

    # --- faults -----------------------------------------------------------------------

    def strike(self, strike: Strike) -> None:
        """Hit one actor."""
        if not self.is_up:
            return
        cell = self._victim(strike)
        self._trace.note("fault", "", f"{strike.kind} of {cell.name}")
        if strike.kind == "kill":
            cell.kill()
        elif strike.kind == "poison":
            self._bombs += cell.offer(Bomb())
        else:
            cell.post_system(Bomb())

    def _victim(self, strike: Strike) -> Cell:
        cells = list(self.kernel.names.values())
        wanted = [cell for cell in cells if _may_strike(cell, strike.kind)]
        return wanted[int(strike.roll * len(wanted))]

    @property
    def has_given_up_poison(self) -> bool:
        """Whether each message that kills was given up."""
        return self._bombs == self._given_up

    def judge_poison(self) -> None:
        """Judge I7: what kills three times is given up."""
        if not self.has_given_up_poison:
            text = f"{self._bombs} messages that kill, {self._given_up} given up"
            self._trace.violate("I7", text)

    def _see_letter(self, letter: DeadLetter) -> None:
        if isinstance(letter.message, Bomb):
            self._given_up += 1
            self._trace.note("kernel", "", f"bomb for {letter.recipient} given up")

    def _report(self, event: str, fields: dict[str, Any]) -> None:
        actor = str(fields.get("actor", ""))
        if event in DEATHS and "/turns/" not in actor:
            self._died()
        words = " ".join(f"{key}={value}" for key, value in fields.items())
        self._trace.note("kernel", "", f"{event}: {words}"[:200])


def _may_strike(cell: Cell, kind: str) -> bool:
    is_supervisor = cell.actor_class.__name__ in SUPERVISORS
    if kind != "kill":
        # A listener handles one message for as long as it lives.
        return not is_supervisor and cell.actor_class is not Listener
    # A part of the tree: an agent with its conversations, a connector with its way.
    return is_supervisor and cell.name.count("/") == 2
