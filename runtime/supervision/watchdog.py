"""Looks from a thread of its own whether the kernel's loop is blocked.

A handler that waits is watched by its deadline (`runtime/actor/lifecycle.py`). A
handler that does not give the loop back cannot be seen from inside it: this thread asks
the loop for a sign of life, reports where it hangs, and may break the handler off with
a signal, which Python runs between two bytecodes of the main thread.

Time in which the loop's thread waits for a processor does not count: a machine with too
much to do is no fault of the handler that happens to run. Only Linux tells that time;
elsewhere all time counts.

Only the main thread can be broken off, not inside a call into C, and never while
it runs code of the kernel's or trio's, which such an error would leave half done.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import msgspec
import trio

from runtime.actor.cell import Cell
from runtime.actor.kernel import Kernel
from runtime.clock import SystemClock, had_processor, thread_time
from runtime.errors import DeadlineError

HERE = str(Path(__file__).parents[1])
FRAGILE = (HERE, str(Path(trio.__file__).parent))
"""Folders whose code must not be broken off."""

CELL_FILE = str(Path(HERE, "actor", "cell.py"))
LIFECYCLE_FILE = str(Path(HERE, "actor", "lifecycle.py"))

# Chosen: the handler may be inside fragile code whenever it is looked at; so many
# times, this many seconds apart, it is tried again.
TRIES = 100
TRY_EVERY = 0.002

# Chosen: what a thread slept before the last look is not told from waiting if it runs
# again, so that a handler may be found so much of the limit later.
LOOKS = 8
"""How often a loop that gives no sign is looked at within the limit."""


class WatchdogConfig(msgspec.Struct, frozen=True):
    """How closely the loop is watched."""

    period: float = 0.5
    """Seconds between two looks."""

    limit: float = 2.0
    """Seconds without a sign of life after which the loop counts as blocked; those in
    which its thread waits for a processor are left out."""

    break_off: bool = True
    """Whether a handler that blocks the loop is broken off: its actor fails with
    `DeadlineError`. Uses SIGUSR2; only when the kernel runs in the main thread."""


class Watchdog:
    """Asks the loop for signs of life.

    Args:
        kernel: whose loop is watched; it must be open.
    """

    def __init__(self, kernel: Kernel, config: WatchdogConfig) -> None:
        self.lag = 0.0
        """Seconds that the loop took for its last sign of life, all of them."""

        self._blocked = 0.0  # seconds without one in which its thread could run
        self._loop = threading.get_native_id()
        self._kernel = kernel
        self._config = config
        self._token = trio.lowlevel.current_trio_token()
        self._stopped = threading.Event()
        self._alive = threading.Event()
        self._suspects: tuple[Sight, ...] = ()
        self._thread = threading.Thread(
            target=self._watch, name="watchdog", daemon=True
        )
        self._can_break = (
            config.break_off
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL
        )

    def start(self) -> None:
        """Begin to watch."""
        if self._can_break:
            signal.signal(signal.SIGUSR2, self._break_off)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and wait for it; it waits for nothing itself."""
        self._stopped.set()
        self._alive.set()
        self._thread.join()
        if self._can_break:
            signal.signal(signal.SIGUSR2, signal.SIG_DFL)

    def _watch(self) -> None:
        clock = SystemClock()
        while not self._stopped.wait(self._config.period):
            asked_at = clock.monotonic()
            self._alive.clear()
            if self._stopped.is_set():
                return
            try:
                self._token.run_sync_soon(self._alive.set)
            except trio.RunFinishedError:
                return
            self._wait_for_sign(clock, asked_at)
            self.lag = clock.monotonic() - asked_at

    def _wait_for_sign(self, clock: SystemClock, asked_at: float) -> None:
        """Wait until the loop is alive; report it each time the limit is over."""
        limit = self._config.limit
        looked_at, before = asked_at, thread_time(self._loop)
        self._blocked, unreported = 0.0, 0.0
        while not self._alive.wait(limit / LOOKS):
            now, after = clock.monotonic(), thread_time(self._loop)
            could_run = had_processor(before, after, now - looked_at)
            looked_at, before = now, after
            self.lag = now - asked_at
            self._blocked += could_run
            unreported += could_run
            if unreported >= limit:
                unreported = 0.0
                self._bark()

    def _bark(self) -> None:
        """Report what blocks the loop, and try to break it off."""
        kernel = self._kernel
        frame = sys._current_frames().get(kernel.dispatcher.thread_id)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        suspects = tuple(sights(frame))
        sight = suspects[0] if suspects else None
        kernel.watchdog[sight.kind if sight else "kernel", "loop_blocked"] += 1
        kernel.report(
            "the loop is blocked",
            {
                "actor": sight.name if sight else "",
                "seconds": round(self._blocked, 1),
                "where": _place(frame),
            },
        )
        self._suspects = suspects
        for _ in range(TRIES):
            if not self._can_break or not self._suspects:
                return
            signal.pthread_kill(kernel.dispatcher.thread_id, signal.SIGUSR2)
            if self._alive.wait(TRY_EVERY):
                return

    def _break_off(self, _number: int, frame: FrameType | None) -> None:
        """Raise inside the handler that blocks; do nothing if it runs no more.

        Runs on the main thread, so what it sees in the stack is so.
        """
        sight = look(frame)
        if sight is None or not sight.is_breakable or self._alive.is_set():
            return
        # Not only the innermost: a sender may tell one who passes on without end.
        if sight[:4] not in [each[:4] for each in self._suspects]:
            return
        self._suspects = ()
        self._kernel.watchdog[sight.kind, "broken_off"] += 1
        text = f"{sight.name} blocked the loop for {self._blocked:.1f} s"
        raise DeadlineError(text, actor=sight.name)


