"""The run queue: who has messages, and the one task that lets them handle some.

An idle actor owns no task. Its first message puts it on the queue; the pump lets
each actor on it handle a batch, then gives trio a turn. Messages from foreign
threads arrive through one queue that is emptied with one wake-up per burst.

Measured (see benchmarks): a trio scheduling step costs about 5 µs, so anything
that switches tasks per message stays below 0.2 M messages/s; this does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from threading import get_ident
from typing import Protocol

import pykka
import trio

from runtime.errors import MailboxFullError, MisuseError

# Chosen: how many messages one actor may handle before the next gets its turn.
BATCH = 64

# Chosen: how many messages are handled before trio sees to its other tasks, and for
# how long, so that a flood delays I/O by little more. Pump, `async` handlers, lent
# turns and foreign threads spend the same turn.
MESSAGES_PER_TURN = 2048
SECONDS_PER_TURN = 0.002

# Chosen: what it counts for, in messages, to let an actor have its turn at all.
STEP = 3

# Chosen: how many actors may pass a message on inside each other; far below Python's
# limit of calls. The next one has it by its mailbox.
DEEPEST = 16

# Chosen: messages from foreign threads on their way; far above what the pump leaves
# waiting in a turn, and a bound on memory when the kernel is blocked.
MOST_FOREIGN = 100_000


class Addressee(Protocol):
    """Whom a call from a foreign thread is for."""

    name: str


class Runnable(Protocol):
    """Something with messages to handle."""

    handled: int
    """Messages so far."""

    is_queued: bool
    """Whether it is on the run queue."""

    def step(self, batch: int) -> object:
        """Handle up to `batch` messages; ask for another turn if some remain."""
        ...


class Turn(trio.abc.Instrument):
    """What actors may still do before trio sees to its other tasks and to I/O.

    It is trio's instrument only while a turn is over: to be called in each of trio's
    rounds costs more than a turn that ends early, as the first after a pause does.
    """

    def __init__(self) -> None:
        self.left = MESSAGES_PER_TURN
        self.now: Callable[[], float] = lambda: 0.0
        self._ends: float | None = None
        self._is_over = False

    def after_io_wait(self, timeout: float) -> None:  # noqa: ARG002  trio's
        """Begin the next turn."""
        self.left = MESSAGES_PER_TURN
        self._ends = None
        self.close()

    def close(self) -> None:
        """Be no instrument of trio any more."""
        if self._is_over:
            self._is_over = False
            trio.lowlevel.remove_instrument(self)

    def spend(self, messages: int) -> bool:
        """Count what was handled; tell whether the turn goes on."""
        self.left -= messages
        now = self.now()
        if self._ends is None:
            self._ends = now + SECONDS_PER_TURN
        if self.left > 0 and now < self._ends:
            return True
        if not self._is_over:
            # In this order: an interrupt in between would end all turns for ever.
            trio.lowlevel.add_instrument(self)
            self._is_over = True
        return False


class Dispatcher:
    """Lets actors handle their messages, fairly, on the kernel thread.

    Args:
        failed: told what a foreign thread's call raised.
    """

    def __init__(self, failed: Callable[[BaseException], object]) -> None:
        self._failed = failed
        self.thread_id = 0
        self.queue: deque[Runnable] = deque()
        self._foreign: deque[Callable[[], object]] = deque()
        self._is_coming = False
        """Whether `_make_foreign_calls` is on its way."""

        self.turn = Turn()
        self.deep = 0
        """How many actors are passing on, each inside the one before."""

        self.spend = self.turn.spend
        """Counts what was handled; tells whether the turn goes on."""

        self._context = Context()
        self._token: trio.lowlevel.TrioToken | None = None
        self._has_ended = False
        self.parked: trio.lowlevel.Task | None = None
        """The pump's task while there is nothing to do."""

    def open(self) -> None:
        """Take the present trio thread as the kernel's."""
        self.thread_id = get_ident()
        self._token = trio.lowlevel.current_trio_token()
        self.turn.now = trio.lowlevel.current_clock().current_time

    def close(self) -> None:
        """Make what other threads left, then refuse them from now on."""
        self._has_ended = True
        while self._foreign:
            self._make_calls()
        self.turn.close()

    @property
    def waiting(self) -> int:
        """How many actors are on the run queue."""
        return len(self.queue)

    @property
    def foreign_waiting(self) -> int:
        """How many calls from foreign threads have not been made yet."""
        return len(self._foreign)

    def schedule(self, runnable: Runnable) -> None:
        """Put an actor on the run queue; it must not be on it."""
        self.queue.append(runnable)
        if self.parked is not None:
            self.unpark()

    def unpark(self) -> None:
        """Wake the pump, which is parked."""
        task, self.parked = self.parked, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    def send_soon(
        self, runnable: Addressee, call: Callable[[], object], message: object
    ) -> None:
        """Have a message taken in on the kernel thread, from any other thread.

        Raises:
            MailboxFullError: too many are on their way.
            pykka.ActorDeadError: the kernel has ended.
        """
        if len(self._foreign) >= MOST_FOREIGN:
            raise MailboxFullError(runnable.name, message)
        self.call_soon(runnable, call)

    def call_soon(self, runnable: Addressee, call: Callable[[], object]) -> None:
        """Call something on the kernel thread, from any other thread.

        Raises:
            pykka.ActorDeadError: the kernel has ended.
        """
        token = self._token
        if token is None:
            raise MisuseError("the actor system is not open; use `async with`")
        # Why no lock: this side changes the queue, then reads the flags; the side that
        # makes calls changes a flag first. So each is made, or is there to take back.
        self._foreign.append(call)
        if self._has_ended:
            self._take_back(runnable, call)
        elif not self._is_coming:
            # Why not `idempotent`: trio calls that last, and what this thread asks of
            # the loop later would come first.
            try:
                self._is_coming = True
                token.run_sync_soon(self._make_foreign_calls)
            except trio.RunFinishedError:
                self._has_ended = True
                self._take_back(runnable, call)
            except BaseException:
                # As Ctrl-C, perhaps before trio took it. Other threads rely on it.
                self._is_coming = False
                with suppress(trio.RunFinishedError):
                    token.run_sync_soon(self._make_foreign_calls)
                raise

    def _take_back(self, runnable: Addressee, call: Callable[[], object]) -> None:
        with suppress(ValueError):  # `close` has made it
            self._foreign.remove(call)
            text = f"{runnable.name} is gone: its system has ended"
            raise pykka.ActorDeadError(text)

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Pump until cancelled."""
        self._context = trio.lowlevel.current_task().context
        while True:
            if self.queue:
                self._pump()
            if self.queue:
                await trio.lowlevel.checkpoint()
            else:
                self.parked = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._unparked)

    @trio.lowlevel.enable_ki_protection
    def lend(self, asked: Runnable) -> bool:
        """Let an actor that was just asked answer in the turn of who awaits it.

        Saves the two task switches that most of an ask's time went into. It cannot
        nest: what runs in a lent turn is plain functions, which await nothing. Who is
        not the last on the queue is left to the pump, as are all others.

        Returns:
            Whether it had its turn. A task that always gets its answers like this
            would keep everybody else waiting: it must ask whether the turn goes on.
        """
        if get_ident() != self.thread_id:  # the reply was handed to another loop
            return False
        queue = self.queue
        if not queue or queue[-1] is not asked:
            return False
        queue.pop()
        asked.is_queued = False
        self._context.run(asked.step, 1)  # the asker's own is no affair of theirs
        self.turn.left -= 1 + STEP
        return True

    def _pump(self) -> None:
        queue, popleft = self.queue, self.queue.popleft
        self.turn.spend(0)  # its time begins before the first batch, which may be long
        spent = 0
        while queue:
            runnable = popleft()
            runnable.is_queued = False
            before = runnable.handled
            runnable.step(BATCH)
            spent += runnable.handled - before + STEP
            if spent >= BATCH:
                if not self.turn.spend(spent):
                    return
                spent = 0
        self.turn.left -= spent

    def _unparked(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        """Let the pump be cancelled."""
        self.parked = None
        return trio.lowlevel.Abort.SUCCEEDED

    @trio.lowlevel.enable_ki_protection
    def _make_foreign_calls(self) -> None:
        self._is_coming = False
        self._make_calls()
        if self._foreign and not self._is_coming and self._token is not None:
            self._is_coming = True
            self._token.run_sync_soon(self._make_foreign_calls)

    def _make_calls(self) -> None:
        foreign = self._foreign
        while foreign:
            for _ in range(min(BATCH, len(foreign))):
                try:
                    call = foreign.popleft()
                except IndexError:  # its thread took it back
                    return
                try:
                    call()
                except BaseException as raised:  # noqa: BLE001  `Kernel.judge` decides
                    self._failed(raised)
            if not self.turn.spend(BATCH):
                return
