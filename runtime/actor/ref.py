"""The only handle to an actor: pykka's `ActorRef`, for trio tasks and threads.

A ref survives its actor's restarts. On the kernel thread nothing here waits:
`ask` and `stop` give a `Reply` to await. On any other thread they wait, as
pykka's do, unless told `block=False`.
"""

from __future__ import annotations

from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any

import pykka

from runtime.actor.envelope import Envelope
from runtime.actor.messages import SHUTDOWN, Exit
from runtime.actor.reply import Reply
from runtime.errors import MailboxFullError, MisuseError, why_no_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.actor.cell import Cell


UNANSWERED = (pykka.ActorDeadError, pykka.Timeout)
"""What an ask raises when the actor is gone, or did not answer in time."""


class StoppedFlag:
    """Looks like the event pykka keeps; reads the actor's state instead."""

    __slots__ = ("_cell",)

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    def is_set(self) -> bool:
        """Whether the actor has ended for good."""
        return self._cell.is_dead


class ActorRef(pykka.ActorRef[Any]):
    """Handle to one actor, under one name, over all its incarnations.

    Args:
        cell: the actor's place in its system; only the kernel makes refs.
    """

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self.final_exit: Exit | None = None
        """How the actor ended for good; None: it has not."""

    def __repr__(self) -> str:
        """Say the actor's name."""
        return f"<ActorRef {self._cell.name}>"

    def __str__(self) -> str:
        return self._cell.name

    @property
    def name(self) -> str:
        """The actor's name, unique in its system."""
        return self._cell.name

    @property
    def actor_urn(self) -> str:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """pykka's word for the name."""
        return self._cell.name

    @property
    def actor_class(self) -> type[Any]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """The actor's class."""
        return self._cell.actor_class

    @property
    def actor_inbox(self) -> Any:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """pykka's word for the mailbox."""
        return self._cell.mailbox

    @property
    def actor_stopped(self) -> Any:  # type: ignore[override]  # pyright: ignore[reportIncompatibleVariableOverride]
        """Something with `is_set`: whether the actor has ended for good."""
        return StoppedFlag(self._cell)

    @property
    def _actor_weakref(self) -> Any:  # type: ignore[override]
        # Read by pykka's ActorProxy, which wants the present actor.
        return partial(getattr, self._cell, "actor")

    def is_alive(self) -> bool:
        """Whether the actor has not ended for good; it may be restarting."""
        return not self._cell.is_dead

    def tell(self, message: Any) -> None:
        """Send a message, with no answer; never waits.

        Raises:
            pykka.ActorDeadError: the actor has ended for good.
            MailboxFullError: its mailbox is full; it carries the message back. From
                a foreign thread the bound is looked at here and again on arrival,
                where a message over it becomes a dead letter.
        """
        cell = self._cell
        if get_ident() != cell.kernel.dispatcher.thread_id:
            self._send_foreign(message)
        elif not cell.offer(message):
            cell.refuse(message)

    async def send(self, message: Any) -> None:
        """Send a message; wait for room if the mailbox's policy is `wait`.

        Raises:
            pykka.ActorDeadError: the actor has ended for good.
            MailboxFullError: it is full and its policy is `reject`.
            MisuseError: called on another thread than the kernel's.
        """
        if not self._cell.kernel.on_kernel_thread:
            raise MisuseError("`send` waits on the kernel thread only: use `tell`")
        await self._cell.send(message)

    def ask(
        self, message: Any, *, block: bool = True, timeout: float | None = None
    ) -> Any:
        """Send a message and get its answer, always under a deadline.

        Args:
            block: on a foreign thread, wait for the answer and return it; on the
                kernel thread it makes no difference.
            timeout: seconds until `pykka.Timeout`; None means the system's.

        Returns:
            A `Reply` to await or `get`; on a foreign thread that blocks, the answer.
            A dead actor or full mailbox is the reply's error, as in pykka.

        Raises:
            MisuseError: `timeout` is not a number that a clock can count; nothing
                was sent.
        """
        cell = self._cell
        if timeout is None:
            seconds = cell.kernel.ask_timeout
        elif (
            type(timeout) in {int, float} and 0 <= timeout < 1e300
        ):  # as most often: no call
            seconds = timeout
        elif wrong := why_no_time(timeout):
            raise MisuseError(f"an ask needs a number of seconds, {wrong}")
        else:
            seconds = timeout
        reply = Reply(seconds)
        if get_ident() == cell.kernel.dispatcher.thread_id:
            reply.asked = cell
            cell.post_ask(Envelope(message, reply, is_ask=True), seconds)
            return reply
        try:
            self._send_foreign(message, reply, seconds)
        except (pykka.ActorDeadError, MailboxFullError) as error:
            reply.offer_error(error)
        return reply.get(timeout=seconds) if block else reply

    def stop(
        self,
        *,
        block: bool = True,
        timeout: float | None = None,
        drain: bool = False,
    ) -> Any:
        """Let the actor finish what it is handling, then end it for good.

        Args:
            block: on a foreign thread, wait until it has ended.
            timeout: seconds to wait for that; None waits as long as it takes.
            drain: let it handle all that waits in its mailbox first. Otherwise
                that becomes dead letters.

        Returns:
            A `Reply` to await; on a foreign thread that blocks, the answer. The
            answer is False if the actor had ended before.

        Raises:
            MisuseError: `timeout` is not a number that a clock can count; nothing
                was done.
        """
        if timeout is not None and (wrong := why_no_time(timeout)):
            raise MisuseError(f"a stop needs a number of seconds, {wrong}")
        cell = self._cell
        reply = Reply(timeout)
        call = partial(cell.stop, SHUTDOWN, reply, drain=drain)
        if get_ident() == cell.kernel.dispatcher.thread_id:
            call()
            return reply
        try:
            cell.kernel.dispatcher.call_soon(cell, call)
        except pykka.ActorDeadError:
            reply.offer(value=False)
        return reply.get(timeout=timeout) if block else reply

    def kill(self) -> None:
        """Cancel what the actor is handling and end it at once, without `on_stop`.

        Its supervisor decides whether it is started again, as after a failure.
        """
        self._on_kernel(self._cell.kill)

    def is_down(self) -> bool:
        """Whether nobody is there now: it waits for its restart, or has ended."""
        return self._cell.state in {"down", "dead"}

    def crash(self, error: Exception) -> bool:
        """End the actor as if it had failed with `error`; its supervisor decides.

        Between two messages it is told of its failure (`on_failure`); in the middle of
        one it is killed.

        Returns:
            Whether there was somebody to end; from a foreign thread, as it looked then.

        Raises:
            MisuseError: `error` is no exception.
        """
        if not isinstance(error, Exception):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise MisuseError(f"an actor ends by an exception, not by {error!r}")
        was_there = not self.is_down()
        self._on_kernel(partial(self._cell.crash, error))
        return was_there

    def interrupt(self) -> None:
        """Cancel what the actor is handling; it goes on with its next message.

        An asker gets `InterruptedActorError`. Without a handler that waits this
        does nothing: only a handler that awaits can be cancelled.
        """
        self._on_kernel(self._cell.interrupt)

    def _on_kernel(self, call: Callable[[], object]) -> None:
        dispatcher = self._cell.kernel.dispatcher
        if get_ident() == dispatcher.thread_id:
            call()
        else:
            dispatcher.call_soon(self._cell, call)

    def _send_foreign(
        self, message: object, reply: Reply | None = None, seconds: float = 0.0
    ) -> None:
        cell = self._cell
        if cell.state == "dead":
            raise pykka.ActorDeadError(f"{cell.name} not found: it has ended")
        mailbox = cell.mailbox
        if mailbox.config.overflow != "drop_oldest" and not mailbox.has_room(message):
            raise MailboxFullError(cell.name, message)
        arrive = partial(cell.arrive, message, reply, seconds)
        cell.kernel.dispatcher.send_soon(cell, arrive, message)


def cell_of(ref: pykka.ActorRef[Any]) -> Cell:
    """Give the kernel's side of a ref.

    Raises:
        MisuseError: the ref is not one of this kernel (a ThreadingActor's, say).
    """
    if not isinstance(ref, ActorRef):
        raise MisuseError(f"{ref} is not an actor of this system")
    return ref._cell  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
