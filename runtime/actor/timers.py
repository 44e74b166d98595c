"""Timers of all actors of a system: one heap, one task, cancelled lazily.

A timer fires as a message in its actor's system lane. It belongs to one
incarnation: when its actor restarts it is void, unless it was asked to survive.
Ask deadlines and handler deadlines use the same heap with a plain callback.

Timers of one actor: a message to itself, once or again and again.

They come in the system lane, belong to the incarnation that made them unless
they were asked to survive a restart, and end with their actor.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from math import isnan, ulp
from threading import get_ident
from typing import TYPE_CHECKING, Protocol

import msgspec
import trio

from runtime.actor.dispatcher import BATCH
from runtime.actor.envelope import Notice
from runtime.errors import MisuseError, why_no_time

if TYPE_CHECKING:
    from runtime.actor.kernel import Kernel


# Chosen: the heap is swept when more than half of it is void and it holds more than
# this many; below that a sweep costs more than the memory it frees.
SWEEP_ABOVE = 1024


SHORTEST = ulp(0.0)
"""Fewest seconds above 0."""


class Keeper(Protocol):
    """The part of an actor's cell that its timers need."""

    timers: set[Timer] | None
    """Those that have still to fire; None when there is none."""


class Timer(msgspec.Struct, eq=False):
    """One appointment; `cancel` voids it."""

    due: float
    """Seconds on trio's clock."""

    fire: Callable[[], object] | None
    """Called once when due, on the kernel thread; must not wait."""

    owner: Timers
    """The heap it stands in."""

    keeper: Keeper | None = None
    """Whose it is; it leaves the others when it fires or is cancelled."""

    survives: bool = False
    """Whether it outlives the incarnation that set it."""

    @property
    def is_active(self) -> bool:
        """Whether it has still to fire."""
        return self.fire is not None

    def cancel(self) -> bool:
        """Void the timer if this is the kernel's thread.

        On another thread it stays and fires for nothing: the heap has no lock.

        Returns:
            False if it had fired or was cancelled before, or stays.
        """
        if self.fire is None or get_ident() != self.owner.thread_id:
            return False
        self.fire = None
        if self.keeper is not None:
            self.leave()
        owner = self.owner
        owner.void += 1
        if not owner.void % (SWEEP_ABOVE // 2):  # not each time: it is a hot line
            owner.sweep()
        return True

    def leave(self) -> None:
        """Forget what to do and whose it was."""
        self.fire = None
        keeper, self.keeper = self.keeper, None
        if keeper is not None and keeper.timers is not None:
            keeper.timers.discard(self)
            if not keeper.timers:  # an empty set is as large as a mailbox
                keeper.timers = None


class Timers:
    """The heap and the task that fires what is due.

    Every method must be called on the kernel thread, which is the one that makes
    this object, or that last called `run`.

    Args:
        spend: counts what was fired; tells whether this turn goes on.
    """

    def __init__(self, spend: Callable[[int], bool]) -> None:
        self.now = trio.current_time
        """Seconds on the loop's clock."""

        self._spend = spend
        self.thread_id = get_ident()
        self._heap: list[tuple[float, int, Timer]] = []
        self._serial = 0
        self.void = 0
        """How many in the heap were cancelled."""

        self._sleeper: trio.CancelScope | None = None
        self._wake = trio.Event()

    def __len__(self) -> int:
        """How many timers have still to fire."""
        return len(self._heap) - self.void

    def call_at(
        self,
        due: float,
        fire: Callable[[], object],
        keeper: Keeper | None = None,
        *,
        survives: bool = False,
    ) -> Timer:
        """Call `fire` at `due` seconds on trio's clock.

        Args:
            fire: must not wait.
            keeper: whose it is; None: no actor's.
            survives: whether it outlives the incarnation that set it.

        Raises:
            MisuseError: `due` is not a number, which no heap could put in order.
        """
        if isnan(due):
            raise MisuseError("a timer needs a number of seconds, not nan")
        timer = Timer(due, fire, self, keeper, survives)
        if keeper is not None:
            if keeper.timers is None:
                keeper.timers = set()
            keeper.timers.add(timer)
        self._serial += 1
        heapq.heappush(self._heap, (due, self._serial, timer))
        if self._heap[0][2] is timer:
            self._stir()
        return timer

    def call_in(self, delay: float, fire: Callable[[], object]) -> Timer:
        """Call `fire` after `delay` seconds; else as `call_at`."""
        return self.call_at(self.now() + delay, fire)

    def sweep(self) -> None:
        """Forget the timers that are void, if they are most of many."""
        if self.void * 2 > len(self._heap) > SWEEP_ABOVE:
            self._heap = [entry for entry in self._heap if entry[2].fire is not None]
            heapq.heapify(self._heap)
            self.void = 0

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Fire timers until cancelled."""
        self.thread_id = get_ident()
        while True:
            self._fire_due()
            if not self._heap:
                self._wake = trio.Event()
                await self._wake.wait()
                continue
            with trio.CancelScope(deadline=self._heap[0][0]) as self._sleeper:
                await trio.sleep_forever()
            self._sleeper = None

    def _fire_due(self) -> None:
        """Fire what is due, as far as this turn goes; the rest is due in the next."""
        now = self.now()
        # Why: what a timer sets for at once waits for the loop's next round, or a
        # timer that sets itself again would keep everybody else waiting.
        last = self._serial
        left = BATCH
        while self._heap:
            due, serial, timer = self._heap[0]
            if timer.fire is not None and (due > now or serial > last):
                return
            heapq.heappop(self._heap)
            fire = timer.fire
            if fire is None:
                self.void -= 1
                continue
            timer.leave()
            fire()
            left -= 1
            if not left:
                if not self._spend(BATCH):
                    return
                left = BATCH

    def _stir(self) -> None:
        if self._sleeper is not None:  # it sleeps less long, and need not wake for that
            self._sleeper.deadline = self._heap[0][0]
        else:
            self._wake.set()


class Owner(Protocol):
    """The part of a cell that timers need."""

    kernel: Kernel
    generation: int
    timers: set[Timer] | None

    def post_system(self, message: object) -> None:
        """Take a message in."""
        ...


def every(
    owner: Owner, period: float, message: object, *, survives_restart: bool
) -> Callable[[], bool]:
    """Tell the owner `message` every `period` seconds until the result is called.

    Raises:
        MisuseError: `period` is not above 0.
    """
    if wrong := why_no_time(period, SHORTEST):
        raise MisuseError(f"a timer needs a period above 0 seconds, {wrong}")
    notice = Notice(message, None if survives_restart else owner.generation)
    call_at = owner.kernel.timers.call_at

    timer: Timer

    def fire() -> None:
        nonlocal timer
        # Why not `period` from now: a loop that is late would be later each time.
        now = owner.kernel.now()
        due = timer.due + period * ((now - timer.due) // period + 1)
        # Why a minimum: dividing by a tiny period may give infinity.
        due = min(now + period, due)
        timer = call_at(due, fire, owner, survives=survives_restart)
        if not notice.is_waiting:
            notice.is_waiting = True
            owner.post_system(notice)

    due = owner.kernel.now() + period
    timer = call_at(due, fire, owner, survives=survives_restart)

    def cancel() -> bool:
        return timer.cancel()

    return cancel
