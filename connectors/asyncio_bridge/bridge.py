"""The only door between the trio kernel and asyncio.

One asyncio loop runs in one thread, hosted by a `pykka.ThreadingActor`. The
libraries that need asyncio (the web servers, Discord, Slack) live on it,
so that what hangs or fails in them leaves the kernel's loop alone. It knows
nothing of chat.

Words: *kernel* is the trio side, *edge* the asyncio side. Whatever crosses is
queued and the other side is woken once per burst, because waking costs far more
than queueing. What one side posts is carried out on the other in the same order.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from asyncio import Future
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Generic, TypeVar, TypeVarTuple

import pykka
import trio

from runtime.errors import KernelError, MisuseError
from runtime.fairness import most_of_one

Step = Callable[[], object]


class BridgeError(KernelError):
    """Something could not cross between the kernel and the edge."""


class BridgeClosedError(BridgeError):
    """The asyncio loop is not running; its supervisor starts it again."""


class BridgeBusyError(BridgeError):
    """Too much is waiting to cross; nothing was queued, try again later."""


class Crossing:
    """Calls on their way into one loop; the loop is woken once per burst.

    Safe from any thread: it relies on `deque.append` and `popleft` being atomic.

    Args:
        wake: makes the target loop call a function soon; safe from any thread.
        limit: most posts that may wait; beyond, `BridgeBusyError`.
        target: name of the loop for error texts.
    """

    def __init__(self, wake: Callable[[Step], object], limit: int, target: str) -> None:
        self._wake = wake
        self._limit = limit
        self._target = target
        self._waiting: deque[Step] = deque()
        self._is_woken = False

    def post(self, step: Step, *, must: bool = False) -> None:
        """Have `step` called on the target loop.

        Args:
            step: the call; an exception from it is logged and goes no further.
            must: queue it even beyond the limit, for the ends of calls, which
                are bounded by the number of calls.

        Raises:
            BridgeBusyError: `limit` posts are waiting already.
            BridgeClosedError: the target loop has ended.
        """
        if len(self._waiting) >= self._limit and not must:
            raise BridgeBusyError(
                f"{self._limit} posts wait for the {self._target}; try again later"
            )
        self._waiting.append(step)
        if self._is_woken:
            return
        self._is_woken = True
        try:
            self._wake(self._run)
        except RuntimeError as error:
            # Source: both loops say RuntimeError when they have ended, and only
            # then (`call_soon_threadsafe`; `trio.RunFinishedError` is one).
            self._is_woken = False
            self._waiting.clear()
            raise BridgeClosedError(f"the {self._target} has ended") from error

    def _run(self) -> None:
        # Why first: a post that comes while this runs must wake the loop again.
        self._is_woken = False
        for _ in range(len(self._waiting)):
            step = self._waiting.popleft()
            try:
                step()
            except Exception:  # another's code; its error would end the whole loop
                logger.exception("a call posted to the %s failed", self._target)


T = TypeVar("T")
Ts = TypeVarTuple("Ts")

logger = logging.getLogger(__name__)


class KernelCall(Generic[T]):
    """One `Bridge.call`: a trio task that waits for an asyncio task."""

    def __init__(self, start: Callable[[], Awaitable[T]]) -> None:
        self.start = start
        self.waiter = trio.lowlevel.current_task()
        self.task: asyncio.Task[T] | None = None
        self.values: list[T] = []
        self.error: BaseException | None = None
        self.is_done = False
        self.is_cancelled = False

    def cancel(self) -> None:
        """Cancel the asyncio task. Only on the edge's thread."""
        if self.task is not None:
            self.task.cancel()

    def finish(self, error: BaseException | None) -> None:
        """Wake the waiter; later calls do nothing. Only on the kernel's thread."""
        if not self.is_done:
            self.is_done = True
            self.error = error
            trio.lowlevel.reschedule(self.waiter)


