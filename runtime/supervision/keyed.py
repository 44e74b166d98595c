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
from functools import partial
from typing import ClassVar

import msgspec
import trio

from runtime.actor import lifecycle
from runtime.actor.actor import Actor
from runtime.actor.cell import Cell
from runtime.actor.envelope import Envelope
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import NORMAL, SHUTDOWN, ChildEnded, Exit, Keyed, Passivate
from runtime.actor.ref import ActorRef
from runtime.actor.reply import Reply
from runtime.actor.timers import SHORTEST
from runtime.errors import why_no_time
from runtime.supervision.child import (
    in_trio,
    kill_for_good,
    refuse_times,
    stop_for_good,
    turn_down,
)
from runtime.supervision.restarts import Backoff, Failures, RestartWindow

# Chosen: how many children are looked at to find one that may sleep, when there are
# too many. Those looked at are in use, so the next search begins with others.
LOOKS = 8


class KeyedConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How actors addressed by key live.

    Raises:
        ValueError: `idle_after` is not above 0, `most` is below 1, or a time below 0.
    """

    idle_after: float | None = None
    """Seconds without a message before a child is put to sleep, unless it is busy
    or declines; None: never."""

    most: int = 10_000
    """Most children awake. At that number the one idle longest is put to sleep
    early; at a tenth more (but at least one), messages for further keys are refused.
    """

    is_permanent: bool = True
    """Whether a child that failed is started again. Others are forgotten."""

    intensity: int = 3
    """Restarts of one key allowed inside one period before it is given up."""

    period: float = 30.0
    """Seconds."""

    backoff: Backoff = Backoff()
    start_timeout: float | None = 30.0
    """Seconds the `on_start` of a child may take; None: as long as it likes."""

    shutdown: float | None = 5.0
    """Seconds a child may take to stop; None: as long as it likes."""

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense, also when decoded from settings."""
        idle = self.idle_after
        if idle is not None and (wrong := why_no_time(idle, SHORTEST)):
            raise ValueError(f"idle_after must be above 0, {wrong}")
        if self.most < 1:
            raise ValueError(f"most must be 1 or more, not {self.most}")
        refuse_times(self.shutdown, self.start_timeout)

    @property
    def limit(self) -> int:
        """Children at which messages for further keys are refused."""
        return self.most + max(1, self.most // 10)


class KeyGivenUp(msgspec.Struct, frozen=True):
    """Told to `notify`: this key failed too often; what waited is dead letters."""

    key: str
    reason: str


class InterruptKey(msgspec.Struct, frozen=True):
    """Interrupt the child with this key, if it is awake."""

    key: str


class StopKey(msgspec.Struct, frozen=True):
    """Stop the child with this key; what waits for it becomes dead letters.

    Asked, it is answered when the child has ended; False if it was not awake.
    """

    key: str


class ToAwake(msgspec.Struct, frozen=True):
    """Hand a message to every child that is awake; nobody is woken for it."""

    message: object


class Sweep(msgspec.Struct, frozen=True):
    """A note to itself: put to sleep who has been idle."""


class WakeDue(msgspec.Struct, frozen=True):
    """A note to itself: the back-off of this key is over."""

    key: str
    generation: int
    """The incarnation that it waited to start."""


NEVER_FAILED = Failures()


class KeyedChild:
    """A child as this supervisor knows it; called, it makes the actor."""

    __slots__ = ("_make", "cell", "failures", "key", "used_at", "window")

    cell: Cell

    def __init__(self, key: str, make: Callable[[str], Actor]) -> None:
        self.key = key
        self._make = make
        self.used_at = 0.0
        self.window: RestartWindow | None = None
        self.failures = NEVER_FAILED

    def __call__(self) -> Actor:
        """Make the actor; a closure of its own would weigh more than all of this."""
        return self._make(self.key)

    @property
    def is_idle(self) -> bool:
        """Whether it is up, handles nothing, and nothing waits for it."""
        cell = self.cell
        return cell.state == "running" and cell.scope is None and cell.mailbox.empty()


class KeyedSupervisor(Actor):
    """Wakes actors by key, hands them their messages, puts them to sleep.

    Takes: `Keyed` (told or asked), `ToAwake`, `InterruptKey`, `StopKey`.
    Sends: the messages on; `KeyGivenUp` to `notify`.
    Keeps: who is awake, in order of last use.
    Fails: never by its children; see the module.
    Ends: with its children.
    """

    has_children: ClassVar[bool] = True
    passes_on: ClassVar[bool] = True
    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=100_000)

    def __init__(
        self,
        make: Callable[[str], Actor],
        config: KeyedConfig | Callable[[], KeyedConfig],
        notify: ActorRef | str | None = None,
    ) -> None:
        super().__init__()
        self._make = make
        self._configure = config if callable(config) else lambda: config
        self._notify = notify
        self._children: OrderedDict[str, KeyedChild] = OrderedDict()
        self._is_to_sweep = False
        """Whether a `Sweep` is on its way; none is while nobody is awake."""

    @property
    def _config(self) -> KeyedConfig:
        """How children live now."""
        return self._configure()

    def pass_on(self, message: object) -> bool:
        """Hand a message to a child that is awake; to wake one takes a turn."""
        if type(message) is not Keyed:
            return False
        key = message.key
        try:
            child = self._children.get(key)
        except TypeError:  # no text, which `on_receive` refuses
            return False
        if child is None or child.cell.state != "running":
            return False
        # As `_use` does.
        child.used_at = self._cell.kernel.now()
        self._children.move_to_end(key)
        cell = child.cell
        may_pass_on = not cell.scheduled and cell.actor_class.passes_on
        return (may_pass_on and cell.pass_on(message.message)) or cell.offer(
            message.message
        )

    def on_receive(self, message: object) -> None:
        """Hand messages on; deal with children that ended."""
        match message:
            case Keyed(key=str()):
                self._hand_on(message)
            case ChildEnded():
                self._child_ended(message)
            case WakeDue():
                self._wake_again(message)
            case Sweep():
                self._sweep()
            case ToAwake(message=item):
                self._tell_awake(item)
            case InterruptKey(key=str(key)):
                self._interrupt(key)
            case StopKey(key=str(key)):
                self._stop_key(key)
            case _:
                turn_down(self._cell, message)

    async def end_children(self, *, brutally: bool) -> None:
        """End all children at the same time; they do not depend on each other."""
        cells = [child.cell for child in self._children.values()]
        if not brutally:
            with trio.move_on_after(in_trio(self._config.shutdown)):
                for reply in [stop_for_good(cell) for cell in cells]:
                    await reply
        for reply in [kill_for_good(cell) for cell in cells]:
            await reply
        self._children.clear()

    # --- messages ---------------------------------------------------------------

    def _hand_on(self, keyed: Keyed) -> None:
        """Give a message, and the answer that may be owed, to the child."""
        reply, key, message = self._cell.take_reply(), keyed.key, keyed.message
        item: object = (
            Envelope(message, reply, is_ask=True) if reply is not None else message
        )
        child = self._children.get(key)
        if child is None or child.cell.is_dead:
            if not keyed.may_wake:
                if reply is not None:
                    reply.offer(value=False)
                return
            if self._is_anothers(key):
                self._cell.give_up(item, "no_such_actor")
                return
            child = self._wake(key, child)
            if child is None:
                self._cell.give_up(item, "mailbox_full")
                return
        self._use(key, child)
        if not child.cell.offer(item):
            child.cell.give_up(item, "mailbox_full")

    def _tell_awake(self, message: object) -> None:
        """Tell all; to be told is no use that keeps anybody awake."""
        for child in tuple(self._children.values()):
            if not child.cell.is_dead and not child.cell.offer(message):
                child.cell.give_up(message, "mailbox_full")

    def _is_anothers(self, key: str) -> bool:
        """Whether the name that a key's actor would have is somebody else's."""
        name = f"{self._cell.name}/{key}"
        is_taken = name in self._cell.kernel.names
        if is_taken:
            self._cell.kernel.report("name of a key is taken", {"actor": name})
        return is_taken

    def _wake(self, key: str, before: KeyedChild | None) -> KeyedChild | None:
        """Start the child of a key; None if there are too many."""
        children, config = self._children, self._configure()
        if len(children) >= config.most and before is None:
            self._make_room()
            if len(children) >= config.limit:
                return None
        kernel = self._cell.kernel
        name = f"{self._cell.name}/{key}"
        child = KeyedChild(key, self._make)
        child.cell = cell = Cell(kernel, name, child, Actor, self._cell)
        if before is not None:  # numbered on, so that its notes mean it alone
            cell.generation = before.cell.generation
        kernel.names[name] = cell
        children[key] = child
        if config.idle_after is not None and not self._is_to_sweep:
            self._sweep_in(config.idle_after)
        self._start(child)
        return child

    def _start(self, child: KeyedChild) -> None:
        cell = child.cell
        late = partial(_end_start, cell, cell.generation)
        try:
            reply = lifecycle.start(cell)
        except Exception:  # noqa: BLE001  its `ChildEnded` says it, and comes next
            return
        if reply is not None and (seconds := self._config.start_timeout) is not None:
            reply.timer = cell.kernel.timers.call_in(seconds, late)

    def _interrupt(self, key: str) -> None:
        child = self._children.get(key)
        if child is not None:
            child.cell.interrupt()

    def _stop_key(self, key: str) -> None:
        reply = self._cell.take_reply() or Reply()
        child = self._children.get(key)
        if child is None:
            reply.offer(value=False)
            return
        child.cell.stop(SHUTDOWN, reply)
        if child.cell.is_dead:  # it waited for its restart; nobody else will tell
            del self._children[key]

    # --- sleep --------------------------------------------------------------------

    def _use(self, key: str, child: KeyedChild) -> None:
        child.used_at = self._cell.kernel.now()
        self._children.move_to_end(key)

    def _sweep(self) -> None:
        """Ask those who have been idle to sleep; the longest idle come first."""
        self._is_to_sweep = False
        idle_after, now = self._config.idle_after or 0.0, trio.current_time()
        # Chosen: nobody stays awake for more than a quarter longer than asked, and
        # however many fall idle one after the other, few sweeps look for them.
        soon = max(idle_after / 4, 0.001)
        for _ in range(len(self._children)):
            key, child = next(iter(self._children.items()))
            if child.used_at > now - idle_after:
                self._sweep_in(max(child.used_at + idle_after - now, soon))
                return
            self._ask_to_sleep(key, child)
        if self._children:  # all were asked: to see whether they went
            self._sweep_in(soon)

    def _sweep_in(self, seconds: float) -> None:
        self._is_to_sweep = True
        self.after(seconds, Sweep())

    def _make_room(self) -> None:
        for _ in range(min(LOOKS, len(self._children))):
            if self._ask_to_sleep(*next(iter(self._children.items()))):
                return

    def _ask_to_sleep(self, key: str, child: KeyedChild) -> bool:
        """Ask a child to sleep unless it is busy; either way its turn is over."""
        self._use(key, child)
        if child.is_idle:
            child.cell.post_system(Passivate())
            return True
        return False

    # --- ends ---------------------------------------------------------------------

    def _child_ended(self, ended: ChildEnded) -> None:
        key = ended.name.removeprefix(f"{self._cell.name}/")
        child = self._children.get(key)
        if child is None:
            return
        cell, exit_ = child.cell, ended.exit
        if cell.state == "dead":
            del self._children[key]
        elif exit_.how == "normal" and exit_.error is not None:  # it declined to run
            self._drop(key, child, NORMAL)
        elif exit_.how in {"failed", "killed"}:
            self._child_failed(key, child, exit_)
        elif cell.mailbox.empty():
            self._drop(key, child, exit_)
        else:  # words came while it fell asleep: the next incarnation has them
            self._start(child)

    def _child_failed(self, key: str, child: KeyedChild, exit_: Exit) -> None:
        config, kernel, now = self._config, self._cell.kernel, trio.current_time()
        if child.window is None:
            child.window = RestartWindow(config.intensity, config.period)
        if not config.is_permanent or not child.window.allow(now):
            self._give_up_key(key, child, exit_)
            return
        kernel.restarts[child.cell.actor_class.__name__, exit_.reason] += 1
        seconds, child.failures = config.backoff.delay(
            child.failures, now, kernel.roll()
        )
        kernel.report(
            "actor restarts",
            {"actor": child.cell.name, "reason": exit_.reason, "after": seconds},
        )
        due = WakeDue(key, child.cell.generation)
        if seconds > 0:
            self.after(seconds, due)
        else:
            self._wake_again(due)

    def _give_up_key(self, key: str, child: KeyedChild, exit_: Exit) -> None:
        self._drop(key, child, exit_)
        self._cell.kernel.report(
            "key given up", {"actor": child.cell.name, "reason": exit_.reason}
        )
        if self._notify is not None:
            # Why not `tell`: should there be no room, that is not this actor's end.
            self.tell(self._notify, KeyGivenUp(key, exit_.reason))

    def _wake_again(self, due: WakeDue) -> None:
        child = self._children.get(due.key)
        if child is None or child.cell.generation != due.generation:
            return
        if child.cell.is_dead:  # stopped by somebody who holds its ref
            del self._children[due.key]
        elif child.cell.state == "down":  # else a message has started a successor
            child.cell.restarts += 1
            self._start(child)

    def _drop(self, key: str, child: KeyedChild, exit_: Exit) -> None:
        del self._children[key]
        lifecycle.bury(child.cell, exit_)


def _end_start(cell: Cell, generation: int) -> None:
    """Kill an incarnation that has not started in time; the next is left alone."""
    if cell.generation == generation:
        cell.kill()
