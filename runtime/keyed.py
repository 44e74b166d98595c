"""Actors addressed by key: woken by their first message, put to sleep when idle.

A message for a key goes to this supervisor, which hands it on. A child that has
been idle is asked to passivate; what arrives while it does waits in its mailbox,
which the next incarnation takes over, so nothing is lost in between.

One key's failures never touch another's: each key has its own restart window,
and a key that fails too often is given up, not escalated.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import trio

from runtime import lifecycle
from runtime.actor import Actor
from runtime.cell import Cell
from runtime.envelope import Envelope
from runtime.errors import DeclineStart
from runtime.mailbox import MailboxConfig
from runtime.messages import SHUTDOWN, ChildEnded, Exit, Keyed, Passivate, Stop
from runtime.reply import Reply
from runtime.restarts import Backoff, Failures, RestartWindow

if TYPE_CHECKING:
    from runtime.ref import ActorRef


class KeyedConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How actors addressed by key live."""

    idle_after: float | None = None
    """Seconds without a message before a child is put to sleep; None: never."""

    most: int = 10_000
    """Most children awake. At that number the one idle longest is put to sleep
    early; at a tenth more, messages for further keys are refused."""

    is_permanent: bool = True
    """Whether a child that failed is started again. Others are forgotten."""

    intensity: int = 3
    """Restarts of one key allowed inside one period before it is given up."""

    period: float = 30.0
    """Seconds."""

    backoff: Backoff = Backoff()
    shutdown: float | None = 5.0
    """Seconds a child may take to stop; None: as long as it likes."""


class KeyGivenUp(msgspec.Struct, frozen=True):
    """Told to `notify`: this key failed too often; what waited is dead letters."""

    key: str
    reason: str


class InterruptKey(msgspec.Struct, frozen=True):
    """Interrupt the child with this key, if it is awake."""

    key: str


class StopKey(msgspec.Struct, frozen=True):
    """Stop the child with this key for good, if it is awake."""

    key: str


class Sweep(msgspec.Struct, frozen=True):
    """A note to itself: put to sleep who has been idle."""


class WakeDue(msgspec.Struct, frozen=True):
    """A note to itself: the back-off of this key is over."""

    key: str


class KeyedChild:
    """A child as this supervisor knows it."""

    __slots__ = ("cell", "failures", "used_at", "window")

    def __init__(self, cell: Cell, now: float) -> None:
        self.cell = cell
        self.used_at = now
        self.window: RestartWindow | None = None
        self.failures = Failures()


