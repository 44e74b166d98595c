"""The base of every actor: pykka's `Actor` on trio's scheduler.

Subclass it, keep state private, handle one message at a time in `on_receive`,
which may be `async`. pykka's three hooks are filled here; its registry and its
loop are not used, because the registry is a list and the loop owns a thread.

Terms: pykka's (`on_start`, `on_stop`, `on_failure`, `on_receive`).
"""

from __future__ import annotations

from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import pykka
from pykka import messages as pykka_messages

from runtime.actor import timers as appointments
from runtime.actor.envelope import Notice
from runtime.actor.mailbox import Mailbox, MailboxConfig
from runtime.actor.messages import NORMAL, CommitDue, Stop
from runtime.actor.ref import ActorRef, cell_of
from runtime.actor.reply import Reply
from runtime.errors import MisuseError, why_no_time

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from runtime.actor.cell import Cell
    from runtime.actor.dead_letters import Reason
    from runtime.actor.timers import Timer

PROXY_MESSAGES = frozenset(
    {
        pykka_messages.ProxyCall,
        pykka_messages.ProxyGetAttr,
        pykka_messages.ProxySetAttr,
    }
)


class NotStarted:
    """What an actor has for a cell until it starts: to ask for it is a mistake."""

    __slots__ = ()

    def __get__(self, actor: object, owner: type[object]) -> NoReturn:
        """Refuse; the instance's own attribute comes before it.

        Raises:
            MisuseError: always.
        """
        del actor
        raise MisuseError(
            f"{owner.__name__} has not started yet: use `on_start`, "
            "not `__init__`, for what needs its ref"
        )


if TYPE_CHECKING:

    class PykkaActor:
        """pykka's `Actor` without its hooks' types, which forbid `async` hooks."""

        def _handle_receive(self, message: Any) -> Any: ...

else:
    PykkaActor = pykka.Actor


