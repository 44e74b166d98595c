"""Commits that are repeated until the store has decided.

`StoreUnavailableError` (disk full or failing, queue full) decides nothing: the same
rows can be stored a second later. Any other outcome is final. An actor uses a
`Committer`, which never waits; a coroutine uses `commit_until_decided`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import trio

from runtime.actor.messages import CommitDue
from runtime.errors import MisuseError, StoreUnavailableError
from runtime.store.port import Done, Store
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.actor.actor import Actor
    from runtime.store.rows import Commit, Committed

LOG = EventLog("committer")

RETRY_EVERY = 1.0
"""Seconds between two tries."""


class Committer(msgspec.Struct, eq=False):
    """The part of an actor that stores rows and does not give up on a sick disk.

    Retries belong to the incarnation of the actor that submitted the commit: the next
    one finds in the store what is still to be done.
    """

    store: Store
    """Where the rows go."""

    retry_every: float = RETRY_EVERY
    """Seconds between two tries."""

    refused: int = 0
    """How many commits the disk has refused and not decided yet."""

    def submit(
        self, actor: Actor, make: Callable[[], Commit], done: Done, what: str = ""
    ) -> None:
        """Store one unit without waiting, as `Store.submit` does.

        Args:
            actor: sets the timers. It is not kept: each of very many actors would be in
                a reference cycle, which only the collector frees.
            make: gives the commit; called in the actor's turn, now and at each retry.
            done: called once, on the kernel thread, with the final outcome, never with
                `StoreUnavailableError`. As it may run after a restart of the actor, it
                should only send messages.
            what: names the rows in the log when they have to wait; empty: no log.
        """
        pending = PendingCommit(self, actor, make, done, what)
        self.store.submit(make(), pending.decided)


@dataclass(slots=True)
class PendingCommit:
    """One unit that the store has not decided yet.

    Why no closures: two functions that name each other are a reference cycle.
    """

    committer: Committer
    actor: Actor
    make: Callable[[], Commit]
    done: Done
    what: str
    is_refused: bool = False

    def submit(self) -> None:
        """Try to store it again."""
        self.committer.store.submit(self.make(), self.decided)

    def decided(self, outcome: Committed | Exception) -> None:
        """Tell the outcome, or try again later if the disk refused it."""
        if isinstance(outcome, StoreUnavailableError):
            _log(self.what, outcome)
            self.committer.refused += not self.is_refused
            self.is_refused = True
            with suppress(MisuseError):  # the incarnation has ended
                self.actor.after(self.committer.retry_every, CommitDue(self.submit))
            return
        self.committer.refused -= self.is_refused
        self.done(outcome)


async def commit_until_decided(
    store: Store, make: Callable[[], Commit], what: str, most_tries: int | None = None
) -> Committed:
    """Store one unit and wait until that is decided.

    Args:
        make: gives the commit; called at each try.
        what: names the rows in the log when they have to wait.
        most_tries: None: as many as it takes.

    Raises:
        StoreUnavailableError: the last of `most_tries` was refused, too.
        runtime.errors.StoreError: any other outcome, see `Store.commit`.
    """
    tries = 0
    while True:
        try:
            return await store.commit(make())
        except StoreUnavailableError as error:
            _log(what, error)
            await trio.sleep(RETRY_EVERY)
            tries += 1
            if tries == most_tries:
                raise


def _log(what: str, error: StoreUnavailableError) -> None:
    if what:
        LOG.warning("commit waits for the disk", rows=what, why=str(error))
