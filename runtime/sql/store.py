"""The durable store over an engine that speaks SQL; see `runtime.store.Store`.

Trio tasks call it, and nothing here blocks the trio thread. `read.py` and `write.py`
have the SQL; the two threads, the group commit and the connections are the engine's.
"""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import trio

from runtime.errors import CorruptError, MisuseError, StoreError, StoreUnavailableError
from runtime.sql import read as reads, write as rows
from runtime.sql.facts import Lookup, SqlFacts
from runtime.store.jobs import (
    DatabaseThread,
    GroupEnded,
    Job,
    StorePlace,
    WorkingThread,
)
from runtime.store.port import Done, refuse_keys, refuse_limit, refuse_misuse
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
from runtime.store.text import refuse_half_character


class SqlPlace(StorePlace, Protocol):
    """Where the rows are: a file, or a server."""

    @property
    def name(self) -> str:
        """How texts for people name it."""
        ...


P = TypeVar("P", bound=SqlPlace)

UNCHANGED: frozenset[str] = frozenset()


class SqlStore(abc.ABC, Generic[P]):
    """Rows in one database; see `runtime.store.Store` for what may be relied on.

    Made by `open`, ended by `aclose`, and used from that one trio run. What is
    committed while the disk is busy shares one flush with its neighbours, so that
    many writers are served faster together than one alone.

    Args:
        on_commit: told on the trio thread, after each durable group, how many
            seconds it took, how many commits shared it, and how many bytes SQLite's WAL
            has; must not raise.
        thread: what its two threads are run by.
    """

    writing: ClassVar[type[DatabaseThread[Any]]]
    reading: ClassVar[type[DatabaseThread[Any]]]
    lookup: ClassVar[Lookup]
    remembering: ClassVar[type[SqlFacts]] = SqlFacts

    versions_at_writer: ClassVar[bool]
    """Whether `versions` are read where this program writes."""

    reads_stop_commits: ClassVar[bool]
    """Whether nothing is stored while a read has failed, until `probe` has done it."""

    def __init__(
        self,
        place: P,
        *,
        epoch: int = 0,
        on_commit: Callable[[float, int, int], None] | None = None,
        thread: type[WorkingThread] = WorkingThread,
    ) -> None:
        self._place = place
        self._epoch = epoch
        self._on_commit = on_commit
        self._on_broken: Callable[[StoreUnavailableError], object] | None = None
        self._on_damage: Callable[[str], object] | None = None
        self._damage = ""
        self.damaged = False
        """Whether damage was found; see the port."""

        self._healthy = True
        self._failed_read: Job | None = None
        self._seen: dict[str, int] | None = None
        self._token = trio.lowlevel.current_trio_token()
        self._writer = thread(self.writing, place, self._learn)
        self._reader = thread(self.reading, place, self._learn)
        self._facts = self.remembering(
            self._reader.jobs, self._writer.jobs, self.lookup
        )

    @classmethod
    async def open(
        cls,
        place: P,
        *,
        epoch: int = 0,
        on_commit: Callable[[float, int, int], None] | None = None,
        thread: type[WorkingThread] = WorkingThread,
    ) -> Self:
        """Claim the database, make it or bring it up to date, and start both threads.

        Raises:
            StoreUnavailableError: another process has it, or the disk or server fails.
            StoreRefusedError: another program's, or an engine that is no use.
            StoreTooNewError: a newer release wrote it.
            CorruptError: it is damaged.
        """
        store = cls(place, epoch=epoch, on_commit=on_commit, thread=thread)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(store.aclose)
            # Each thread opens its connection for its first job; the writer's
            # first, for it makes the tables.
            await store._writer.jobs.call(cls.greet)
            await store._reader.jobs.call(cls.greet)
            stack.pop_all()
        return store

    @staticmethod
    @abc.abstractmethod
    def greet(db: Any) -> int:  # noqa: ANN401  the engine's own connection
        """Read something, so that a wrong or damaged database is found at once."""

    @abc.abstractmethod
    def versions(self, db: Any) -> dict[str, int]:  # noqa: ANN401  the engine's own
        """Give, by kind of rows, a number that changes when others have written."""

    @abc.abstractmethod
    async def _write_something(self) -> None:
        """Write, as a commit would."""

    @property
    def epoch(self) -> int:
        """The epoch that is written on every row."""
        return self._epoch

    @property
    def healthy(self) -> bool:
        """False while the disk or server fails, after damage, and once it has broken.

        A failed write is made good by one that succeeds, a failed read only by
        the same one. Damage is final: it is in one place, and work in another would
        say nothing of it.
        """
        is_well = self._healthy and self._failed_read is None and not self._damage
        return is_well and not self.needs_reopening

    @property
    def needs_reopening(self) -> bool:
        """Whether a thread ended: by a bug, or because another process took over."""
        return bool(self._writer.jobs.death or self._reader.jobs.death)

    def when_broken(self, tell: Callable[[StoreUnavailableError], object]) -> None:
        """Have somebody told, on the trio thread, that a thread has ended.

        Why: this store will never take anything again, and what is durable is in the
        database. So its user should end, and be started again.

        Args:
            tell: called with the reason, perhaps more than once; must neither wait nor
                raise.
        """
        self._on_broken = tell
        self._tell_broken()

    def when_damaged(self, tell: Callable[[str], object]) -> None:
        """Have somebody told, on the trio thread and once, that there is damage.

        Nothing is stored from then on, until the store is opened again.

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

    @property
    def facts(self) -> SqlFacts:
        """What is remembered; see the port."""
        return self._facts

    @property
    def queued(self) -> int:
        """How many commits wait for the writer now."""
        return self._writer.jobs.depth

    async def commit(self, commit: Commit) -> Committed:
        """Store one unit, and come back when it is durable; see the port."""
        size = refuse_misuse(commit)
        if self._damage or self._failed_read is not None:
            self._refuse_unreadable()
        work = self._handing(commit) if commit.handovers else None
        return await self._writer.jobs.call(
            work or partial(rows.write_own, commit=commit, epoch=self._epoch), size
        )

    def _handing(self, commit: Commit) -> Callable[[Any], Committed]:
        """Give the job that stores a unit with what it hands over."""
        return partial(rows.write, commit=commit, epoch=self._epoch)

    def submit(self, commit: Commit, done: Done) -> None:
        """Store one unit without waiting; see the port."""
        try:
            size = refuse_misuse(commit)
            if self._damage or self._failed_read is not None:
                self._refuse_unreadable()
            work = self._handing(commit) if commit.handovers else None
            self._writer.jobs.submit(
                work or partial(rows.write_own, commit=commit, epoch=self._epoch),
                done,
                size,
                may_wait=commit.may_wait,
            )
        except (StoreError, MisuseError) as error:
            self._token.run_sync_soon(done, error)

    async def read(
        self, stream: str, after: int = 0, limit: int = 1000
    ) -> tuple[StoredEvent, ...]:
        """Give the events of a stream; see the port."""
        refuse_limit(limit)
        refuse_half_character(stream)
        return await self._reader.jobs.call(
            partial(reads.read, stream=stream, after=after, limit=limit)
        )

    async def snapshot(self, stream: str) -> StoredSnapshot | None:
        """Give the newest snapshot of a stream; see the port."""
        refuse_half_character(stream)
        return await self._reader.jobs.call(partial(reads.snapshot, stream=stream))

    async def unsettled(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[StoredMessage, ...]:
        """Give messages not yet settled; see the port."""
        refuse_limit(limit)
        return await self._reader.jobs.call(
            partial(reads.unsettled, after=after, limit=limit)
        )

    async def unsettled_keys(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[MessageKey, ...]:
        """Give the keys of messages not yet settled; see the port."""
        refuse_limit(limit)
        return await self._reader.jobs.call(
            partial(reads.unsettled_keys, after=after, limit=limit)
        )

    async def answered(self, connector: str, platform_id: str) -> Answered | None:
        """Give what became of a message; see the port."""
        refuse_half_character(connector + platform_id)
        return await self._reader.jobs.call(
            partial(reads.answered, connector=connector, platform_id=platform_id)
        )

    async def messages(
        self, keys: Collection[tuple[str, str]]
    ) -> tuple[StoredMessage, ...]:
        """Give the messages with these keys; see the port."""
        refuse_keys(keys)
        return await self._reader.jobs.call(
            partial(reads.messages, keys=tuple(dict.fromkeys(keys)))
        )

    async def exchanges(
        self, stream: str, before: int = 0, limit: int = 100
    ) -> tuple[Answered, ...]:
        """Give messages of a stream with what became of each; see the port."""
        refuse_limit(limit)
        refuse_half_character(stream)
        return await self._reader.jobs.call(
            partial(reads.exchanges, stream=stream, before=before, limit=limit)
        )

    async def undelivered(
        self, connector: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[StoredDelivery, ...]:
        """Give deliveries not yet settled; see the port."""
        refuse_limit(limit)
        refuse_half_character(connector or "")
        return await self._reader.jobs.call(
            partial(reads.undelivered, connector=connector, after=after, limit=limit)
        )

    async def records(
        self, kind: str, owner: str | None = None, before: int = 0, limit: int = 1000
    ) -> tuple[StoredRecord, ...]:
        """Give records of a kind; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind + (owner or ""))
        return await self._reader.jobs.call(
            partial(
                reads.records,
                kind=kind,
                owner=owner,
                before=before,
                limit=limit,
            )
        )

    async def records_since(
        self, kind: str, at: float, number: int = 0, limit: int = 1000
    ) -> tuple[StoredRecord, ...]:
        """Give records of a kind in the order of their times; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind)
        return await self._reader.jobs.call(
            partial(
                reads.records_since,
                kind=kind,
                at=at,
                number=number,
                limit=limit,
            )
        )

    async def entry(self, kind: str, name: str) -> StoredEntry | None:
        """Give one entry; see the port."""
        refuse_half_character(kind + name)
        return await self._reader.jobs.call(partial(reads.one, kind=kind, name=name))

    async def entries(
        self, kind: str, owner: str | None = None, after: str = "", limit: int = 1000
    ) -> tuple[StoredEntry, ...]:
        """Give entries of a kind in the order of their ids; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind + (owner or "") + after)
        return await self._reader.jobs.call(
            partial(reads.listed, kind=kind, owner=owner, after=after, limit=limit)
        )

    async def counts(self) -> Counts:
        """Count rows by state; see the port."""
        return await self._reader.jobs.call(reads.counts)

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

    may_be_handed: bool = False
    """Whether rows may wait for the owners of other parts; see the port."""

    async def take_over(self, limit: int = 1000) -> frozenset[str]:
        """Find nothing: all is stored at once where one process has all parts."""
        refuse_limit(limit)
        if self._writer.jobs.is_closed:
            raise StoreUnavailableError(f"the store {self._place.name} is closed")
        await trio.lowlevel.checkpoint()
        return frozenset()

    async def changes_outside(self) -> frozenset[str]:
        """Name the kinds of rows that others have changed; see the port."""
        thread = self._writer if self.versions_at_writer else self._reader
        versions = await thread.jobs.call(self.versions)
        before, self._seen = self._seen, versions
        if before is None or before == versions:
            return UNCHANGED
        moved = {kind for kind, count in versions.items() if before.get(kind) != count}
        return frozenset(moved)

    async def probe(self) -> None:
        """Write as a commit would; repeat a read that failed."""
        if why := self._reader.jobs.death:
            raise StoreUnavailableError(why)
        self._refuse_damaged()
        await self._write_something()
        if (failed := self._failed_read) is not None:
            await self._reader.jobs.call(failed.work)
            self._failed_read = None

    async def aclose(self) -> None:
        """Finish earlier work, and end both threads.

        Afterwards no thread, connection or claim is left, and SQLite's WAL is empty.
        Cancellation does not cut it short; what no longer answers does.

        Raises:
            StoreUnavailableError: it took longer than `close_within`.
        """
        refusal = f"the store {self._place.name} is closed; open it again"
        within = self._place.options.close_within
        # Why: an unclosed connection keeps its thread, its lock and the WAL.
        with trio.move_on_after(within, shield=True) as scope:
            self._writer.jobs.close(refusal)
            # The reader first: the last connection to close empties the WAL.
            await self._reader.stop(refusal)
            await self._writer.stop(refusal)
        if scope.cancelled_caught:
            raise StoreUnavailableError(
                f"{self._place.name} could not be closed within {within:g} s: it does"
                " not answer. What was acknowledged is safe"
            )

    def _refuse_damaged(self) -> None:
        """Refuse to go on with a database in which damage was found.

        Why: the engine goes on wherever it needs no damaged page. A question would be
        taken and a model paid, and then there would be no way to store the answer.

        Raises:
            CorruptError: there is damage.
        """
        if self._damage:
            raise CorruptError(
                "nothing is stored until the damage is mended and Callboard restarted:"
                f" {self._damage}"
            )

    def _refuse_unreadable(self) -> None:
        """Refuse commits once there is damage, and while the disk gives no rows."""
        self._refuse_damaged()
        if self._failed_read is not None and self.reads_stop_commits:
            error = self._failed_read.error
            raise StoreUnavailableError(
                f"nothing is stored, because what is there cannot be read: {error}"
            )

    def _learn(self, ended: GroupEnded) -> None:
        if ended.healthy is not None:
            self._healthy = ended.healthy
        if ended.healthy is False:  # the last word of a thread that has ended
            self._tell_broken()
        if ended.damage and not self._damage:
            self._damage, self.damaged = ended.damage, True
            if self._on_damage is not None:
                self._on_damage(ended.damage)
        # The first one stays: it is what `probe` tries again.
        self._failed_read = self._failed_read or ended.failed_read
        if ended.commits and self._on_commit is not None:
            self._on_commit(ended.seconds, ended.commits, ended.wal_bytes)
