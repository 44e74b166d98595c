"""One actor system: opens the kernel, starts actors, and ends them in order.

Owns what the actors of one process share, and nothing outside of `async with`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio

from runtime.actor import lifecycle
from runtime.actor.actor import Actor
from runtime.actor.cell import Cell
from runtime.actor.dead_letters import DeadLetters
from runtime.actor.kernel import ASK_TIMEOUT, Kernel
from runtime.actor.mailbox import EMPTY, MailboxConfig
from runtime.actor.messages import KILLED, SHUTDOWN, Exit, Keyed
from runtime.actor.posting import STASHED, bare
from runtime.actor.ref import ActorRef
from runtime.actor.reply import Reply
from runtime.actor.statistics import ActorStatistics, SystemStatistics
from runtime.errors import KernelError, MisuseError, text_of
from runtime.supervision.supervisor import Supervisor
from runtime.supervision.watchdog import Watchdog, WatchdogConfig
from runtime.telemetry.logs import EventLog

# Chosen: as long as a supervisor gives a child by default.
SHUTDOWN_TIME = 5.0
"""Seconds an actor without a supervisor may take to stop before it is killed."""


# Chosen: about a millisecond of the loop's time.
AT_ONCE = 256
"""Idle actors that are ended before other tasks have their turn."""

LONGEST_END = 500
"""Characters that are told of how an actor ended last."""


def log_report(event: str, fields: dict[str, Any]) -> None:
    """Write what the kernel reports to the log; a failure with its exception."""
    log = EventLog("kernel")
    error = fields.get("error")
    if isinstance(error, Exception):
        log.fault(event, error, actor=str(fields.get("actor", "")))
    else:
        log.warning(event, **fields)


class SystemConfig(msgspec.Struct, frozen=True):
    """How a system behaves."""

    ask_timeout: float = ASK_TIMEOUT
    """Seconds an ask waits unless it says otherwise."""

    watchdog: WatchdogConfig | None = None
    """Who looks whether the loop is blocked; None: nobody, as in most tests."""


class ActorSystem:
    """The actors of one process; made by `open_system`."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.root: ActorRef | None = None
        self._root_ended = trio.Event()
        self._watchdog: Watchdog | None = None

    @property
    def dead_letters(self) -> DeadLetters:
        """The messages that no one handled."""
        return self.kernel.dead_letters

    def spawn(
        self, actor: Actor, *, name: str = "", mailbox: MailboxConfig | None = None
    ) -> ActorRef:
        """Start an actor that nobody supervises: when it fails it is gone.

        An `async` `on_start` goes on after this returns; messages wait for it.

        Args:
            name: unique in the system; empty: one is made up.
            mailbox: bounds that replace those of its class.

        Raises:
            MisuseError: it is no actor (a class is none), the name is taken, or this is
                not the kernel thread.
            Exception: what the actor's plain `on_start` raised.
        """
        cell = self._new_cell(actor, name, mailbox)
        try:
            reply = lifecycle.start_actor(cell, actor)
        except BaseException:  # whatever it was, its name is free again
            lifecycle.bury(cell, SHUTDOWN)
            raise
        if reply is not None:
            lifecycle.start_task(cell, self._see_start, cell, reply)
        return cell.ref

    async def start_root(self, supervisor: Supervisor, name: str = "root") -> ActorRef:
        """Start the supervisor above all others; its end ends the system.

        Raises:
            MisuseError: there is one already, or what `spawn` raises it for.
            Exception: what its start raised.
        """
        if self.root is not None:
            raise MisuseError("a system has one root supervisor")
        cell = self._new_cell(supervisor, name)
        ref, watcher = cell.ref, Reply()
        cell.tell_end(watcher)
        try:
            reply = lifecycle.start_actor(cell, supervisor)
            if reply is not None:
                await reply
        except Exception:
            lifecycle.bury(cell, SHUTDOWN)
            raise
        self.root = ref
        lifecycle.start_task(cell, self._see_end, watcher)
        return ref

    def _new_cell(
        self, actor: Actor, name: str, mailbox: MailboxConfig | None = None
    ) -> Cell:
        """Make the place of an actor that has no supervisor, under a free name."""
        kernel = self.kernel
        if not kernel.on_kernel_thread:
            raise MisuseError("spawn actors on the kernel thread; tell one to do it")
        if kernel.is_closing:
            raise MisuseError("the actor system is closing; nobody can be spawned")
        lifecycle.refuse_other(actor)
        name = name or kernel.next_name(type(actor).__name__)
        if name in kernel.names:
            raise MisuseError(f"there is an actor {name!r} already")
        cell = kernel.names[name] = Cell(kernel, name, None, type(actor), None, mailbox)
        return cell

    async def wait_ended(self) -> None:
        """Wait until the root supervisor has ended.

        Raises:
            KernelError: it failed; the cause says of what.
        """
        await self._root_ended.wait()
        exit_ = self._root_exit()
        if exit_ is not None and exit_.error is not None:
            why = text_of(exit_.error)
            raise KernelError(f"the root supervisor failed: {why}") from exit_.error

    def find(self, name: str) -> ActorRef | None:
        """Give the ref of the living actor of this name."""
        cell = self.kernel.names.get(name)
        return cell.ref if cell is not None else None

    def actors(self) -> list[ActorStatistics]:
        """Tell of every living actor; may be called from any thread."""
        now = self.now()
        return [_statistics(cell, now) for cell in list(self.kernel.names.values())]

    def now(self) -> float:
        """Seconds on the clock that ages are measured by; from any thread."""
        return self.kernel.now()

    def statistics(self) -> SystemStatistics:
        """Tell of the system as a whole; may be called from any thread."""
        kernel = self.kernel
        cells = list(kernel.names.values())
        return SystemStatistics(
            actors=len(cells),
            run_queue=kernel.dispatcher.waiting,
            foreign_waiting=kernel.dispatcher.foreign_waiting,
            timers=len(kernel.timers),
            handled=kernel.handled + sum(cell.handled for cell in cells),
            handled_by=dict(kernel.handled_by),
            dead_letters=dict(kernel.dead_letters.counts),
            restarts=dict(kernel.restarts),
            watchdog=dict(kernel.watchdog),
            loop_lag=self._watchdog.lag if self._watchdog is not None else 0.0,
        )

    async def stop(self) -> None:
        """End the tree, last started first, then the actors outside of it.

        From now on nobody can be spawned.
        """
        self.kernel.is_closing = True
        if self.root is not None:
            await self.root.stop()
        # Why in rounds: an actor's end may bring others here whose supervisor it was.
        while cells := list(self.kernel.names.values()):
            tops = [c for c in cells if c.parent is None or c.parent.is_dead]
            ended_at_once = 0
            for cell in reversed(tops or cells):
                if not cell.end_if_idle():
                    await _end(cell)
                    continue
                ended_at_once += 1
                if ended_at_once % AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()

    def watch_loop(self, config: WatchdogConfig) -> Watchdog:
        """Start the thread that looks whether the loop is blocked."""
        self._watchdog = Watchdog(self.kernel, config)
        self._watchdog.start()
        return self._watchdog

    @trio.lowlevel.enable_ki_protection
    async def _see_start(self, cell: Cell, reply: Reply) -> None:
        try:
            await reply
        except Exception as error:  # noqa: BLE001  there is no supervisor to tell
            lifecycle.report_failure(cell, error)
            lifecycle.bury(cell, cell.last_exit or Exit("failed", error))
        finally:  # it holds the error, whose traceback holds this frame
            del reply

    @trio.lowlevel.enable_ki_protection
    async def _see_end(self, ended: Reply) -> None:
        await ended
        self._root_ended.set()

    def _root_exit(self) -> Exit | None:
        return self.root.final_exit if self.root is not None else None


