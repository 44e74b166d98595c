"""How messages get into a cell: from actors, askers, waiting senders and threads.

The base of `cell.py`, which has them handled. Holds the actor's mailbox, name and
state. Not seen by domain code; everything but reading `is_dead` and
`mailbox.has_room` happens on the kernel thread.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NoReturn

import pykka
import trio

from runtime.actor.envelope import Envelope, Notice
from runtime.actor.mailbox import EMPTY, Mailbox, MailboxConfig
from runtime.actor.messages import Exit, Passivate, Stop
from runtime.actor.reply import Reply
from runtime.errors import MailboxFullError, MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable
    from weakref import WeakSet

    from runtime.actor.actor import Actor
    from runtime.actor.dead_letters import Reason
    from runtime.actor.kernel import Kernel
    from runtime.actor.ref import ActorRef
    from runtime.actor.statistics import State
    from runtime.actor.timers import Timer

STASHED: Final = object()
"""Stands for the present message when it is no longer its handler's: set aside, or
interrupted."""


class Intake:
    """An actor's place in its system, as far as senders are concerned.

    Args:
        make: makes the actor of an incarnation; None: there will be one only.
        actor_class: for its mailbox bounds and as its kind in metrics.
        parent: its supervisor's cell, told of every end; None: nobody is.
        mailbox: bounds that replace the class's own.
    """

    __slots__ = (
        "_ref",
        "actor",
        "actor_class",
        "bounds",
        "busy_since",
        "current",
        "deferred",
        "ending",
        "failed",
        "generation",
        "handled",
        "is_final",
        "is_queued",
        "kernel",
        "last_exit",
        "mailbox",
        "make",
        "name",
        "parent",
        "restarts",
        "scheduled",
        "scope",
        "started_at",
        "state",
        "stop_replies",
        "timers",
        "watchers",
    )

    def __init__(
        self,
        kernel: Kernel,
        name: str,
        make: Callable[[], Actor] | None,
        actor_class: type[Actor],
        parent: Intake | None = None,
        mailbox: MailboxConfig | None = None,
    ) -> None:
        self.kernel = kernel
        self.name = name
        self.make = make
        self.actor_class = actor_class
        self.parent = parent
        self.bounds = mailbox
        self.mailbox = Mailbox(mailbox or actor_class.mailbox)
        self.actor: Actor | None = None
        self.state: State = "down"
        self.generation = 0
        self.scheduled = True  # nothing is handled until the actor has started
        self.scope: trio.CancelScope | None = None
        self.current: object = EMPTY
        self.ending: Exit | None = None
        """How the present incarnation is to end; what is graver replaces it."""

        self.is_final = False
        self.is_queued = False
        self.last_exit: Exit | None = None
        self.handled: int = 0
        self.failed: int = 0
        self.restarts: int = 0
        self.started_at = 0.0
        self.busy_since = 0.0
        self.stop_replies: list[Reply] | None = None
        self.watchers: set[Intake] | None = None
        self.timers: set[Timer] | None = None
        self.deferred: WeakSet[Reply] | None = None
        self._ref: ActorRef | None = None

    def remake(self, make: Callable[[], Actor]) -> None:
        """Make the next incarnations otherwise."""
        self.make = make

    @property
    def is_dead(self) -> bool:
        """Whether the actor has ended for good."""
        return self.state == "dead"

    def post(self, item: object) -> None:
        """Take a user message in.

        Raises:
            pykka.ActorDeadError: the actor has ended for good.
            MailboxFullError: there is no room and the policy does not make any.
        """
        if not self.offer(item):
            self.refuse(item)

    def refuse(self, item: object) -> NoReturn:
        """Say why `offer` did not take a message.

        Raises:
            pykka.ActorDeadError: the actor has ended for good.
            MailboxFullError: there is no room.
        """
        if self.state == "dead":
            raise pykka.ActorDeadError(f"{self.name} not found: it has ended")
        raise MailboxFullError(self.name, item)

    def offer(self, item: object) -> bool:
        """Take a user message in if there is room, or the policy makes some.

        Who waits in `send` is not overtaken: while somebody does, there is no room.
        Nor is there any for the dead, whose mailbox is closed.
        """
        mailbox = self.mailbox
        # Why here: most messages come where none waits, and a call less is felt.
        is_alone = mailbox.first is EMPTY and mailbox.rest is None
        if is_alone and mailbox.max_bytes is None and mailbox.count < mailbox.capacity:
            mailbox.first = item
            mailbox.count += 1
        elif not mailbox.offer(item):
            policy = mailbox.config.overflow
            return policy == "drop_oldest" and self._make_room(item)
        if not self.scheduled:
            # Why not `enqueue`: every hop between actors comes through here.
            self.scheduled = True
            if not self.is_queued:
                self.is_queued = True
                dispatcher = self.kernel.dispatcher
                dispatcher.queue.append(self)
                if dispatcher.parked is not None:
                    dispatcher.unpark()
        return True

    def _make_room(self, item: object) -> bool:
        """Drop the oldest messages until one more fits; take that one in.

        Returns:
            False if all room is taken by the stash, or by a stop that waits.
        """
        mailbox = self.mailbox
        if self.state == "dead":
            return False
        while not mailbox.has_room(item):
            oldest = mailbox.get()
            if oldest is EMPTY:
                return False
            if type(oldest) is Stop:
                mailbox.put_back(oldest)
                return False
            self.give_up(oldest, "dropped_oldest")
        return self.offer(item)

    def post_ask(self, envelope: Envelope, seconds: float) -> None:
        """Take an ask in and see that it is answered within `seconds`."""
        reply = envelope.reply
        if reply is None:
            raise MisuseError("an ask needs a reply; a tell has none")
        if self.state == "dead":
            text = f"{self.name} not found: it has ended"
            reply.offer_error(pykka.ActorDeadError(text))
        elif not self.offer(envelope):
            reply.offer_error(MailboxFullError(self.name, envelope.message))
        else:
            self._limit(reply, seconds)

    def arrive(self, message: object, reply: Reply | None, seconds: float) -> None:
        """Take in what a foreign thread sent; what has no place is a dead letter.

        Args:
            message: what the actor will receive.
            reply: where the answer goes; None if it was told.
            seconds: until an ask has to be answered.
        """
        item = message if reply is None else Envelope(message, reply, is_ask=True)
        if not self.offer(item):
            self.give_up(item, "stopped" if self.is_dead else "mailbox_full")
        elif reply is not None:
            self._limit(reply, seconds)

    async def send(self, item: object) -> None:
        """Take a user message in; wait for room if the policy is `wait`.

        Who is cancelled here, or finds the actor gone, has sent nothing.
        """
        await trio.lowlevel.checkpoint()  # before: from here on it is sent
        mailbox = self.mailbox
        waits = mailbox.config.overflow == "wait" and not mailbox.is_open_to(item)
        if self.state == "dead" or not waits:
            self.post(item)
            return
        admitted = mailbox.wait_for_room(item)
        try:
            await admitted
        finally:
            if not admitted.is_set:  # cancelled; it keeps its message
                mailbox.leave(admitted)
                self.wake()

    def post_system(self, message: object) -> None:
        """Take a system message in; it overtakes user messages.

        The dead hear nothing, and that is no loss: such messages only tell an actor
        what became of others.
        """
        if self.state == "dead":
            return
        kind = type(message)
        if kind is not Notice and kind is not Stop and kind is not Passivate:
            message = Notice(message)
        if type(message) is Stop and self.actor_class.ends_by_interrupt:
            # Before all that waits: the next handler might run as long as the actor.
            self.mailbox.put_system_first(message)
            self.interrupt()
        else:
            mailbox = self.mailbox
            if mailbox.system is None:
                mailbox.system = deque()
            mailbox.system.append(message)
            actor = self.actor
            if type(message) is Stop and actor is not None and actor.has_children:
                self._say_stop_due(actor)
        if not self.scheduled:
            self.enqueue()

    def _say_stop_due(self, actor: Actor) -> None:
        try:
            actor.on_stop_due()
        except BaseException as raised:  # noqa: BLE001  `judge` decides
            error = self.kernel.judge(raised)
            self.kernel.report("hook failed", {"actor": self.name, "error": error})

    def interrupt(self) -> None:
        """Cancel the present `async` handler, if there is one.

        One that has children is left alone: what it does about them, once begun,
        must not be cut in half.
        """
        has_children = self.actor is not None and self.actor.has_children
        if self.scope is not None and self.state == "running" and not has_children:
            self.scope.cancel()

    @property
    def is_killed(self) -> bool:
        """Whether the present incarnation is to end without mercy."""
        return self.ending is not None and self.ending.how == "killed"

    def step(self, batch: int) -> object:
        """Have up to `batch` messages handled; see `cell.py`."""
        raise NotImplementedError

    def wake(self) -> None:
        """See that this cell is stepped; it may be on its way already."""
        if not self.scheduled:
            self.enqueue()

    def enqueue(self) -> None:
        """Have the dispatcher step this cell; at most one place on its queue."""
        self.scheduled = True
        if not self.is_queued:
            self.is_queued = True
            dispatcher = self.kernel.dispatcher
            dispatcher.queue.append(self)
            if dispatcher.parked is not None:
                dispatcher.unpark()

    def _limit(self, reply: Reply, seconds: float) -> None:
        def expire() -> None:
            text = f"{self.name} did not answer within {seconds} s"
            reply.offer_error(pykka.Timeout(text))

        timers = self.kernel.timers
        reply.timer = timers.call_at(timers.now() + seconds, expire)

    def give_up(self, item: object, reason: Reason) -> None:
        """Make a dead letter of an item; its asker learns what became of it."""
        if item is STASHED:  # it is not given up: it waits for its state
            return
        message = bare(item)
        self.kernel.dead_letters.add(self.name, reason, message)
        if type(item) is Notice:
            item.is_waiting = False
        elif type(item) is Envelope and item.reply is not None:
            item.reply.offer_error(_why(self.name, reason, message))


def bare(item: object) -> object:
    """Give the message of what a mailbox holds."""
    # Why not `isinstance`: a stranger's class may raise there.
    return item.message if type(item) is Envelope or type(item) is Notice else item


def _why(name: str, reason: Reason, message: object) -> Exception:
    if reason in {"mailbox_full", "dropped_oldest"}:
        return MailboxFullError(name, message)
    return pykka.ActorDeadError(f"{name} ended before handling the message ({reason})")