class Actor(PykkaActor):
    """An object with private state and a mailbox, handling one message at a time.

    A handler that is a plain function is run inline and must not wait. A handler
    that is `async` gets a task for as long as it runs; its actor handles nothing
    else meanwhile. Either may return a value: the answer to an ask.

    In `__init__` take what you need; the ref does not exist yet. It does in
    `on_start`, which runs before the first message of each incarnation.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig()
    """Bounds of the mailbox, unless the child spec says otherwise."""

    deadline: ClassVar[float | None] = 300.0
    """Seconds an `async` handler may run before the watchdog cancels it and the
    actor is restarted; None: as long as it likes. `on_stop` and `on_failure` have
    as long."""

    poison_after: ClassVar[int] = 3
    """How many incarnations one message may kill before it is a dead letter."""

    fail_on_ask_error: ClassVar[bool] = False
    """Whether an exception that answers an ask also fails the actor."""

    ends_by_interrupt: ClassVar[bool] = False
    """Whether to be stopped interrupts what the actor is handling; for handlers that
    run as long as the actor does."""

    has_children: ClassVar[bool] = False
    """Whether `end_children` must run before the actor ends, however it ends. Such
    an actor cannot be interrupted."""

    passes_on: ClassVar[bool] = False
    """Whether `pass_on` is asked first, for actors through which much only passes."""

    if TYPE_CHECKING:
        _cell: Cell
    else:
        _cell = NotStarted()

    _is_left_behind = False
    """Whether a handler of this incarnation runs on, though its actor has ended."""

    def __init__(self) -> None:
        # Why not super().__init__(): it makes a uuid and a threading.Event, the
        # largest part of what an actor costs; the cell has a name and a state.
        pass

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse settings that are none where the class is made, not in the loop.

        Raises:
            MisuseError: `deadline` is neither None nor 0 seconds or more, `mailbox` no
                `MailboxConfig`, or `poison_after` no number.
        """
        super().__init_subclass__(**options)
        for name, kind in (("mailbox", MailboxConfig), ("poison_after", int)):
            if not isinstance(found := getattr(cls, name), kind):
                text = f"{cls.__name__}.{name} must be a {kind.__name__}, not {found!r}"
                raise MisuseError(text)
        if cls.deadline is not None and (wrong := why_no_time(cls.deadline, 0)):
            text = f"{cls.__name__}.deadline must be None or 0 seconds or more, {wrong}"
            raise MisuseError(text)

    @classmethod
    def start(cls, *_args: Any, **_kwargs: Any) -> NoReturn:
        """Refuse: an actor starts in a system, not on its own.

        Raises:
            MisuseError: always.
        """
        raise MisuseError(
            f"start {cls.__name__} with `system.spawn` or a supervisor's child spec"
        )

    @staticmethod
    def _create_actor_inbox() -> Any:
        return Mailbox(MailboxConfig())

    @staticmethod
    def _create_future() -> Reply:
        return Reply()

    def _start_actor_loop(self) -> None:
        raise MisuseError("the dispatcher runs this actor; it has no loop of its own")

    def __str__(self) -> str:
        return f"{type(self).__name__} ({self.actor_urn})"

    @property
    def actor_ref(self) -> ActorRef:  # pyright: ignore[reportIncompatibleMethodOverride]
        """This actor's ref."""
        return self._cell._ref or self._cell.ref  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  as in `find`

    @property
    def actor_urn(self) -> str:
        """This actor's name."""
        return self._cell.name

    @property
    def actor_inbox(self) -> Any:
        """This actor's mailbox."""
        return self._cell.mailbox

    @property
    def actor_stopped(self) -> Any:
        """Something with `is_set`: whether the actor has ended for good."""
        return self._cell.ref.actor_stopped

    def on_start(self) -> Any:
        """Run before the first message of an incarnation; may be `async`.

        Raise `DeclineStart` not to run at all. Any other exception is a failed
        start, which its supervisor counts.
        """

    def on_stop(self) -> Any:
        """Run after the last message when the actor ends in order; may be `async`."""

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> Any:
        """Run instead of `on_stop` after a handler raised; may be `async`."""

    def on_interrupt(self, message: Any) -> None:
        """Run after the handler of `message` was interrupted; must not wait."""

    def may_passivate(self) -> bool:
        """Whether the actor, which has no message, may be put to sleep.

        The default says no while a timer of its own has still to come: sleep would
        void it.
        """
        return not self._cell.timers

    def on_stop_due(self) -> None:
        """Run when the actor is asked to end, whatever it is doing; must not wait.

        Only where `has_children`: such an actor is not interrupted, and may cut short
        itself what would keep its end waiting.
        """

    async def end_children(self, *, brutally: bool) -> None:
        """End what this actor supervises; only where `has_children`."""

    def on_receive(self, message: Any) -> Any:
        """Handle one message; the return value answers an ask.

        The default raises: a message nobody handles is a mistake of the sender.
        """
        text = f"{type(self).__name__} does not handle {type(message).__name__}"
        raise MisuseError(text)

    def pass_on(self, message: Any) -> bool:
        """Do at once, in its sender's turn, what there is to do about a message.

        Only where `passes_on`, and only while this actor is idle and nothing waits
        for it, so that nobody is overtaken. Must be short, and must not wait; `stop`,
        `stash` and `kill` do here what they do in a handler. An exception fails this
        actor, as one of `on_receive` does, not the sender; so does an answer that is
        neither True nor False.

        Returns:
            False if nothing was done: the message then comes by the mailbox.
        """
        del message
        return False

    def find(self, name: str) -> ActorRef | None:
        """Give the ref of the living actor of this name."""
        cell = self._cell.kernel.names.get(name)
        # Its own ref first: it mostly has one, and a call less is felt.
        return None if cell is None else cell._ref or cell.ref  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]

    def tell(self, recipient: str | ActorRef, message: Any) -> bool:
        """Tell an actor something, by its ref or its name; never raises.

        What cannot be taken in becomes a dead letter with a reason. From another
        thread, a handler's helper say, it is sent on its way.

        Returns:
            False if it became a dead letter, or could not be sent on its way.
        """
        cell = self._cell
        kernel = cell.kernel
        if get_ident() != kernel.dispatcher.thread_id:
            return cell.tell_from_thread(
                partial(self.tell, recipient, message), message
            )
        if self._is_left_behind:
            kernel.dead_letters.add(str(recipient), "left_behind", message)
            return False
        if type(recipient) is ActorRef:
            other = recipient._cell  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        elif isinstance(recipient, str):
            named = kernel.names.get(recipient)
            if named is None:
                kernel.dead_letters.add(recipient, "no_such_actor", message)
                return False
            other = named
        else:
            other = cell_of(recipient)
        if other.kernel is not kernel:  # its loop may run on another thread
            return cell.tell_elsewhere(other.ref, message)
        may_pass_on = not other.scheduled and other.actor_class.passes_on
        if (may_pass_on and other.pass_on(message)) or other.offer(message):
            return True
        reason: Reason = "stopped" if other.is_dead else "mailbox_full"
        kernel.dead_letters.add(other.name, reason, message)
        return False

    def note(self, message: Any) -> None:
        """Tell itself something in the system lane, where there is always room.

        For what comes back to the actor from a callback on the kernel thread, also
        after a restart: then the next incarnation is told. A handler that was left
        behind tells it nothing.
        """
        if not self._is_left_behind:
            cell = self._cell
            if get_ident() != cell.kernel.dispatcher.thread_id:
                raise _from_elsewhere(cell)
            cell.post_system(message)

    def requeue(self, message: Any) -> None:
        """Put a message before all that wait, for this or the next incarnation."""
        self._present().requeue(message)

    def stop(self) -> None:
        """End normally after the present message."""
        self._present().post_system(Stop(NORMAL))

    def defer_reply(self) -> Reply | None:
        """Take the present ask's reply, to answer it later than this handler.

        If this incarnation ends before, the asker gets an error.

        Returns:
            None if the present message was told, not asked.
        """
        return self._present().defer_reply()

    def stash(self) -> None:
        """Set the present message aside until `unstash`; it keeps its room."""
        self._present().stash()

    def unstash(self) -> int:
        """Put the stashed messages before all others; gives their number."""
        return self._present().unstash()

    def watch(self, ref: ActorRef) -> None:
        """Be told `Terminated` when that actor ends for good, at once if it has."""
        self._present().watch(ref)

    def unwatch(self, ref: ActorRef) -> None:
        """Take `watch` back."""
        self._present().unwatch(ref)

    def after(
        self, delay: float, message: Any, *, survives_restart: bool = False
    ) -> Timer:
        """Be told `message` once, after `delay` seconds, in the system lane.

        Args:
            delay: seconds from now.
            survives_restart: also when the actor has been restarted meanwhile.

        Raises:
            MisuseError: `delay` is negative or not a number.
        """
        cell = self._cell
        # Why looks first: most are right, and a call less is felt.
        is_here = get_ident() == cell.kernel.dispatcher.thread_id
        if not is_here or cell.actor is not self:
            self._present()
        is_right = type(delay) in {int, float} and 0 <= delay < 1e300
        if not is_right and (wrong := why_no_time(delay, 0)):
            raise MisuseError(f"a timer needs 0 seconds or more, {wrong}")
        notice = Notice(message, None if survives_restart else cell.generation)
        kernel, tell = cell.kernel, partial(cell.post_system, notice)
        due = kernel.now() + delay
        return kernel.timers.call_at(due, tell, cell, survives=survives_restart)

    def every(
        self, period: float, message: Any, *, survives_restart: bool = False
    ) -> Callable[[], bool]:
        """Be told `message` every `period` seconds, in the system lane.

        A tick that is due while the one before still waits is left out.

        Returns:
            Call it to cancel; it says whether there was anything to cancel.
        """
        return appointments.every(
            self._present(), period, message, survives_restart=survives_restart
        )

    def _handle_receive(self, message: Any) -> Any:
        if type(message) in PROXY_MESSAGES:
            return super()._handle_receive(message)
        if type(message) is CommitDue:
            return message.submit()
        return self.on_receive(message)

    def _present(self) -> Cell:
        cell = self._cell
        if get_ident() != cell.kernel.dispatcher.thread_id:
            raise _from_elsewhere(cell)
        if cell.actor is not self:
            raise MisuseError(
                f"this incarnation of {cell.name} has ended; what it left running "
                "may not act for the next one"
            )
        return cell


def _from_elsewhere(cell: Cell) -> MisuseError:
    return MisuseError(
        f"another thread asks this of {cell.name}: use `tell`, or its ref"
    )
