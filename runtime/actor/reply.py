"""The value that answers an ask: pykka's `Future`, awaitable under trio.

pykka's own future is a bare `yield`, which trio refuses. This one may be set and
read from any thread; a trio task awaits it, a foreign thread calls `get`.
"""

from __future__ import annotations

import sys
import threading
from threading import get_ident
from typing import TYPE_CHECKING, Any, cast

import pykka
import trio

from runtime.errors import MisuseError, why_no_time

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from runtime.actor.cell import Cell
    from runtime.actor.timers import Timer

Waiter = tuple[trio.lowlevel.Task, int, trio.lowlevel.TrioToken]
"""A task, the thread of its loop, and what wakes it from another thread."""

# Why one for all: it is held for a few lines that wait for nothing. Why one that may
# be taken twice: a finalizer, which runs anywhere, may answer, too.
LOCK = threading.RLock()
"""Held while a reply's outcome, or who waits for it, is looked at and changed."""


class Reply(pykka.Future[Any]):
    """One answer, set once; further answers are refused and say so.

    Args:
        timeout: seconds a foreign thread waits in `get` unless it says otherwise;
            None waits for ever.
    """

    # Why class attributes and no super().__init__(): most replies are asked for,
    # awaited once and forgotten, and pykka's would make two objects nobody reads.
    _get_hook: Callable[[float | None], Any] | None = None
    _outcome: tuple[Any, BaseException | None] | None = None
    _waiters: list[Waiter] | None = None
    _event: threading.Event | None = None
    _sources: tuple[pykka.Future[Any], ...] = ()

    asked: Cell | None = None
    """Who may answer in the turn of the task that awaits this; see `lend`."""

    timer: Timer | None = None
    """The ask's deadline; void as soon as there is an answer."""

    def __init__(self, timeout: float | None = None) -> None:
        self._timeout = timeout

    def __repr__(self) -> str:
        """Say whether it has been answered."""
        return f"<Reply {'answered' if self.is_set else 'pending'}>"

    @property
    def is_set(self) -> bool:
        """Whether the answer, or an error, has come."""
        return self._outcome is not None

    def offer(self, value: Any) -> bool:
        """Answer unless an answer has come already.

        Returns:
            False if this answer was late (the asker had timed out, say).
        """
        return self._settle((value, None))

    def offer_error(self, error: BaseException) -> bool:
        """Answer with an error, which the asker will see raised.

        Returns:
            False if this answer was late.
        """
        return self._settle((None, error))

    def set(self, value: Any = None) -> None:
        """Answer.

        Raises:
            MisuseError: it was answered before, or has a get hook.
        """
        if self._get_hook is not None or not self.offer(value):
            raise MisuseError("this reply was answered before; answer an ask once")

    def set_exception(self, exc_info: Any = None) -> None:
        """Answer with an error: pykka's triple, or the one now being handled.

        Raises:
            MisuseError: it was answered before, has a get hook, or there is no
                exception.
        """
        error = (exc_info or sys.exc_info())[1]
        if error is None:
            raise MisuseError("set_exception needs an exception; none was given")
        if self._get_hook is not None or not self.offer_error(error):
            raise MisuseError("this reply was answered before; answer an ask once")

    def get(self, *, timeout: float | None = None) -> Any:
        """Wait in a foreign thread for the answer.

        Args:
            timeout: seconds; None means the ask's own.

        Raises:
            pykka.Timeout: the time ran out.
            MisuseError: called on a trio thread before the answer came: await it; or
                `timeout` is not a number that a clock can count.
            Exception: what the actor answered with.
        """
        if self._get_hook is not None:
            if self._outcome is None:
                self.offer(self._get_hook(timeout))
        elif self._outcome is None:
            self._block(self._timeout if timeout is None else timeout)
        return self._result()

    def __await__(self) -> Generator[Any, Any, Any]:
        """Wait in a trio task for the answer.

        An answer that comes while this task's turn is lent to the actor is given back
        without a checkpoint; see `Dispatcher.lend`.
        """
        if self._get_hook is not None:
            for source in self._sources:
                yield from source.__await__()
            return self.get()
        asked, self.asked = self.asked, None
        if self._outcome is not None:
            yield from trio.lowlevel.checkpoint().__await__()  # noqa: ASYNC105
        elif asked is not None:
            dispatcher = asked.kernel.dispatcher
            is_here = dispatcher.lend(asked) and self._outcome is not None
            if is_here and not dispatcher.spend(0):
                yield from trio.lowlevel.checkpoint().__await__()  # noqa: ASYNC105
        leave = self._park() if self._outcome is None else None
        if leave is not None:
            yield from trio.lowlevel.wait_task_rescheduled(leave).__await__()  # noqa: ASYNC105
        try:
            return self._result()
        finally:
            del self, leave

    __iter__ = __await__

    def map(self, func: Any) -> Any:
        """Give a reply whose value is `func` of this one's; see pykka."""
        return self._derived(super().map(func), self)

    def filter(self, func: Any) -> Any:
        """Give a reply with the items for which `func` holds; see pykka."""
        return self._derived(super().filter(func), self)

    def reduce(self, func: Any, *args: Any) -> Any:
        """Give a reply with the items folded into one; see pykka."""
        return self._derived(super().reduce(func, *args), self)

    def join(self, *futures: pykka.Future[Any]) -> Any:
        """Give a reply with the values of this and the others; see pykka."""
        return self._derived(super().join(*futures), self, *futures)

    @staticmethod
    def _derived(future: pykka.Future[Any], *sources: pykka.Future[Any]) -> Reply:
        # Why: the get hook of a derived future calls `get` on its sources, which
        # a trio task may only do once they are answered.
        reply = cast("Reply", future)
        reply._sources = sources  # noqa: SLF001  one of our own
        return reply

    def _settle(self, outcome: tuple[Any, BaseException | None]) -> bool:
        with LOCK:
            if self._outcome is not None:
                return False
            self._outcome = outcome
            waiters, self._waiters = self._waiters, None
        timer = self.timer
        if timer is not None:
            self.timer = None
            timer.cancel()
        if self._event is not None:
            self._event.set()
        if waiters is not None:
            self._wake(waiters)
        return True

    def _result(self) -> Any:
        value, error = self._outcome or (None, None)
        if error is not None:
            try:
                raise error
            finally:  # its traceback holds this frame: no circle, as in trio
                del error, self
        return value

    def _block(self, timeout: float | None) -> None:
        if _current_token() is not None:
            raise MisuseError(
                "waiting for a reply here would block the kernel: use `await`"
            )
        if timeout is not None and (wrong := why_no_time(timeout)):
            raise MisuseError(f"waiting needs a number of seconds, {wrong}")
        with LOCK:
            event = self._event = self._event or threading.Event()
            is_set = self._outcome is not None
        if timeout is not None:
            timeout = min(timeout, threading.TIMEOUT_MAX)
        if not is_set and not event.wait(timeout):
            # An answer that comes from now on is late, and the kernel is told so.
            self.offer_error(pykka.Timeout(f"no reply within {timeout} seconds"))

    def _park(self) -> Callable[[object], trio.lowlevel.Abort] | None:
        """Have this task woken; give how it leaves, or None: the answer has come."""
        task, token = trio.lowlevel.current_task(), trio.lowlevel.current_trio_token()
        entry = task, get_ident(), token
        with LOCK:
            if self._outcome is not None:
                return None
            if self._waiters is None:
                self._waiters = []
            self._waiters.append(entry)

        def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
            with LOCK:
                if self._waiters is None:  # a wake is on its way
                    return trio.lowlevel.Abort.FAILED
                self._waiters.remove(entry)
                return trio.lowlevel.Abort.SUCCEEDED

        return abort

    @staticmethod
    def _wake(waiters: list[Waiter]) -> None:
        here = get_ident()
        for task, thread, token in waiters:
            if thread == here:
                trio.lowlevel.reschedule(task)
                continue
            try:
                token.run_sync_soon(trio.lowlevel.reschedule, task)
            except trio.RunFinishedError:  # that loop is gone, the task with it
                continue


def _current_token() -> trio.lowlevel.TrioToken | None:
    try:
        return trio.lowlevel.current_trio_token()
    except RuntimeError:
        return None
