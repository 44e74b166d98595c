"""The actor that runs one hook's code, and puts the questions to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

import msgspec
import trio

from actors.hooks.chain import checked
from connectors.hooks.messages import (
    Answered,
    HookEnded,
    HookError,
    HookStarted,
    LeftBehind,
    Told,
    Unanswered,
)
from runtime.actor.actor import Actor

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from actors.hooks.book import AskHook, TellHook
    from actors.hooks.chain import Verdict
    from connectors.hooks.hook import Settings
    from connectors.hooks.metrics import HookFigures
    from connectors.hooks.pending import PendingQuestion, QuestionQueue

START_TIMEOUT = 60.0
"""Seconds until a hook's code must have been started."""


class Run(msgspec.Struct, frozen=True):
    """A note to itself: begin."""


class HookRunner(Actor):
    """One run of a hook's code, from its start to its end.

    Takes: nothing; questions come by the link.
    Sends: `HookStarted`, `HookEnded`, `Answered`, `Unanswered`, `Told` to its hook.
    Keeps: the code that runs, and the questions that it has.
    Fails: never by what a hook does.
    Ends: when its code does not start, ends, or sends what no hook may; it is started
        again after a while.
    """

    deadline: ClassVar[float | None] = None
    ends_by_interrupt: ClassVar[bool] = True

    def __init__(
        self,
        settings: Settings,
        connect: Connect,
        link: QuestionQueue,
        figures: HookFigures,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._connect = connect
        self._link = link
        self._figures = figures

    def on_start(self) -> None:
        """Begin."""
        self.note(Run())

    async def on_receive(self, message: object) -> None:
        """Run the code until its end, which is told in any case."""
        if not isinstance(message, Run):
            super().on_receive(message)
            return
        reason = f"it did not start within {START_TIMEOUT:g} seconds"
        with trio.CancelScope() as starting:
            starting.deadline = trio.current_time() + START_TIMEOUT
            try:
                async with self._connect() as connection:
                    reason = await self._serve(connection, starting)
            except HookError as error:
                reason = str(error)
        self._end(reason)
        self._tell(HookEnded(reason))
        self.stop()

    def on_failure(self, *_args: object, **_kwargs: object) -> None:
        """Let nobody wait for what it had in hand, whatever went wrong."""
        self._end("its runner failed")

    def on_stop(self) -> None:
        """Let nobody wait for what it has in hand."""
        self._end("it has been stopped")

    def _end(self, reason: str) -> None:
        why = f"it does not run any more: {reason}"
        failed, missed = self._link.close(why)
        if failed or missed:
            self._tell(LeftBehind(why, failed, missed))

    def _tell(self, message: object) -> None:
        self.tell(f"{self.actor_urn.rpartition('/')[0]}/hook", message)

    async def _serve(
        self, connection: HookConnection, starting: trio.CancelScope
    ) -> str:
        """Put questions to the code until its end; give why it ended."""
        starting.deadline = float("inf")
        self._link.is_open = True
        self._tell(HookStarted())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._take, connection, nursery)
            nursery.start_soon(self._take_told, connection)
            await connection.ending.wait()
            self._end(connection.ending.reason)
            nursery.cancel_scope.cancel()
        return connection.ending.reason

    async def _take(self, connection: HookConnection, nursery: trio.Nursery) -> None:
        while True:
            nursery.start_soon(self._ask, connection, await self._link.take())

    async def _take_told(self, connection: HookConnection) -> None:
        while True:
            await self._tell_finished(connection, await self._link.take_told())

    async def _tell_finished(self, connection: HookConnection, told: TellHook) -> None:
        problem = f"it took longer than {self._settings.timeout:g} seconds"
        with trio.move_on_after(self._settings.timeout):
            try:
                await connection.tell(told)
            except HookError as error:
                problem = str(error)
            else:
                problem = ""
        self._tell(Told(problem))

    async def _ask(self, connection: HookConnection, pending: PendingQuestion) -> None:
        """Put one question, within its time."""
        began_at = trio.current_time()
        with trio.CancelScope(deadline=pending.due) as scope:
            try:
                found = await connection.ask(pending.asked)
                problem = checked(found, pending.asked.event)
                text = f"its verdict is none: {problem}"
                pending.end(HookError(text, "wrong") if problem else found)
            except HookError as error:
                pending.end(error)
        if scope.cancelled_caught:
            seconds = self._settings.timeout
            text = f"it did not answer within {seconds:g} seconds"
            pending.end(HookError(text, "timeout"))
        self._link.done(pending)
        outcome = pending.outcome
        if isinstance(outcome, HookError):
            self._tell(Unanswered(outcome.trouble, str(outcome)))
        elif outcome is not None:
            self._figures.took(self._settings.name, trio.current_time() - began_at)
            self._tell(Answered(outcome.action))


class HookEnd:
    """Why a hook's code is not to be spoken with any more; the first reason counts."""

    def __init__(self) -> None:
        self.reason = ""
        self._come = trio.Event()

    def come(self, reason: str) -> None:
        """End it."""
        if not self._come.is_set():
            self.reason = reason
            self._come.set()

    async def wait(self) -> None:
        """Wait for the end."""
        await self._come.wait()


class HookConnection(Protocol):
    """A hook's code that runs."""

    ending: HookEnd

    async def ask(self, asked: AskHook) -> Verdict:
        """Put one question to it; may be cancelled.

        Raises:
            connectors.hooks.messages.HookError: there is no verdict.
        """
        ...

    async def tell(self, told: TellHook) -> None:
        """Tell it of a finished turn; may be cancelled.

        Raises:
            connectors.hooks.messages.HookError: it failed.
        """
        ...


class Connect(Protocol):
    """Starts a hook's code."""

    def __call__(self) -> AbstractAsyncContextManager[HookConnection]:
        """Run it until the block ends.

        Raises:
            connectors.hooks.messages.HookError: it cannot be started.
        """
        ...