class KeyedSupervisor(Actor):
    """Wakes actors by key, hands them their messages, puts them to sleep.

    Takes: `Keyed` (told or asked), `InterruptKey`, `StopKey`.
    Sends: the messages on; `KeyGivenUp` to `notify`.
    Keeps: who is awake, in order of last use.
    Fails: never by its children; see the module.
    Ends: with its children.
    """

    has_children: ClassVar[bool] = True
    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=100_000)

    def __init__(
        self,
        make: Callable[[str], Actor],
        config: KeyedConfig,
        notify: ActorRef | None = None,
    ) -> None:
        super().__init__()
        self._make = make
        self._config = config
        self._notify = notify
        self._children: OrderedDict[str, KeyedChild] = OrderedDict()

    def on_start(self) -> None:
        """Begin to look for idle children."""
        if self._config.idle_after is not None:
            self.every(max(self._config.idle_after / 4, 0.001), Sweep())

    def on_receive(self, message: Any) -> Any:
        """Hand messages on; deal with children that ended."""
        match message:
            case Keyed(key=key, message=inner):
                self._hand_on(key, inner)
            case ChildEnded():
                self._child_ended(message)
            case WakeDue(key=key):
                self._wake_again(key)
            case Sweep():
                self._sweep()
            case InterruptKey(key=key):
                if key in self._children:
                    self._children[key].cell.interrupt()
            case StopKey(key=key):
                if key in self._children:
                    self._children[key].cell.stop(SHUTDOWN, Reply())
            case _:
                super().on_receive(message)

    async def end_children(self, *, brutally: bool) -> None:
        """End all children at the same time; they do not depend on each other."""
        cells = [child.cell for child in self._children.values()]
        self._children.clear()
        replies: list[Reply] = []
        for cell in cells:
            if cell.state == "down":
                lifecycle.bury(cell, SHUTDOWN)
                continue
            cell.is_final = True
            reply = Reply()
            replies.append(reply)
            cell.tell_end(reply)
            if brutally:
                cell.kill()
            else:
                cell.post_system(Stop(SHUTDOWN))
        seconds = self._config.shutdown
        with trio.move_on_after(float("inf") if seconds is None else seconds):
            for reply in replies:
                await reply
            return
        for cell in cells:
            cell.kill()
        for reply in replies:
            await reply

    def _hand_on(self, key: str, message: object) -> None:
        """Give a message, and the answer that may be owed, to the child."""
        reply = self.defer_reply()
        item: object = Envelope(message, reply) if reply is not None else message
        child = self._children.get(key)
        if child is None or child.cell.is_dead:
            child = self._wake(key, item)
            if child is None:
                return
        else:
            self._children.move_to_end(key)
            child.used_at = trio.current_time()
        if not child.cell.offer(item):
            child.cell.give_up(item, "mailbox_full")

    def _wake(self, key: str, item: object) -> KeyedChild | None:
        """Start the child of a key; None if that went wrong, and the item with it."""
        kernel = self._cell.kernel
        most = self._config.most
        if len(self._children) >= most:
            next(iter(self._children.values())).cell.post_system(Passivate())
        name = f"{self.actor_urn}/{key}"
        cell = Cell(kernel, name, lambda: self._make(key), Actor, self._cell)
        if len(self._children) >= most + most // 10 + 1:
            cell.give_up(item, "mailbox_full")
            return None
        kernel.names[name] = cell
        child = KeyedChild(cell, trio.current_time())
        self._children[key] = child
        return child if self._start(key, child, item) else None

    def _start(self, key: str, child: KeyedChild, item: object | None) -> bool:
        cell = child.cell
        try:
            reply = lifecycle.start(cell)
        except DeclineStart:
            self._drop(key, item, SHUTDOWN)
            return False
        except Exception as error:  # noqa: BLE001  counts as a failure of the child
            lifecycle.report_failure(cell, error)
            if item is not None:
                cell.offer(item)
            self._child_failed(key, child, Exit("failed", error))
            return False
        if reply is not None:
            lifecycle.start_task(cell, self._see_start, key, child, reply)
        return True

    async def _see_start(self, key: str, child: KeyedChild, reply: Reply) -> None:
        try:
            await reply
        except DeclineStart:
            self._drop(key, None, SHUTDOWN)
        except Exception as error:  # noqa: BLE001  counts as a failure of the child
            if self._children.get(key) is child:
                lifecycle.report_failure(child.cell, error)
                self._child_failed(key, child, Exit("failed", error))

    def _child_ended(self, ended: ChildEnded) -> None:
        key = ended.name.removeprefix(f"{self.actor_urn}/")
        child = self._children.get(key)
        if child is None or child.cell.generation != ended.generation + 1:
            return
        cell = child.cell
        if cell.is_dead:
            del self._children[key]
        elif cell.state != "down":
            return
        elif ended.exit.how in {"failed", "killed"}:
            self._child_failed(key, child, ended.exit)
        elif cell.mailbox.empty():
            self._drop(key, None, ended.exit)
        else:  # words came while it fell asleep: the next incarnation has them
            self._start(key, child, None)

    def _child_failed(self, key: str, child: KeyedChild, exit_: Exit) -> None:
        config = self._config
        kernel = self._cell.kernel
        now = trio.current_time()
        if child.window is None:
            child.window = RestartWindow(config.intensity, config.period)
        if not config.is_permanent or not child.window.allow(now):
            self._drop(key, None, exit_)
            if self._notify is not None:
                self._notify.tell(KeyGivenUp(key, exit_.reason))
            return
        kernel.restarts[child.cell.actor_class.__name__, exit_.reason] += 1
        seconds, child.failures = config.backoff.delay(
            child.failures, now, kernel.roll()
        )
        if seconds > 0:
            self.after(seconds, WakeDue(key))
        else:
            self._wake_again(key)

    def _wake_again(self, key: str) -> None:
        child = self._children.get(key)
        if child is not None and child.cell.state == "down":
            child.cell.restarts += 1
            self._start(key, child, None)

    def _drop(self, key: str, item: object | None, exit_: Exit) -> None:
        child = self._children.pop(key, None)
        if child is None:
            return
        if item is not None and not child.cell.offer(item):
            child.cell.give_up(item, "mailbox_full")
        lifecycle.bury(child.cell, exit_)

    def _sweep(self) -> None:
        """Ask those who have been idle to sleep; the longest idle come first."""
        idle_after = self._config.idle_after
        if idle_after is None:
            return
        now = trio.current_time()
        for key, child in list(self._children.items()):
            if now - child.used_at < idle_after:
                return
            child.used_at = now
            self._children.move_to_end(key)
            child.cell.post_system(Passivate())
