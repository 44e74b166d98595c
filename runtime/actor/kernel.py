"""What every actor of one system shares: its dispatcher, timers, names, counts.

Made and owned by `runtime/system.py`; held by cells. Nothing in here is reached except
on the kernel thread.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from math import inf
from threading import get_ident
from typing import cast

import trio

from runtime.actor.cell import Cell
from runtime.actor.dead_letters import DeadLetters
from runtime.actor.dispatcher import Dispatcher
from runtime.actor.messages import weight_of
from runtime.actor.timers import Timers
from runtime.errors import (
    KernelError,
    MisuseError,
    ProgramEndError,
    text_of,
    why_no_time,
)
from runtime.telemetry.logs import EventLog

LOG = EventLog("kernel")

# Chosen: an ask that nobody answers ends after half a minute unless it says
# otherwise; a model call is no ask, so nothing regular takes that long.
ASK_TIMEOUT = 30.0


class Kernel:
    """The services of one actor system.

    Args:
        ask_timeout: seconds an ask waits unless it says otherwise.
        report: called with (event, fields) for what an operator should see.

    Raises:
        MisuseError: `ask_timeout` is not a number that a clock can count.
    """

    def __init__(
        self, ask_timeout: float, report: Callable[[str, dict[str, object]], None]
    ) -> None:
        if wrong := why_no_time(ask_timeout):
            raise MisuseError(f"ask_timeout must be a number of seconds, {wrong}")
        self.ask_timeout = ask_timeout
        self._report = report
        self.dispatcher = Dispatcher(self._call_failed)
        self.timers = Timers(self.dispatcher.spend)
        self.dead_letters = DeadLetters(weight_of, self._observer_failed)
        self.names: dict[str, Cell] = {}
        self.nursery: trio.Nursery | None = None
        self.now: Callable[[], float] = lambda: 0.0
        """Seconds on the loop's clock; may be read from any thread."""

        self.is_closing = False
        """Set when the system ends: nobody is spawned any more."""

        self.end_program: Callable[[], None] | None = None
        """Makes the block that opened the system end."""

        self.fatal: BaseException | None = None
        """What a handler ended the program with."""

        self.handled = 0
        """Messages handled by actors that have ended; the living count their own."""

        self.handled_by: Counter[str] = Counter()
        """The same by kind."""

        self.restarts: Counter[tuple[str, str]] = Counter()
        """(kind, reason) → restarts since the start."""

        self.watchdog: Counter[tuple[str, str]] = Counter()
        """(kind, action) → what the watchdog did."""

        self._serial = 0

    @property
    def on_kernel_thread(self) -> bool:
        """Whether the caller runs on the kernel's thread."""
        return get_ident() == self.dispatcher.thread_id

    def open(self, nursery: trio.Nursery) -> None:
        """Take the present trio loop as the system's."""
        self.nursery = nursery
        self.now = self.timers.now = trio.lowlevel.current_clock().current_time
        self.dispatcher.open()

    def roll(self) -> float:
        """Give a random number from 0 up to 1, for jitter."""
        return int.from_bytes(os.urandom(4)) / 2**32

    def count_ended(self, kind: str, handled: int) -> None:
        """Keep the count of an actor that has ended for good."""
        self.handled += handled
        self.handled_by[kind] += handled

    def judge(self, raised: BaseException, *, is_awaited: bool = False) -> Exception:
        """Say what became of an actor's code that raised; see to the program's end.

        The one place that decides about what is no `Exception`, alone or in a group.

        Args:
            is_awaited: whether this task awaited the code, so that trio may cancel it.

        Returns:
            What the actor failed with; `ProgramEndError` if the program ends.

        Raises:
            trio.Cancelled: it is one, and meant for this task. One that was kept from
                elsewhere, as the answer to an ask say, is a mistake like any.
        """
        if isinstance(raised, Exception):
            return raised
        # Where the actor's own scope is closed, only the end of all tasks can be meant.
        is_ending = is_awaited and trio.current_effective_deadline() == -inf
        if is_ending and _found(raised, trio.Cancelled) is not None:
            raise raised
        end = _found(raised, (KeyboardInterrupt, SystemExit))
        if end is None:
            what = f"{type(raised).__name__}: {text_of(raised)}"
            error: Exception = KernelError(f"raised what is no Exception: {what}")
        else:
            self.crash(end)
            error = ProgramEndError(f"ends the program: {type(end).__name__}")
        error.__cause__ = raised
        return error

    def _call_failed(self, raised: BaseException) -> None:
        event = "a call from another thread failed"
        self.report(event, {"error": self.judge(raised)})

    def crash(self, error: BaseException) -> None:
        """End the program because a handler wants it: it pressed Ctrl-C, or exits.

        The actors are stopped in order, then `error` is raised by the block that
        opened the system.
        """
        self.fatal = self.fatal or error
        if self.end_program is not None:
            self.end_program()

    def report(self, event: str, fields: dict[str, object]) -> None:
        """Tell the operator; that this fails is no reason for anybody to end."""
        try:
            self._report(event, fields)
        except BaseException as raised:  # noqa: BLE001  a stranger's function
            self._stranger_failed("report failed", raised, about=event)

    def _observer_failed(self, raised: BaseException) -> None:
        self._stranger_failed("observer of dead letters failed", raised)

    def _stranger_failed(self, event: str, raised: BaseException, **more: str) -> None:
        """Log it; only on the kernel thread may it end the program."""
        is_error = isinstance(raised, Exception) or not self.on_kernel_thread
        LOG.fault(event, raised if is_error else self.judge(raised), **more)

    def next_name(self, kind: str) -> str:
        """Make up a free name for an actor that was given none."""
        self._serial += 1
        while (name := f"{kind}-{self._serial}") in self.names:
            self._serial += 1
        return name


def _found(
    raised: BaseException, kind: type[BaseException] | tuple[type[BaseException], ...]
) -> BaseException | None:
    """Give the first error of a kind, in a group or alone."""
    if isinstance(raised, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", raised)
        found = (_found(each, kind) for each in group.exceptions)
        return next((each for each in found if each is not None), None)
    return raised if isinstance(raised, kind) else None