def _statistics(cell: Cell, now: float) -> ActorStatistics:
    is_up = cell.state in {"running", "passivating", "stopping"}
    is_handling = cell.state == "running" and cell.scope is not None
    return ActorStatistics(
        name=cell.name,
        kind=cell.actor_class.__name__,
        supervisor=cell.parent.name if cell.parent is not None else "",
        state=cell.state,
        depth=cell.mailbox.depth,
        limit=cell.mailbox.config.capacity,
        weight=cell.mailbox.weight,
        handled=cell.handled,
        failed=cell.failed,
        restarts=cell.restarts,
        age=now - cell.started_at if is_up else 0.0,
        busy_for=now - cell.busy_since if is_handling else 0.0,
        handling=_kind_of(cell.current) if is_handling else "",
        last_end=_last_end(cell.last_exit),
        is_idle=cell.state == "running" and not cell.scheduled,
    )


def _kind_of(item: object) -> str:
    """Name the kind of message that is being handled; nothing if that is over."""
    if item is EMPTY or item is STASHED:
        return ""
    message = bare(item)
    return type(message.message if type(message) is Keyed else message).__name__


def _last_end(exit_: Exit | None) -> str:
    if exit_ is None or exit_.how not in {"failed", "killed"}:
        return ""
    if exit_.error is None:
        return exit_.how
    text = f"{type(exit_.error).__name__}: {text_of(exit_.error)}"
    return text if len(text) <= LONGEST_END else f"{text[: LONGEST_END - 1]}…"