class EdgeAsk(Generic[T]):
    """One `ask_kernel`: an asyncio task that waits for a trio task."""

    def __init__(
        self, run: Callable[[], Awaitable[T]], future: Future[T], owner: str
    ) -> None:
        self.run = run
        self.future = future
        self.owner = owner
        self.scope = trio.CancelScope()

    def succeed(self, value: T) -> None:
        """Give the asker the answer, unless it has gone. Only on the edge's thread."""
        if not self.future.done():
            self.future.set_result(value)

    def fail(self, error: BaseException) -> None:
        """Give the asker an error, unless it has gone. Only on the edge's thread."""
        if not self.future.done():
            self.future.set_exception(error)


class Life:
    """One run of the loop's thread, from start to end.

    Args:
        limit: most posts that may wait to cross, in each direction.
        shutdown_timeout: seconds that asyncio tasks get to end when cancelled.
    """

    def __init__(self, limit: int, shutdown_timeout: float) -> None:
        token = trio.lowlevel.current_trio_token()
        self.loop = asyncio.new_event_loop()
        self.to_kernel = Crossing(token.run_sync_soon, limit, "kernel")
        self.to_edge = Crossing(self.loop.call_soon_threadsafe, limit, "edge loop")
        self.shutdown_timeout = shutdown_timeout
        self.thread: threading.Thread | None = None
        self.ended = trio.Event()
        self.death: BaseException | None = None
        self.is_closing = False
        self.calls: set[KernelCall[Any]] = set()
        """Unfinished calls; only touched on the kernel's thread."""

        self.asks: set[EdgeAsk[Any]] = set()
        """Unfinished asks; only touched on the kernel's thread."""

        self.asks_open: Counter[str] = Counter()
        """Asks begun and not yet ended, by owner; only touched on the edge's thread."""

        self.stop = asyncio.Event()
        """Set it to end the loop; only on the edge's thread."""

    def run(self) -> None:
        """Run the loop until `stop`, then end its tasks. Fills the whole thread."""
        for phase in (self.stop.wait, self._end_tasks):
            try:
                self.loop.run_until_complete(phase())
            except BaseException as error:  # noqa: BLE001  kept as the loop's death
                # Why SystemExit too: a library's ends the loop just as a bug does,
                # and pykka would take it as an order to stop all its actors.
                self.death = self.death or error
        self.loop.close()
        with contextlib.suppress(BridgeClosedError):
            self.to_kernel.post(self.settle, must=True)

    async def _end_tasks(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            _, left = await asyncio.wait(tasks, timeout=self.shutdown_timeout)
            for task in left:
                logger.error("edge task %s did not end when cancelled", task.get_name())
        await self.loop.shutdown_asyncgens()
        try:
            async with asyncio.timeout(self.shutdown_timeout):
                await self.loop.shutdown_default_executor()
        except TimeoutError:
            logger.exception("a thread of the edge loop's executor did not end")

    def settle(self) -> None:
        """Release all who wait for this life. Only on the kernel's thread."""
        for call in tuple(self.calls):
            call.finish(self.closed_error())
        for ask in tuple(self.asks):
            ask.scope.cancel()
        self.ended.set()

    def closed_error(self) -> BridgeClosedError:
        """Say why nothing can cross any more."""
        if self.death is None:
            return BridgeClosedError("the edge loop was closed")
        return BridgeClosedError(f"the edge loop died: {self.death!r}")


class EdgeLoop(pykka.ThreadingActor):
    """The actor whose thread runs the asyncio loop.

    Takes, sends: nothing; the bridge carries what crosses.
    Keeps: the loop, in its `Life`.
    Fails: never by itself; the loop's death is in `Life.death`.
    Ends: with the loop.
    """

    # Why: a process whose kernel died without closing the bridge must still end.
    use_daemon_thread = True

    def __init__(self, life: Life) -> None:
        super().__init__()
        self._life = life

    def on_start(self) -> None:
        """Run the loop for the actor's whole life."""
        self._life.thread = threading.current_thread()
        self._life.run()
        self.actor_ref.stop(block=False)


class Bridge:
    """Carries calls between the trio kernel and one asyncio loop.

    May be started again after it was closed or after its loop died; then it runs
    a new loop in a new thread.

    Args:
        max_asks: most `ask_kernel` under way at once.
        max_posts: most posts that may wait to cross, in each direction.
        shutdown_timeout: seconds that asyncio tasks get to end when cancelled.
    """

    def __init__(
        self,
        *,
        max_asks: int = 1024,
        max_posts: int = 65_536,
        shutdown_timeout: float = 5.0,
    ) -> None:
        self._max_asks = max_asks
        self._max_posts = max_posts
        self._shutdown_timeout = shutdown_timeout
        self._life: Life | None = None

    @property
    def is_open(self) -> bool:
        """True from `start` until the loop is closed or has died."""
        life = self._life
        return life is not None and not life.ended.is_set() and not life.is_closing

    async def start(self) -> None:
        """Start the loop's thread and return when the loop runs.

        Raises:
            MisuseError: it is running already.
        """
        if self._life is not None and not self._life.ended.is_set():
            raise MisuseError("this bridge is running; close it before starting again")
        self._life = Life(self._max_posts, self._shutdown_timeout)
        EdgeLoop.start(self._life)
        await self.call(asyncio.sleep, 0)

    async def aclose(self) -> None:
        """Cancel all asyncio tasks, end the loop and its thread; safe to repeat.

        Calls that wait get `BridgeClosedError`. Not cut short by cancellation;
        takes at most three times `shutdown_timeout` seconds.
        """
        life = self._life
        if life is None:
            return
        life.is_closing = True
        with contextlib.suppress(BridgeClosedError):
            life.to_edge.post(life.stop.set, must=True)
        with trio.CancelScope(shield=True):
            with trio.move_on_after(3 * self._shutdown_timeout):
                await life.ended.wait()
                if life.thread is not None:
                    await trio.to_thread.run_sync(
                        life.thread.join, self._shutdown_timeout
                    )
        if not life.ended.is_set():
            logger.error("the edge loop is blocked; its thread was left behind")
            life.death = TimeoutError("it did not end when told to")
            life.settle()

    async def wait_closed(self) -> None:
        """Wait until the loop has ended.

        Raises:
            BridgeClosedError: the loop died, or was never started; a supervisor
                restarts it. An ordinary `aclose` raises nothing.
        """
        life = self._latest()
        await life.ended.wait()
        if life.death is not None:
            raise life.closed_error() from life.death

    async def call(self, fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Run an async function on the edge and wait for it; from trio.

        Cancelling the caller cancels the asyncio task and waits until it has
        ended; if it ends with a result or an error all the same, that counts.

        Raises:
            BridgeClosedError: the loop is not running, or ended meanwhile.
            BaseException: whatever `fn` raised, carried over.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        life = self._current()
        call = KernelCall(partial(fn, *args))
        life.to_edge.post(partial(begin_call, life, call), must=True)
        life.calls.add(call)
        cancels: list[Callable[[], None]] = []

        def abort(raise_cancel: Callable[[], None]) -> trio.lowlevel.Abort:
            cancels.append(raise_cancel)
            # A loop that has just ended settles the call by itself.
            with contextlib.suppress(BridgeClosedError):
                life.to_edge.post(call.cancel, must=True)
            return trio.lowlevel.Abort.FAILED

        try:
            await trio.lowlevel.wait_task_rescheduled(abort)
        finally:
            life.calls.discard(call)
        if call.is_cancelled and cancels:
            cancels[0]()
        if call.error is not None:
            raise call.error
        return call.values[0]

    async def ask_kernel(
        self, fn: Callable[[*Ts], Awaitable[T]], *args: *Ts, owner: str = ""
    ) -> T:
        """Run an async function in a trio task and wait for it; from asyncio.

        Cancelling the caller cancels the trio task without waiting for its end;
        until then it goes on counting as under way.

        Args:
            owner: the server that asks: one has three quarters of `max_asks` at most;
                empty: nobody in particular.

        Raises:
            BridgeBusyError: `max_asks` are under way, or as many of this owner as may
                be; nothing was started.
            BridgeClosedError: the kernel or the bridge is ending.
            BaseException: whatever `fn` raised, carried over.
        """
        life = self._current()
        is_full = life.asks_open.total() >= self._max_asks
        if is_full or (owner and life.asks_open[owner] >= most_of_one(self._max_asks)):
            raise BridgeBusyError(
                f"{life.asks_open.total()} questions to the kernel are open; try again"
                " later"
            )
        future: Future[T] = life.loop.create_future()
        ask = EdgeAsk(partial(fn, *args), future, owner)
        life.to_kernel.post(partial(begin_ask, life, ask), must=True)
        life.asks_open[owner] += 1
        try:
            return await future
        finally:
            if future.cancelled():
                with contextlib.suppress(BridgeClosedError):
                    life.to_kernel.post(ask.scope.cancel, must=True)

    def post_kernel(self, fn: Callable[[*Ts], object], *args: *Ts) -> None:
        """Have a quick, synchronous function called on the kernel; from any thread.

        Raises:
            BridgeBusyError: too many posts wait.
            BridgeClosedError: the loop is not running.
        """
        self._current().to_kernel.post(partial(fn, *args))

    def post_edge(self, fn: Callable[[*Ts], object], *args: *Ts) -> None:
        """Have a quick, synchronous function called on the edge; from any thread.

        Raises:
            BridgeBusyError: too many posts wait.
            BridgeClosedError: the loop is not running.
        """
        self._current().to_edge.post(partial(fn, *args))

    def _latest(self) -> Life:
        if self._life is None:
            raise BridgeClosedError("the bridge was not started; call start() first")
        return self._life

    def _current(self) -> Life:
        life = self._latest()
        if life.is_closing or life.loop.is_closed():
            raise life.closed_error()
        return life


def begin_call(life: Life, call: KernelCall[Any]) -> None:
    """Start a call's asyncio task. Only on the edge's thread."""

    async def run() -> Any:  # noqa: ANN401  whatever the caller's function returns
        return await call.start()

    call.task = life.loop.create_task(run())
    call.task.add_done_callback(lambda task: end_call(life, call, task))


def end_call(life: Life, call: KernelCall[Any], task: asyncio.Task[Any]) -> None:
    """Send a call's outcome to the kernel. Only on the edge's thread."""
    error: BaseException | None
    if task.cancelled():
        call.is_cancelled = True
        error = BridgeClosedError("the call was cancelled on the edge: it is closing")
    elif (error := task.exception()) is None:
        call.values.append(task.result())
    elif not isinstance(error, Exception):
        # Why: SystemExit of a library must not end the kernel.
        error = BridgeClosedError(f"the call ended its loop: {error!r}")
    life.to_kernel.post(partial(call.finish, error), must=True)


def begin_ask(life: Life, ask: EdgeAsk[Any]) -> None:
    """Start an ask's trio task. Only on the kernel's thread."""
    life.asks.add(ask)
    # Why a system task: it belongs to no actor, and must live on while the actor
    # that started the bridge is restarted.
    trio.lowlevel.spawn_system_task(serve_ask, life, ask, name="ask_kernel")


async def serve_ask(life: Life, ask: EdgeAsk[Any]) -> None:
    """Run an ask in the kernel and send its outcome to the edge."""
    ending = BridgeClosedError("the kernel stopped answering: it is ending")
    answer: Step = partial(ask.fail, ending)
    try:
        with ask.scope:
            answer = partial(ask.succeed, await ask.run())
    except Exception as error:  # noqa: BLE001  the asker's; here it ends the kernel
        answer = partial(ask.fail, error)
    finally:
        life.asks.discard(ask)
        with contextlib.suppress(BridgeClosedError):
            life.to_edge.post(partial(end_ask, life, ask.owner, answer), must=True)


def end_ask(life: Life, owner: str, answer: Step) -> None:
    """Give an ask its answer. Only on the edge's thread."""
    life.asks_open[owner] -= 1
    answer()
