"""Looks from a thread of its own whether the kernel's loop is blocked.

A handler that waits is watched by its deadline (`lifecycle.py`). A handler that
does not give the loop back cannot be seen from inside it: this thread asks the
loop for a sign of life, reports where it hangs, and may break the handler off
with a signal, which Python runs between two bytecodes of the main thread.

Only the main thread can be broken off, and not inside a call into C.
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING

import msgspec
import trio

from runtime.clock import SystemClock
from runtime.errors import DeadlineError

if TYPE_CHECKING:
    from types import FrameType

    from runtime.kernel import Kernel

HANDLING = ("_drain", "_run")
"""Functions of a cell inside which a handler runs."""


class WatchdogConfig(msgspec.Struct, frozen=True):
    """How closely the loop is watched."""

    period: float = 0.5
    """Seconds between two looks."""

    limit: float = 2.0
    """Seconds without a sign of life after which the loop counts as blocked."""

    break_off: bool = True
    """Whether a handler that blocks the loop is broken off: its actor fails with
    `DeadlineError`. Uses SIGUSR2; only when the kernel runs in the main thread."""


class Watchdog:
    """Asks the loop for signs of life.

    Args:
        kernel: whose loop is watched; it must be open.
        config: how closely.
    """

    def __init__(self, kernel: Kernel, config: WatchdogConfig) -> None:
        self.lag = 0.0
        """Seconds that the loop took for its last sign of life."""

        self._kernel = kernel
        self._config = config
        self._token = trio.lowlevel.current_trio_token()
        self._stopped = threading.Event()
        self._alive = threading.Event()
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
        """End the thread; does not wait for a look longer than its period."""
        self._stopped.set()
        self._alive.set()
        self._thread.join(timeout=self._config.period + 1.0)
        if self._can_break:
            signal.signal(signal.SIGUSR2, signal.SIG_DFL)

    def _watch(self) -> None:
        clock = SystemClock()
        while not self._stopped.wait(self._config.period):
            asked_at = clock.monotonic()
            self._alive.clear()
            try:
                self._token.run_sync_soon(self._alive.set)
            except trio.RunFinishedError:
                return
            while not self._alive.wait(self._config.limit):
                self.lag = clock.monotonic() - asked_at
                self._bark()
            self.lag = clock.monotonic() - asked_at

    def _bark(self) -> None:
        kernel = self._kernel
        frame = sys._current_frames().get(kernel.dispatcher.thread_id)  # noqa: SLF001
        name, kind = _actor_in(frame)
        where = traceback.extract_stack(frame)[-1] if frame is not None else None
        kernel.watchdog[kind, "loop_blocked"] += 1
        kernel.report(
            "the loop is blocked",
            {
                "actor": name,
                "seconds": round(self.lag, 1),
                "where": f"{where.filename}:{where.lineno}" if where else "unknown",
            },
        )
        if self._can_break and name:
            signal.pthread_kill(kernel.dispatcher.thread_id, signal.SIGUSR2)

    def _break_off(self, _number: int, frame: FrameType | None) -> None:
        """Raise inside the handler that blocks; do nothing if none is running now.

        Runs on the main thread, so what it sees in the stack is so.
        """
        name, kind = _actor_in(frame)
        if not name or self._alive.is_set():
            return
        self._kernel.watchdog[kind, "broken_off"] += 1
        raise DeadlineError(f"{name} blocked the loop for {self.lag:.1f} s")


def _actor_in(frame: FrameType | None) -> tuple[str, str]:
    """Give (name, kind) of the actor whose handler is on the stack; else ("", "")."""
    inner: FrameType | None = None
    while frame is not None:
        code = frame.f_code
        if code.co_name in HANDLING and code.co_filename.endswith("cell.py") and inner:
            cell = frame.f_locals.get("self")
            return str(cell.name), cell.actor_class.__name__  # type: ignore[union-attr]
        inner = frame
        frame = frame.f_back
    return "", "kernel"
