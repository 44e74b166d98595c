"""The questions on their way from a hook's actor to whoever puts them to its code.

The runner is busy as long as its hook runs, so questions do not reach it as messages;
they wait here, bounded, and none longer than its time.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING

import trio

from actors.hooks.book import TellHook
from connectors.hooks.errors import HookError

if TYPE_CHECKING:
    from actors.hooks.book import AskHook
    from actors.hooks.chain import Verdict
    from runtime.actor.reply import Reply

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


class QuestionQueue:
    """Questions that wait or run, in the order in which they came.

    Args:
        most: how many may run at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: deque[PendingQuestion] = deque()
        self._to_tell, self._told = trio.open_memory_channel[TellHook](MOST_TOLD)
        self._running: set[PendingQuestion] = set()
        self._news = trio.Event()
        self.is_open = False
        """Whether there is somebody who takes them."""

    @property
    def has_room(self) -> bool:
        """Whether one more question may wait."""
        return len(self._waiting) < self._most * WAITING_PER_CALL

    def submit(self, pending: PendingQuestion) -> None:
        """Have a question answered."""
        self._waiting.append(pending)
        self._news.set()

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

    async def take(self) -> PendingQuestion:
        """Wait for a question, and for room to run it; then call `done`."""
        while not self._waiting or len(self._running) >= self._most:
            self._news = trio.Event()
            await self._news.wait()
        pending = self._waiting.popleft()
        self._running.add(pending)
        return pending

    def done(self, pending: PendingQuestion) -> None:
        """Make room."""
        self._running.discard(pending)
        self._news.set()

    def withdraw(self, pending: PendingQuestion) -> bool:
        """Take a question back; False if it is not waiting any more."""
        if pending not in self._waiting:
            return False
        self._waiting.remove(pending)
        return True

    def close(self, reason: str) -> tuple[int, int]:
        """Tell those whose questions run that no answer will come; others wait on.

        Args:
            reason: why.

        Returns:
            How many questions that were, and how many finished turns nobody is told.
        """
        self.is_open = False
        running = tuple(self._running)
        self._running.clear()
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
        while self._waiting:
            self._waiting.popleft().end(HookError(reason, "down"))
