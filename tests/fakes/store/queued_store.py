"""A store that writes later, whoever still waits for it."""

from __future__ import annotations

from collections import deque

import trio

from runtime.store.port import Done
from runtime.store.rows import Commit, Committed
from tests.fakes.store.in_memory import MemoryStore


class QueuedStore(MemoryStore):
    """Writes in order while it is open; what waits stays if its writer is cut off."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = True
        self.held: deque[tuple[Commit, Done]] = deque()

    async def commit(self, commit: Commit) -> Committed:
        """Store one unit, and come back when it is written."""
        await trio.lowlevel.checkpoint_if_cancelled()
        outcomes: list[Committed | Exception] = []
        told = trio.Event()

        def done(outcome: Committed | Exception) -> None:
            outcomes.append(outcome)
            told.set()

        self.held.append((commit, done))
        if self.is_open:
            self.open()
        await told.wait()
        if isinstance(outcomes[0], Exception):
            raise outcomes[0]
        return outcomes[0]

    def open(self) -> None:
        """Write what waits, and what comes from now on."""
        self.is_open = True
        while self.held:
            self.submit(*self.held.popleft())
