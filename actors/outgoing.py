"""What a session has said and the store has not yet: one commit after the other.

Each commit expects the number of the journal's last event, so the next one can only
be written when the one before it is durable.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from actors import answers
from runtime.store import Committed

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.history import History
    from actors.services import Services


class Stored(msgspec.Struct, frozen=True):
    """A session's note to itself: what became of a commit."""

    answer: answers.Answer
    outcome: Committed | Exception


class RetryCommit(msgspec.Struct, frozen=True):
    """A note to itself: try a commit again that the disk refused."""


class Outgoing:
    """The answers of one session that are not stored yet, oldest first.

    Args:
        stream: the session's journal stream.
        history: knows the number of the journal's last event.
        services: where to store.
        note: told what became of each commit.
    """

    def __init__(
        self,
        stream: str,
        history: History,
        services: Services,
        note: Callable[[Stored], object],
    ) -> None:
        self._stream = stream
        self._history = history
        self._services = services
        self._note = note
        self._waiting: deque[answers.Answer] = deque()

    def put(self, answer: answers.Answer) -> None:
        """Store an answer after those before it."""
        self._waiting.append(answer)
        if len(self._waiting) == 1:
            self.store_next()

    def is_next(self, answer: answers.Answer) -> bool:
        """Whether this is the answer being stored, and not a predecessor's."""
        return bool(self._waiting) and self._waiting[0] is answer

    def replace_next(self, answer: answers.Answer) -> None:
        """Store another answer in the place of the one being stored."""
        self._waiting[0] = answer
        self.store_next()

    def drop_next(self) -> None:
        """Forget the answer being stored: it is durable, by whomever."""
        self._waiting.popleft()

    def store_next(self) -> None:
        """Store the oldest answer, if there is one."""
        if not self._waiting:
            return
        answer, note = self._waiting[0], self._note
        now = self._services.clock.wall()
        version = self._history.version
        commit = answers.as_commit(answer, self._stream, version, now)
        self._services.store.submit(
            commit, lambda outcome: note(Stored(answer, outcome))
        )
