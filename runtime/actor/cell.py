"""An actor over all its incarnations: who handles what, and who may stop it.

The cell outlives its actor: restarts and sleep replace the actor object behind
the same ref, name and mailbox. `posting.py` below takes messages in, this file has
them handled, `lifecycle.py` starts and ends incarnations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import CoroutineType
from typing import Any, NoReturn
from weakref import WeakSet

import pykka
import trio

from runtime.actor import lifecycle
from runtime.actor.actor import PROXY_MESSAGES, Actor
from runtime.actor.dead_letters import Reason
from runtime.actor.dispatcher import BATCH, DEEPEST, STEP
from runtime.actor.envelope import Envelope, Notice
from runtime.actor.mailbox import EMPTY
from runtime.actor.messages import (
    KILLED,
    NORMAL,
    PASSIVATED,
    SHUTDOWN,
    CommitDue,
    Exit,
    Passivate,
    Stop,
    Terminated,
    graver,
)
from runtime.actor.posting import STASHED, Intake, bare
from runtime.actor.ref import ActorRef, cell_of
from runtime.actor.reply import Reply
from runtime.errors import (
    DeadlineError,
    InterruptedActorError,
    MailboxFullError,
    MisuseError,
)

WRAPPED = PROXY_MESSAGES | {Envelope, Notice, Stop, Passivate}
"""What a mailbox gives that is not the message itself."""

KERNELS_OWN = PROXY_MESSAGES | {CommitDue}
"""Messages that are not for `on_receive`."""


class Cell(Intake):
    """One actor over all its incarnations; see `Intake` for the arguments."""

    __slots__ = ()

    @property
    def ref(self) -> ActorRef:
        """The actor's ref, always the same; most keyed actors never need one."""
        ref = self._ref = self._ref or ActorRef(self)
        return ref

    def let_go(self) -> None:
        """Drop ref, recipe and last end: each may hold this cell, in a circle.

        The end goes to the ref, for its error's traceback holds this cell, too.
        """
        if self._ref is not None:
            self._ref.final_exit = self.last_exit
        self._ref = self.make = self.last_exit = None

    def step(self, batch: int, *, is_burst: bool = False) -> Any:  # noqa: PLR0911, PLR0912, PLR0915  the hot loop
        """Handle messages inline; after a whole batch ask for another turn.

        Args:
            batch: how many at most.
            is_burst: whether an `async` handler is awaited by the caller, or else
                gets a task.

        Returns:
            What an `async` handler has to do; None if it has a task, or there is none.
        """
        actor = self.actor
        if self.state != "running" or actor is None:  # it ended on the queue
            return None
        mailbox = self.mailbox
        for _ in range(batch):
            item = mailbox.first
            is_weighed = mailbox.max_bytes is not None
            if item is EMPTY or mailbox.system or mailbox.senders or is_weighed:
                item = mailbox.get_system() if mailbox.system else mailbox.get()
                if item is EMPTY:
                    self.scheduled = False
                    return None
            else:  # as most often; a call less is felt
                mailbox.first = EMPTY
                mailbox.count -= 1
            message, receive = item, actor.on_receive
            try:
                is_wrapped = type(item) in WRAPPED
            except Exception:  # noqa: BLE001  a stranger's metaclass
                is_wrapped = False
            if is_wrapped:
                if type(item) is Notice and item.generation in (None, self.generation):
                    item.is_waiting = False  # as `_open` does, for most of them
                    message = item.message
                elif type(item) is Envelope:
                    message = item.message
                elif (message := self._open(actor, item)) is EMPTY:
                    return None
                try:
                    if type(message) in KERNELS_OWN:
                        receive = actor._handle_receive  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
                except Exception:  # noqa: BLE001  a stranger's metaclass
                    receive = actor.on_receive
            self.current = item
            try:
                result = receive(message)
            except BaseException as raised:  # noqa: BLE001  `judge` decides
                # Why no name for the error: its traceback would hold this frame.
                if not self._fail(item, lifecycle.failed(self.kernel.judge(raised))):
                    return None
                if self.kernel.dispatcher.spend(1):  # it is not `handled`
                    continue
                break
            if type(result) is CoroutineType:
                self.scope = trio.CancelScope()  # as `open_scope` does; a call is felt
                if self.ending is not None:
                    lifecycle.cut_short(self, self.scope, self.ending)
                self.busy_since = self.kernel.now()
                if is_burst:
                    return result  # pyright: ignore[reportUnknownVariableType]
                lifecycle.start_task(self, self._burst, actor, result)
                return None
            if type(item) is Envelope:
                self._answer(item, result)
            else:
                self.handled += 1
                self.current = EMPTY
            # Why here too: most messages are the last one, and a look costs less
            # than another round.
            if not mailbox.count and mailbox.rest is None and not mailbox.system:
                self.scheduled = False
                return None
        if mailbox.empty():
            self.scheduled = False
        else:
            self.enqueue()
        return None

    def _open(self, actor: Actor, item: Any) -> object:
        """Take the message out of its wrapping; `EMPTY` when there is none for now."""
        kind: type[object] = type(item)  # pyright: ignore[reportUnknownVariableType]
        if kind in PROXY_MESSAGES:
            return item
        if kind is Notice:  # for an incarnation that has ended
            item.is_waiting = False
        elif kind is Stop:
            if item.ended is not None:
                self.is_final = True
                self.tell_end(item.ended)
            lifecycle.end(self, item.exit)
        elif self._may_sleep(actor):
            lifecycle.end(self, PASSIVATED)
        if self.state == "running":  # the next message in the next turn
            self.enqueue()
        return EMPTY

    def _may_sleep(self, actor: Actor) -> bool:
        mailbox = self.mailbox
        if mailbox.count or not mailbox.empty():
            return False
        try:
            return actor.may_passivate()
        except BaseException as raised:  # noqa: BLE001  `judge` decides
            self.failed += 1
            lifecycle.end(self, lifecycle.failed(self.kernel.judge(raised)))
            return False

    def _answer(self, item: object, result: object) -> None:
        """Count a handled message and answer it if it was asked."""
        self.handled += 1
        if type(item) is Envelope and self.current is item:
            reply = item.reply
            if reply is not None and not reply.offer(result):
                self.kernel.dead_letters.add(self.name, "late_reply", item.message)
        self.current = EMPTY

    def _fail(self, item: object, exit_: Exit) -> bool:
        """Deal with a handler that did not come to its end, and with its message.

        Returns:
            Whether the actor goes on: the asker got the error.
        """
        exit_ = graver(self.ending, exit_)
        error = exit_.error
        if exit_.how == "killed" or error is None:
            self.give_up(self.current, "killed")
            lifecycle.end(self, exit_)
            return False
        self.failed += 1
        # A message that was set aside fails like any other; one that waits in the
        # mailbox again is left there.
        is_ours = self.current is not STASHED or self.mailbox.take_back(item)
        self.current = EMPTY
        if is_ours and type(item) is Envelope and item.is_ask:
            asker, item.reply = item.reply, None  # the error holds the item
            if asker is not None:
                asker.offer_error(error)
            # Another's deadline, which it heard of by asking, is an error like any.
            overran = isinstance(error, DeadlineError) and error.actor == self.name
            # Where the reply was taken to be answered later, nobody heard of it.
            if asker and not overran and not self.actor_class.fail_on_ask_error:
                return True
        elif is_ours:
            self._count_kill(item)
        lifecycle.end(self, exit_)
        return False

    def _count_kill(self, item: object) -> None:
        if type(item) is Notice:  # a timer's next tick is as good
            item.is_waiting = False  # as it did if it was set aside
            return
        envelope = item if type(item) is Envelope else Envelope(item)
        envelope.kills += 1
        if envelope.kills >= self.actor_class.poison_after:
            self.give_up(envelope, "poison")
        else:
            self.mailbox.put_back(envelope)

    @trio.lowlevel.enable_ki_protection
    async def _burst(self, actor: Actor, coroutine: Any) -> None:
        """Run an `async` handler, then what waits; then give way as plain ones do."""
        last = self.handled + self.failed + BATCH
        dispatcher = self.kernel.dispatcher
        while coroutine is not None:
            item = self.current
            ended = await lifecycle.guard(self, coroutine, has_deadline=True)
            if ended is None:
                self.kernel.watchdog[self.actor_class.__name__, "came_back"] += 1
                return
            may_go_on = self._settle(actor, item, *ended)
            # Since Python 3.12 an error's traceback holds this frame, and the item may
            # have an error, too: a supervisor is told with which one a child ended.
            del ended, item
            if not may_go_on:
                return
            mailbox = self.mailbox
            if not mailbox.count and mailbox.rest is None and not mailbox.system:
                # As most often: there is nothing to spend time on.
                dispatcher.turn.left -= 1 + STEP
                self.scheduled = False
                return
            left = last - self.handled - self.failed
            if not dispatcher.spend(1 + STEP) or left <= 0:
                self.enqueue()
                return
            coroutine = self.step(left, is_burst=True)

    def _settle(
        self, actor: Actor, item: object, error: Exception | None, result: object
    ) -> bool:
        """Deal with how an `async` handler ended; False when its actor ends too."""
        exit_ = self.ending
        if error is None and result is not lifecycle.CANCELLED:
            self._answer(item, result)
            if exit_ is None:
                return True
            lifecycle.end(self, exit_)  # in time or not, it was to end
            return False
        if exit_ is None:
            if error is None:
                return self._interrupted(actor, item)
            exit_ = lifecycle.failed(error)
        elif exit_.error is not None:  # what it raised itself counts for less
            exit_.error.__cause__ = error
        return self._fail(item, exit_)

    def _interrupted(self, actor: Actor, item: object) -> bool:
        # Why not `EMPTY`: code in its hook that kills the actor must find it busy.
        interrupted, self.current = self.current, STASHED
        if type(interrupted) is Envelope and interrupted.reply is not None:
            text = f"{self.name} was interrupted"
            interrupted.reply.offer_error(InterruptedActorError(text))
        try:
            message = bare(item)
            actor.on_interrupt(message)
        except BaseException as raised:  # noqa: BLE001  `judge` decides
            self.failed += 1
            lifecycle.end(self, lifecycle.failed(self.kernel.judge(raised)))
            return False
        self.current = EMPTY
        return True

    # --- what the actor asks of it --------------------------------------------

    @trio.lowlevel.enable_ki_protection
    def pass_on(self, message: object) -> bool:
        """Have an idle actor pass a message on at once, in its sender's turn.

        Returns:
            False if it did not: the message has to come by the mailbox.
        """
        actor, mailbox, dispatcher = self.actor, self.mailbox, self.kernel.dispatcher
        # Nobody who waits for room is overtaken, either.
        if actor is None or mailbox.senders or dispatcher.deep >= DEEPEST:
            return False
        dispatcher.deep += 1
        dispatcher.turn.left -= 1
        # It is busy now: what it is told meanwhile waits.
        self.scheduled, self.current = True, message
        try:
            is_done = actor.pass_on(message)
            if is_done is not True and is_done is not False:
                _refuse_unsaid(actor, is_done)
        except BaseException as raised:  # noqa: BLE001  `judge` decides
            self._fail(message, lifecycle.failed(self.kernel.judge(raised)))
            return True
        finally:
            dispatcher.deep -= 1
        self.current = EMPTY
        self.handled += is_done
        if mailbox.count or mailbox.system:
            self.enqueue()
        else:
            self.scheduled = False
        return is_done

    def tell_from_thread(self, tell: Callable[[], object], message: object) -> bool:
        """Have the kernel thread make a call of `tell`; False if it cannot be asked."""
        try:
            self.kernel.dispatcher.send_soon(self, tell, message)
        except (pykka.ActorDeadError, MailboxFullError):
            return False
        return True

    def tell_elsewhere(self, ref: ActorRef, message: object) -> bool:
        """Tell an actor of another system; what it refuses is a dead letter of ours."""
        try:
            ref.tell(message)
        except (pykka.ActorDeadError, MailboxFullError):
            reason: Reason = "mailbox_full" if ref.is_alive() else "stopped"
            self.kernel.dead_letters.add(str(ref), reason, message)
            return False
        return True

    def take_reply(self) -> Reply | None:
        """Take the present ask's reply away, for whoever is to answer it."""
        item = self.current
        if type(item) is not Envelope:
            return None
        reply, item.reply = item.reply, None
        return reply

    def defer_reply(self) -> Reply | None:
        """Do the same, and answer it with an error if this incarnation does not."""
        reply = self.take_reply()
        if reply is not None:
            if self.deferred is None:
                self.deferred = WeakSet()
            self.deferred.add(reply)
        return reply

    def stash(self) -> None:
        """Set the present message aside."""
        if self.current is EMPTY or self.current is STASHED:
            raise MisuseError("stash can be called once, while handling a message")
        if type(self.current) is Notice:  # a periodic one must not wait twice
            self.current.is_waiting = True
        self.mailbox.stash(self.current)
        self.current = STASHED

    def unstash(self) -> int:
        """Put the stashed messages before all others; gives their number."""
        count = self.mailbox.unstash()
        self.wake()
        return count

    def requeue(self, message: object) -> None:
        """Put a message before all others."""
        self.mailbox.put_back(message)
        self.wake()

    def watch(self, ref: ActorRef) -> None:
        """Have `Terminated` told to this actor when that one ends for good."""
        other = cell_of(ref)
        if other.kernel is not self.kernel and not other.kernel.on_kernel_thread:
            raise MisuseError(f"{other.name} is another thread's: ask it when it ends")
        if other.state == "dead":
            # Why a look: an earlier incarnation may have left the news behind.
            if not any(_tells_of(item, ref) for item in self.mailbox.system or ()):
                self.post_system(Terminated(ref, ref.final_exit or NORMAL))
            return
        watchers = other.watchers
        if watchers is None:
            watchers = other.watchers = set()
        watchers.add(self)
        # Whenever their number has doubled: who has ended needs to be told nothing.
        if len(watchers) >= 16 and len(watchers) & (len(watchers) - 1) == 0:
            watchers -= {watcher for watcher in watchers if watcher.is_dead}

    def unwatch(self, ref: ActorRef) -> None:
        """Take `watch` back; what has not been heard yet is not told any more."""
        other, system = cell_of(ref), self.mailbox.system
        if other.watchers is not None:
            other.watchers.discard(self)
        if system and other.state == "dead":
            kept = [item for item in system if not _tells_of(item, ref)]
            self.mailbox.system = deque(kept) if kept else None

    # --- what others ask of it ------------------------------------------------

    def stop(self, exit_: Exit, reply: Reply, *, drain: bool = False) -> None:
        """End for good after the present message, or after all that waits."""
        if self.is_dead:
            reply.offer(value=False)
            return
        if drain:
            self.mailbox.put(Stop(exit_, reply))
            self.wake()
            return
        self.is_final = True
        self.tell_end(reply)
        if self.state == "down":
            lifecycle.bury(self, exit_)
        else:
            self.post_system(Stop(exit_))

    def end_if_idle(self) -> bool:
        """End for good, in order, an actor that does nothing and has no children.

        Costs no turn of the dispatcher and no task, which a million actors would feel.

        Returns:
            False if it must be asked to end, or its hook has still to come to its end.
        """
        actor = self.actor
        is_idle = self.state == "running" and not self.scheduled
        if not is_idle or actor is None or actor.has_children:
            return False
        self.is_final = True
        lifecycle.end(self, SHUTDOWN)
        return self.is_dead

    def tell_end(self, reply: Reply) -> None:
        """Answer `reply` with True when the present incarnation has ended."""
        self.stop_replies = [*(self.stop_replies or ()), reply]

    def kill(self) -> None:
        """End at once; the supervisor decides what next."""
        if self.state in {"dead", "down"} or self.is_killed:
            return
        if self.scope is not None:
            lifecycle.cut_short(self, self.scope, KILLED)
        elif self.state == "running" and self.current is EMPTY:
            lifecycle.end(self, KILLED)
        else:  # from inside its own code
            self.ending = graver(self.ending, KILLED)
            if self.state in {"running", "starting"}:
                self._stop_first(KILLED)

    def crash(self, error: Exception) -> None:
        """End as after a failure; who is in the middle of something is killed."""
        if self.state == "running" and self.scope is None and self.current is EMPTY:
            # Why in a turn of its own: its hook may crash the next, and so on.
            self._stop_first(Exit("failed", error))
        else:
            self.kill()

    def _stop_first(self, exit_: Exit) -> None:
        """End before anything that waits is handled."""
        self.mailbox.put_system_first(Stop(exit_))
        self.wake()


def _refuse_unsaid(actor: Actor, given: object) -> NoReturn:
    kind = type(actor).__name__
    raise MisuseError(f"{kind}.pass_on must return True or False, not {given!r}")


def _tells_of(item: object, ref: ActorRef) -> bool:
    """Whether a message of the system lane says that this actor has ended."""
    message = item.message if type(item) is Notice else None
    return type(message) is Terminated and message.ref is ref
