"""The questions on their way from a hook's actor to whoever puts them to its code.

The runner is busy as long as its hook runs, so questions do not reach it as messages;
they wait here, bounded, and none longer than its time.
"""

from __future__ import annotations

import contextlib

import trio

from actors.hooks.book import AskHook, TellHook
from actors.hooks.chain import Verdict
from connectors.hooks.messages import HookError
from runtime.actor.reply import Reply
from runtime.fairness import FairQueue

WAITING_PER_CALL = 100
"""Questions that wait for each one that may run at once."""

MOST_TOLD = 1_000
"""Finished turns that wait until a hook is told of them."""


class PendingQuestion:
    """One question, and who waits for its answer.

    Args:
        asked: the question.
        reply: of who waits.
        due: seconds on trio's clock by which it must be answered.
    """

    __slots__ = ("asked", "due", "outcome", "reply")

    def __init__(self, asked: AskHook, reply: Reply, due: float) -> None:
        self.asked = asked
        self.due = due
        self.reply = reply
        self.outcome: Verdict | HookError | None = None

    def end(self, outcome: Verdict | HookError) -> None:
        """Answer; only the first time counts."""
        if self.outcome is not None:
            return
        self.outcome = outcome
        if isinstance(outcome, HookError):
            self.reply.offer_error(outcome)
        else:
            self.reply.offer(outcome)


class QuestionQueue(FairQueue[PendingQuestion]):
    """Questions that wait or run; the people whose messages they are about take turns.

    Args:
        most: how many may run at once.
    """

    def __init__(self, most: int) -> None:
        super().__init__(
            most, most * WAITING_PER_CALL, lambda pending: owner_of(pending.asked)
        )
        self._to_tell, self._told = trio.open_memory_channel[TellHook](MOST_TOLD)
        self.is_open = False
        """Whether there is somebody who takes them."""

    def tell(self, told: TellHook) -> bool:
        """Have a finished turn told; False if too many wait for that."""
        if not self.is_open:
            return False
        try:
            self._to_tell.send_nowait(told)
        except trio.WouldBlock:
            return False
        return True

    async def take_told(self) -> TellHook:
        """Wait for a finished turn to tell."""
        return await self._told.receive()

    def close(self, reason: str) -> tuple[int, int]:
        """Tell those whose questions run that no answer will come; others wait on.

        Returns:
            How many questions that were, and how many finished turns nobody is told.
        """
        self.is_open = False
        running = self.abandon()
        for pending in running:
            pending.end(HookError(reason, "down"))
        missed = 0
        with contextlib.suppress(trio.WouldBlock):
            while True:
                self._told.receive_nowait()
                missed += 1
        return len(running), missed

    def fail_all(self, reason: str) -> None:
        """Tell all who wait that there is nobody to answer."""
        self.close(reason)
        for pending in self.waiting:
            self.withdraw(pending)
            pending.end(HookError(reason, "down"))


def owner_of(asked: AskHook) -> str:
    """Name whose share of the places a question takes: see `messages.keys.owner_of`."""
    about = asked.about
    return f"{about.connector}/{about.caller or about.sender_id}"
