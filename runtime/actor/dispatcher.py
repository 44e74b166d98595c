"""The run queue: who has messages, and the one task that lets them handle some.

An idle actor owns no task. Its first message puts it on the queue; the pump lets
each actor on it handle a batch, then gives trio a turn. Messages from foreign
threads arrive through one queue that is emptied with one wake-up per burst.

Measured (see benchmarks): a trio scheduling step costs about 5 µs, so anything
that switches tasks per message stays below 0.2 M messages/s; this does not.
"""

from __future__ import annotations

from collections import deque
from threading import get_ident
from typing import TYPE_CHECKING, Protocol

import pykka
import trio

from runtime.errors import MailboxFullError, MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable

# Chosen: how many messages one actor may handle before the next gets its turn.
BATCH = 64

# Chosen: how many messages are handled before trio sees to its other tasks. About
# 2 ms, so a flooded actor delays I/O by no more than that.
MESSAGES_PER_TURN = 2048

# Chosen: and after how many actors at the latest, for a message of the domain may
# take 100 µs where one of a benchmark takes 1.
STEPS_PER_TURN = 256

# Chosen: how many asks in a row are answered without a turn for trio; see `lend`.
LENDS_PER_TURN = 16

# Chosen: messages from foreign threads on their way; far above what the pump leaves
# waiting in a turn, and a bound on memory when the kernel is blocked.
MOST_FOREIGN = 100_000


class Runnable(Protocol):
    """Something with messages to handle."""

    name: str

    def step(self, batch: int) -> int:
        """Handle up to `batch` messages; ask for another turn if some remain.

        Returns:
            How many were handled, and at least 1.
        """
        ...


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
        self._foreign_is_awake = False
        self._lent = 0
        self._token: trio.lowlevel.TrioToken | None = None
        self._has_ended = False
        self.parked: trio.lowlevel.Task | None = None
        """The pump's task while there is nothing to do."""

    def open(self) -> None:
        """Take the present trio thread as the kernel's."""
        self.thread_id = get_ident()
        self._token = trio.lowlevel.current_trio_token()

    def close(self) -> None:
        """Make what other threads left, then refuse them from now on."""
        self._has_ended = True
        while self._foreign:
            self._make_calls()

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
        self, runnable: Runnable, call: Callable[[], object], message: object
    ) -> None:
        """Have a message taken in on the kernel thread, from any other thread.

        Raises:
            MailboxFullError: too many are on their way.
            pykka.ActorDeadError: the kernel has ended.
        """
        if len(self._foreign) >= MOST_FOREIGN:
            raise MailboxFullError(runnable.name, message)
        self.call_soon(runnable, call)

    def call_soon(self, runnable: Runnable, call: Callable[[], object]) -> None:
        """Call something on the kernel thread, from any other thread.

        Raises:
            pykka.ActorDeadError: the kernel has ended.
        """
        token = self._token
        if token is None:
            raise MisuseError("the actor system is not open; use `async with`")
        if not self._has_ended:
            self._foreign.append(call)
            # Order matters: append first, then look; `_make_foreign_calls` lowers
            # the flag first, then empties the queue. Relies on the GIL.
            if self._foreign_is_awake:
                return
            self._foreign_is_awake = True
            try:
                token.run_sync_soon(self._make_foreign_calls)
            except trio.RunFinishedError:
                self._has_ended = True
                self._foreign.clear()
            else:
                return
        raise pykka.ActorDeadError(f"{runnable.name} is gone: its system has ended")

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Pump until cancelled."""
        while True:
            self._turn()
            if self.queue:
                await trio.lowlevel.checkpoint()
            else:
                await self._park()

    @trio.lowlevel.enable_ki_protection
    def lend(self) -> bool:
        """Let actors handle messages in the turn of a task that awaits an answer.

        Saves the two task switches that most of an ask's time went into. It cannot
        nest: what runs in a lent turn is plain functions, which await nothing.

        Returns:
            Whether the task must give trio a turn all the same: one that always
            gets its answers like this would keep everybody else waiting.
        """
        if get_ident() != self.thread_id:  # the reply was handed to another loop
            return False
        self._turn()
        self._lent += 1
        if self._lent < LENDS_PER_TURN:
            return False
        self._lent = 0
        return True

    def _turn(self) -> None:
        queue = self.queue
        left = MESSAGES_PER_TURN
        for _ in range(STEPS_PER_TURN):
            if not queue or left <= 0:
                return
            left -= queue.popleft().step(BATCH)

    async def _park(self) -> None:
        def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
            self.parked = None
            return trio.lowlevel.Abort.SUCCEEDED

        self.parked = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(abort)

    @trio.lowlevel.enable_ki_protection
    def _make_foreign_calls(self) -> None:
        self._foreign_is_awake = False
        foreign = self._foreign
        self._make_calls()
        if foreign and not self._foreign_is_awake and self._token is not None:
            self._foreign_is_awake = True
            self._token.run_sync_soon(self._make_foreign_calls)

    def _make_calls(self) -> None:
        foreign = self._foreign
        # Why counted: threads that never stop sending must not keep the loop here.
        for _ in range(len(foreign)):
            try:
                foreign.popleft()()
            except BaseException as raised:  # noqa: BLE001  `Kernel.judge` decides
                self._failed(raised)
