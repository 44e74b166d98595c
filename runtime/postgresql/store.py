"""The durable store on a PostgreSQL server; see `runtime.store.Store`.

Trio tasks call it, and nothing here blocks the trio thread. `read.py` and `write.py`
have the SQL, `threads.py` the two threads and the group commit, `server.py` the
connections.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import trio

from runtime.errors import CorruptError, MisuseError, StoreError, StoreUnavailableError
from runtime.postgresql import read as reads
from runtime.postgresql import write as rows
from runtime.postgresql.facts import PostgresqlFacts
from runtime.postgresql.threads import PostgresqlReader, PostgresqlWriter
from runtime.store.port import body_bytes, refuse_keys, refuse_limit, refuse_misuse
from runtime.store.text import refuse_half_character
from runtime.store.threads import GroupEnded, WorkingThread

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from runtime.postgresql.server import Db, PostgresqlServer
    from runtime.postgresql.write import Pending, Session
    from runtime.store.jobs import Job
    from runtime.store.port import Done
    from runtime.store.rows import (
        Answered,
        Commit,
        Committed,
        Counts,
        MessageKey,
        Pruned,
        StoredDelivery,
        StoredEntry,
        StoredEvent,
        StoredMessage,
        StoredRecord,
        StoredSnapshot,
    )

T = TypeVar("T")


class PostgresqlStore:
    """Rows on a server; see `runtime.store.Store` for what may be relied on.

    Made by `open`, ended by `aclose`, and used from that one trio run. When the server
    goes away, commits wait for some seconds (`PostgresqlOptions.away_for`) and are
    refused after that, until it is back.

    Args:
        server: which database, and how it is used.
        epoch: written on every row.
        on_commit: told on the trio thread, after each durable group, how many
            seconds it took, how many commits shared it, and 0; must not raise.
    """

    def __init__(
        self,
        server: PostgresqlServer,
        *,
        epoch: int = 0,
        on_commit: Callable[[float, int, int], None] | None = None,
    ) -> None:
        self._server = server
        self._epoch = epoch
        self._on_commit = on_commit
        self._on_broken: Callable[[StoreUnavailableError], object] | None = None
        self._on_damage: Callable[[str], object] | None = None
        self._damage = ""
        self._healthy = True
        self._failed_read: Job | None = None
        self._seen: int | None = None
        self._token = trio.lowlevel.current_trio_token()
        self._writer = WorkingThread(PostgresqlWriter, server, self._learn)
        self._reader = WorkingThread(PostgresqlReader, server, self._learn)
        self._facts = PostgresqlFacts(self._read, self._change_facts)

    @classmethod
    async def open(
        cls,
        server: PostgresqlServer,
        *,
        epoch: int = 0,
        on_commit: Callable[[float, int, int], None] | None = None,
    ) -> PostgresqlStore:
        """Claim the database, make its tables or bring them up to date.

        Raises:
            StoreUnavailableError: another process has it, or the server is away.
            StoreRefusedError: another program's tables, or a server that is no use.
            StoreTooNewError: a newer release wrote it.
            CorruptError: it is damaged.
        """
        store = cls(server, epoch=epoch, on_commit=on_commit)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(store.aclose)
            # Each thread connects for its first job; the writer's first, for it makes
            # the tables.
            await store._writer.jobs.call(rows.probe)
            await store._reader.jobs.call(reads.greet)
            stack.pop_all()
        return store

    @property
    def epoch(self) -> int:
        """The epoch that is written on every row."""
        return self._epoch

    @property
    def healthy(self) -> bool:
        """False while the server is away or fails, or there is damage."""
        is_well = self._healthy and self._failed_read is None and not self._damage
        return is_well and not self.needs_reopening

    @property
    def needs_reopening(self) -> bool:
        """Whether a thread ended: by a bug, or because another process took over."""
        return self._writer.jobs.is_dead or self._reader.jobs.is_dead

    @property
    def queued(self) -> int:
        """How many commits wait for the writer now."""
        return self._writer.jobs.depth

    @property
    def facts(self) -> PostgresqlFacts:
        """What is remembered; see the port."""
        return self._facts

    def when_broken(self, tell: Callable[[StoreUnavailableError], object]) -> None:
        """Have somebody told, on the trio thread, that a thread has ended.

        This store will never take anything again: its process had better end.

        Args:
            tell: called with the reason, perhaps more than once; must neither wait nor
                raise.
        """
        self._on_broken = tell
        self._tell_broken()

    def when_damaged(self, tell: Callable[[str], object]) -> None:
        """Have somebody told, on the trio thread and once, that there is damage.

        Args:
            tell: called with what is damaged; must neither wait nor raise.
        """
        self._on_damage = tell
        if self._damage:
            tell(self._damage)

    def _tell_broken(self) -> None:
        why = self._writer.jobs.death or self._reader.jobs.death
        if why and self._on_broken is not None:
            self._on_broken(StoreUnavailableError(why))

    async def commit(self, commit: Commit) -> Committed:
        """Store one unit, and come back when it is durable; see the port."""
        refuse_misuse(commit)
        self._refuse_damaged()
        # The writer's thread gives the result in place of what is still pending.
        given = await self._writer.jobs.call(self._writing(commit), body_bytes(commit))
        return settled(given)

    def submit(self, commit: Commit, done: Done) -> None:
        """Store one unit without waiting; see the port."""
        try:
            refuse_misuse(commit)
            self._refuse_damaged()
            self._writer.jobs.submit(
                self._writing(commit),
                lambda given: done(
                    given if isinstance(given, Exception) else settled(given)
                ),
                body_bytes(commit),
                may_wait=commit.may_wait,
            )
        except (StoreError, MisuseError) as error:
            self._token.run_sync_soon(done, error)

    def _writing(
        self, commit: Commit
    ) -> Callable[[Session], Pending[Committed] | Committed]:
        return partial(rows.write, commit=commit, epoch=self._epoch)

    async def _read(self, work: Callable[[Db], T]) -> T:
        return await self._reader.jobs.call(work)

    async def _change_facts(self, work: Callable[[Db], T]) -> T:
        return await self._writer.jobs.call(lambda session: work(session.db))

    async def read(
        self, stream: str, after: int = 0, limit: int = 1000
    ) -> tuple[StoredEvent, ...]:
        """Give the events of a stream; see the port."""
        refuse_limit(limit)
        refuse_half_character(stream)
        return await self._read(
            partial(reads.read, stream=stream, after=after, limit=limit)
        )

    async def snapshot(self, stream: str) -> StoredSnapshot | None:
        """Give the newest snapshot of a stream; see the port."""
        refuse_half_character(stream)
        return await self._read(partial(reads.snapshot, stream=stream))

    async def unsettled(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[StoredMessage, ...]:
        """Give messages not yet settled; see the port."""
        refuse_limit(limit)
        return await self._read(partial(reads.unsettled, after=after, limit=limit))

    async def unsettled_keys(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[MessageKey, ...]:
        """Give the keys of messages not yet settled; see the port."""
        refuse_limit(limit)
        return await self._read(partial(reads.unsettled_keys, after=after, limit=limit))

    async def answered(self, connector: str, platform_id: str) -> Answered | None:
        """Give what became of a message; see the port."""
        refuse_half_character(connector + platform_id)
        return await self._read(
            partial(reads.answered, connector=connector, platform_id=platform_id)
        )

    async def messages(
        self, keys: Collection[tuple[str, str]]
    ) -> tuple[StoredMessage, ...]:
        """Give the messages with these keys; see the port."""
        refuse_keys(keys)
        return await self._read(
            partial(reads.messages, keys=tuple(dict.fromkeys(keys)))
        )

    async def exchanges(
        self, stream: str, before: int = 0, limit: int = 100
    ) -> tuple[Answered, ...]:
        """Give messages of a stream with what became of each; see the port."""
        refuse_limit(limit)
        refuse_half_character(stream)
        return await self._read(
            partial(reads.exchanges, stream=stream, before=before, limit=limit)
        )

    async def undelivered(
        self, connector: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[StoredDelivery, ...]:
        """Give deliveries not yet settled; see the port."""
        refuse_limit(limit)
        refuse_half_character(connector or "")
        return await self._read(
            partial(reads.undelivered, connector=connector, after=after, limit=limit)
        )

    async def records(
        self, kind: str, owner: str | None = None, before: int = 0, limit: int = 1000
    ) -> tuple[StoredRecord, ...]:
        """Give records of a kind; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind + (owner or ""))
        work = partial(
            reads.records, kind=kind, owner=owner, before=before, limit=limit
        )
        return await self._read(work)

    async def records_since(
        self, kind: str, at: float, number: int = 0, limit: int = 1000
    ) -> tuple[StoredRecord, ...]:
        """Give records of a kind in the order of their times; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind)
        work = partial(
            reads.records_since, kind=kind, at=at, number=number, limit=limit
        )
        return await self._read(work)

    async def entry(self, kind: str, name: str) -> StoredEntry | None:
        """Give one entry; see the port."""
        refuse_half_character(kind + name)
        return await self._read(partial(reads.one, kind=kind, name=name))

    async def entries(
        self, kind: str, owner: str | None = None, after: str = "", limit: int = 1000
    ) -> tuple[StoredEntry, ...]:
        """Give entries of a kind in the order of their ids; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind + (owner or "") + after)
        return await self._read(
            partial(reads.listed, kind=kind, owner=owner, after=after, limit=limit)
        )

    async def counts(self) -> Counts:
        """Count rows by state; see the port."""
        return await self._read(reads.counts)

    async def prune(self, before: float, limit: int = 1000) -> Pruned:
        """Forget what is long settled; see the port."""
        refuse_limit(limit)
        return await self._writer.jobs.call(
            partial(rows.prune, before=before, limit=limit)
        )

    async def prune_records(self, kind: str, before: float, limit: int = 1000) -> int:
        """Forget old records of a kind; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind)
        return await self._writer.jobs.call(
            partial(rows.prune_records, kind=kind, before=before, limit=limit)
        )

    async def was_changed_outside(self) -> bool:
        """Whether another program wrote since the last call; see the port."""
        version = await self._read(reads.change_version)
        before, self._seen = self._seen, version
        return before not in (None, version)

    async def probe(self) -> None:
        """Write as a commit would; repeat a read that failed."""
        if why := self._reader.jobs.death:
            raise StoreUnavailableError(why)
        self._refuse_damaged()
        await self._writer.jobs.call(rows.probe)
        if (failed := self._failed_read) is not None:
            await self._read(failed.run)
            self._failed_read = None

    async def aclose(self) -> None:
        """Finish earlier work, end both threads, and let the next process in.

        Cancellation does not cut it short; a server that no longer answers does.

        Raises:
            StoreUnavailableError: it took longer than `close_within`.
        """
        refusal = f"the store on {self._server.name} is closed; open it anew"
        within = self._server.options.close_within
        with trio.move_on_after(within, shield=True) as scope:
            self._writer.jobs.close(refusal)
            await self._reader.stop(refusal)
            await self._writer.stop(refusal)
        if scope.cancelled_caught:
            raise StoreUnavailableError(
                f"{self._server.name} could not be closed within {within:g} s: it does"
                " not answer. What was acknowledged is safe"
            )

    def _refuse_damaged(self) -> None:
        """Refuse to go on with a database in which damage was found.

        Raises:
            CorruptError: there is damage.
        """
        if self._damage:
            raise CorruptError(
                "nothing is stored until the damage is mended and Callboard restarted:"
                f" {self._damage}"
            )

    def _learn(self, ended: GroupEnded) -> None:
        if ended.healthy is not None:
            self._healthy = ended.healthy
        if ended.healthy is False:  # the last word of a thread that has ended
            self._tell_broken()
        if ended.damage and not self._damage:
            self._damage = ended.damage
            if self._on_damage is not None:
                self._on_damage(ended.damage)
        # The first one stays: it is what `probe` tries again.
        self._failed_read = self._failed_read or ended.failed_read
        if ended.commits and self._on_commit is not None:
            self._on_commit(ended.seconds, ended.commits, 0)


def settled(given: Pending[Committed] | Committed) -> Committed:
    """Give a result that the writer's thread has settled."""
    assert not isinstance(given, rows.Pending)  # noqa: S101  see `threads.settle`
    return given
