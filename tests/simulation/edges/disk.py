"""A disk that takes its time, fills up, forgets and comes back; rows outlive lives.

`SimulatedStore` writes in groups, as the real one does: a commit is durable some time
after it was submitted, and its submitter hears of it later still. A crash in between
loses what was not written, and loses the news of what was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from functools import partial
from typing import Any

import trio

from runtime.errors import StoreUnavailableError
from runtime.store.port import Done
from runtime.store.rows import (
    Answered,
    Commit,
    Committed,
    MessageKey,
    StoredDelivery,
    StoredEvent,
    StoredMessage,
)
from tests.fakes.store.in_memory import MemoryStore
from tests.simulation.checks.checkers import Checkers
from tests.simulation.checks.ledger import words_of
from tests.simulation.faults import Faults
from tests.simulation.trace import Trace

# Chosen: seconds of a flush on a healthy disk, and of one that is slow.
FLUSH = (0.0, 0.001, 0.004)
SLOW_FLUSH = (0.1, 0.7, 2.0)


class Disk:
    """The state of the disk, the same for all lives.

    Args:
        faults: the dice.
        checkers: told of every durable commit.
        trace: told of everything.
    """

    def __init__(self, faults: Faults, checkers: Checkers, trace: Trace) -> None:
        self.faults = faults
        self.checkers = checkers
        self.trace = trace
        self.full_until = 0.0
        self.slow_until = 0.0
        self.unread_until = 0.0
        self.is_telling = False
        """Whether a submitter is being told, which must not raise."""

    @property
    def is_full(self) -> bool:
        """Whether writes fail now."""
        return trio.current_time() < self.full_until

    def heal(self) -> None:
        """Be well from now on."""
        self.full_until = self.slow_until = self.unread_until = 0.0

    def flush_seconds(self) -> float:
        """Say how long the next flush takes."""
        is_slow = trio.current_time() < self.slow_until
        return self.faults.dice.choice(SLOW_FLUSH if is_slow else FLUSH)

    def refuse_reading(self) -> None:
        """Check that reads work now.

        Raises:
            StoreUnavailableError: they do not.
        """
        if trio.current_time() < self.unread_until:
            raise StoreUnavailableError("the disk cannot be read now; try again")


class SimulatedStore(MemoryStore):
    """Rows in memory behind that disk; one object for each life.

    Args:
        disk: the state of the disk.
    """

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self._disk = disk
        self._queue: deque[tuple[Commit, Done]] = deque()
        self._ghosts: list[Commit] = []
        self._is_dead = False
        self._stir = trio.Event()

    @property
    def healthy(self) -> bool:
        """False while writes fail."""
        return not self._disk.is_full

    def reopened(self) -> MemoryStore:
        """Give the rows to the next life."""
        successor = type(self)(self._disk)
        rows = super().reopened()
        mine = ("_disk", "_queue", "_ghosts", "_is_dead", "_stir")
        taken = {k: v for k, v in vars(rows).items() if k not in mine}
        vars(successor).update(taken)
        return successor

    def crash(self) -> None:
        """Die: nobody hears anything any more; what is on the disk stays."""
        if self._is_dead:
            return
        self._is_dead = True
        lost = [commit for commit, _ in self._queue]
        if self._disk.faults.hit("disk_ghost", 0.5):
            # A flush that failed, or was never reported, may have happened.
            for commit in [*self._ghosts, *lost]:
                MemoryStore.submit(self, commit, partial(self._written, commit, None))
            self._disk.trace.note("fault", "", "unreported commits turn up")
        elif lost:
            self._disk.trace.note("fault", "", f"{len(lost)} commits lost")
        self._queue.clear()

    def submit(self, commit: Commit, done: Done) -> None:
        """Put a commit on its way to the disk; see the port."""
        if not self._is_dead:
            self._queue.append((commit, done))
            self._stir.set()

    def write_outside(self, commit: Commit) -> None:
        """Store what another program writes: at once, and told to nobody."""
        MemoryStore.submit(self, commit, partial(self._written, commit, None))

    async def commit(self, commit: Commit) -> Committed:
        """Store one unit; see the port."""
        heard = trio.Event()
        outcomes: list[Committed | Exception] = []

        def done(outcome: Committed | Exception) -> None:
            outcomes.append(outcome)
            heard.set()

        self.submit(commit, done)
        await heard.wait()
        if isinstance(outcomes[0], Exception):
            raise outcomes[0]
        return outcomes[0]

    async def flush_for_ever(self) -> None:
        """Write what is submitted, group by group, until cancelled."""
        while True:
            while not self._queue:
                self._stir = trio.Event()
                await self._stir.wait()
            await trio.sleep(self._disk.flush_seconds())
            for _ in range(len(self._queue)):
                self._flush(*self._queue.popleft())

    async def settle(self) -> None:
        """Wait until all that was submitted is written, as at an orderly end."""
        while self._queue:  # noqa: ASYNC110  at the end of a life, once
            await trio.sleep(0.1)

    async def read(
        self, stream: str, after: int = 0, limit: int = 1000
    ) -> tuple[StoredEvent, ...]:
        """Read, if the disk lets it; see the port."""
        self._disk.refuse_reading()
        return await super().read(stream, after, limit)

    async def unsettled(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[StoredMessage, ...]:
        """Read, if the disk lets it; see the port."""
        self._disk.refuse_reading()
        return await super().unsettled(after, limit)

    async def unsettled_keys(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[MessageKey, ...]:
        """Read, if the disk lets it; see the port."""
        self._disk.refuse_reading()
        return await super().unsettled_keys(after, limit)

    async def messages(
        self, keys: Collection[tuple[str, str]]
    ) -> tuple[StoredMessage, ...]:
        """Read, if the disk lets it; see the port."""
        self._disk.refuse_reading()
        return await super().messages(keys)

    async def exchanges(
        self, stream: str, before: int = 0, limit: int = 100
    ) -> tuple[Answered, ...]:
        """Read, if the disk lets it; see the port."""
        self._disk.refuse_reading()
        return await super().exchanges(stream, before, limit)

    async def undelivered(
        self, connector: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[StoredDelivery, ...]:
        """Read, if the disk lets it; see the port."""
        self._disk.refuse_reading()
        return await super().undelivered(connector, after, limit)

    async def probe(self) -> None:
        """Try to write; see the port."""
        if self._disk.is_full:
            raise StoreUnavailableError("the disk is full; make room")
        await super().probe()

    def _flush(self, commit: Commit, done: Done) -> None:
        if self._disk.is_full:
            self._ghosts.append(commit)
            subject, words = words_of(commit)
            self._disk.trace.note("refused", subject, f"disk full: {words}")
            self._tell(done, StoreUnavailableError("the disk is full; try again"))
        else:
            self._ghosts.clear()
            super().submit(commit, partial(self._written, commit, done))

    def _written(
        self, commit: Commit, done: Done | None, outcome: Committed | Exception
    ) -> None:
        subject, words = words_of(commit)
        if isinstance(outcome, Committed):
            self._disk.trace.note("commit", subject, words)
            self._disk.checkers.committed(commit)
        else:
            why = type(outcome).__name__
            self._disk.trace.note("refused", subject, f"{why}: {words}")
        if done is not None:
            self._tell(done, outcome)

    def _tell(self, done: Done, outcome: Any) -> None:
        if not self._is_dead:
            self._disk.is_telling = True
            done(outcome)
            self._disk.is_telling = False