async def _end(cell: Cell) -> None:
    """End an actor that has no supervisor: in order, or else without mercy."""
    ended = Reply()
    cell.stop(SHUTDOWN, ended)
    with trio.move_on_after(SHUTDOWN_TIME):
        await ended
        return
    cell.kill()
    with trio.move_on_after(2 * lifecycle.PATIENCE):
        await ended
        return
    lifecycle.bury(cell, KILLED)  # whatever holds it: the system ends


class Running:
    """The kernel's tasks, from opening to closing.

    They are shielded from whoever cancels the block that opened the system, because
    actors that hold a database must close it even then.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._tasks = trio.CancelScope(shield=True)
        self._closing = trio.CancelScope(shield=True)
        self._ended = trio.Event()
        self._ended.set()  # it has not begun

    @trio.lowlevel.enable_ki_protection
    async def run(
        self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Run dispatcher, timers and whatever actors await, until closed."""
        self._ended = trio.Event()
        try:
            with self._tasks:
                async with trio.open_nursery() as nursery:
                    self._kernel.open(nursery)
                    nursery.start_soon(self._kernel.dispatcher.run, name="dispatcher")
                    nursery.start_soon(self._kernel.timers.run, name="timers")
                    task_status.started()
        finally:
            # Without the dispatcher nobody ends in order; do not wait for it.
            self._closing.cancel()
            self._kernel.dispatcher.close()
            self._ended.set()

    @trio.lowlevel.enable_ki_protection
    async def close(self, system: ActorSystem) -> KeyboardInterrupt | None:
        """End all actors in order, each within its time, then the tasks.

        Returns:
            What was pressed meanwhile. It must not get past this: nobody else could
            end the tasks, which are shielded.
        """
        first: KeyboardInterrupt | None = None
        last: KeyboardInterrupt | None = None
        with self._closing:
            first = await _wait_through(system.stop)
        self._tasks.cancel()
        with trio.CancelScope(shield=True):
            last = await _wait_through(self._ended.wait)
        return last or first


async def _wait_through(
    wait: Callable[[], Awaitable[None]],
) -> KeyboardInterrupt | None:
    """Wait to the end, however often Ctrl-C is pressed; give what it raised."""
    pressed: KeyboardInterrupt | None = None
    while True:
        try:
            await wait()
        except KeyboardInterrupt as error:
            pressed = error
        else:
            return pressed


@asynccontextmanager
async def open_system(
    config: SystemConfig | None = None,
    *,
    report: Callable[[str, dict[str, Any]], None] = log_report,
) -> AsyncGenerator[ActorSystem]:
    """Open a system on the present trio loop; at the end all its actors are stopped.

    Args:
        config: timeouts and watchdog.
        report: called with what an operator should see: (event, fields).

    Raises:
        BaseException: what the block raised, unwrapped, or with what a handler ended
            the program (`KeyboardInterrupt`, `SystemExit`).
    """
    config = config or SystemConfig()
    kernel = Kernel(config.ask_timeout, report)
    system = ActorSystem(kernel)
    running = Running(kernel)
    failure: BaseException | None = None
    async with trio.open_nursery() as nursery:
        # Why shielded: whom trio finds cancelled while he reports that he has started
        # stays where nobody can end him, for the kernel's tasks are shielded, too.
        with trio.CancelScope(shield=True):
            await nursery.start(running.run)
        kernel.end_program = nursery.cancel_scope.cancel
        watchdog: Watchdog | None = None
        try:
            if config.watchdog is not None:
                watchdog = system.watch_loop(config.watchdog)
            yield system
        except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001
            failure = error  # raised again below, unwrapped
        finally:
            failure = await running.close(system) or failure
            if watchdog is not None:
                watchdog.stop()
    failure = kernel.fatal or failure
    if failure is not None:
        raise failure