class Sight(NamedTuple):
    """Whose handler was seen on the stack."""

    name: str
    kind: str
    message_id: int
    handled: int
    """The same handler is seen twice when name, message and this are the same."""

    is_breakable: bool


def look(frame: FrameType | None) -> Sight | None:
    """Find the actor whose handler or hook is on the stack of the kernel's thread."""
    return next(sights(frame), None)


def sights(frame: FrameType | None) -> Iterator[Sight]:
    """Find all whose handlers or hooks are there, the innermost first."""
    inner: FrameType | None = None
    is_safe = True
    while frame is not None:
        cell = _cell_in(frame)
        if cell is not None and inner is not None:
            yield Sight(
                cell.name,
                cell.actor_class.__name__,
                id(cell.current),
                cell.handled,
                is_safe and _is_handler(frame, inner),
            )
        # The innermost frames are looked at before it is known whose they are.
        is_safe = is_safe and (_is_seam(frame) or not _is_fragile(frame))
        inner = frame
        frame = frame.f_back


def _cell_in(frame: FrameType) -> Cell | None:
    """Give the cell whose handler or hook this frame of the kernel calls."""
    name = frame.f_code.co_filename
    if name == CELL_FILE and frame.f_code.co_name in {"step", "pass_on"}:
        return frame.f_locals.get("self")
    if name == LIFECYCLE_FILE:
        return frame.f_locals.get("cell")
    return None


def _is_handler(frame: FrameType, inner: FrameType) -> bool:
    """Whether the frame inside this one of a cell's is its actor's handler."""
    if frame.f_code.co_name == "step":
        return _is_seam(inner) or inner.f_code.co_name == "on_receive"
    if frame.f_code.co_name == "pass_on":
        return inner.f_code.co_name == "pass_on"
    if frame.f_code.co_name != "guard" or frame.f_locals["cell"].state != "running":
        return False
    return inner is getattr(frame.f_locals["coroutine"], "cr_frame", None)


def _is_seam(frame: FrameType) -> bool:
    return frame.f_code.co_name == "_handle_receive" and _is_fragile(frame)


def _is_fragile(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(FRAGILE)


def _place(frame: FrameType | None) -> str:
    if frame is None:
        return "unknown"
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
