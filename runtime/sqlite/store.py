"""The durable store in one SQLite file (apsw); see `runtime.store.Store`.

Trio tasks call it, and nothing here blocks the trio thread. `read.py` and `write.py`
have the SQL, `threads.py` the two threads and the group commit, `file.py` the file.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING

import trio

from runtime.errors import CorruptError, MisuseError, StoreError, StoreUnavailableError
from runtime.sqlite import read as sqlite_entries
from runtime.sqlite import read as sqlite_reads
from runtime.sqlite import write as sqlite_rows
from runtime.sqlite.facts import SqliteFacts
from runtime.sqlite.threads import ReaderThread, WriterThread
from runtime.store.port import body_bytes, refuse_keys, refuse_limit, refuse_misuse
from runtime.store.text import refuse_half_character
from runtime.store.threads import GroupEnded, WorkingThread

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from runtime.sqlite.file import SqliteFile
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


class SqliteStore:
    """Rows in one file; see `runtime.store.Store` for what may be relied on.

    Made by `open`, ended by `aclose`, and used from that one trio run. What is
    committed while the disk is busy shares one flush with its neighbours, so that
    many writers are served faster together than one alone.

    Args:
        file: which file, and how it is used.
        epoch: written on every row.
        on_commit: told on the trio thread, after each durable group, how many
            seconds it took, how many commits shared it, and how many bytes the WAL
            has; must not raise.
        thread: what its two threads are run by.
    """

    def __init__(
        self,
        file: SqliteFile,
        *,
        epoch: int = 0,
        on_commit: Callable[[float, int, int], None] | None = None,
        thread: type[WorkingThread] = WorkingThread,
    ) -> None:
        self._file = file
        self._epoch = epoch
        self._on_commit = on_commit
        self._on_broken: Callable[[StoreUnavailableError], object] | None = None
        self._on_damage: Callable[[str], object] | None = None
        self._damage = ""
        self._healthy = True
        self._failed_read: Job | None = None
        self._seen: int | None = None
        self._token = trio.lowlevel.current_trio_token()
        self._writer = thread(WriterThread, file, self._learn)
        self._reader = thread(ReaderThread, file, self._learn)
        self._facts = SqliteFacts(self._reader.jobs, self._writer.jobs)

    @classmethod
    async def open(
        cls,
        file: SqliteFile,
        *,
        epoch: int = 0,
        on_commit: Callable[[float, int, int], None] | None = None,
        thread: type[WorkingThread] = WorkingThread,
    ) -> SqliteStore:
        """Claim the file, make it or bring it up to date, and start both threads.

        Raises:
            StoreUnavailableError: another process holds it, or the disk fails.
            StoreRefusedError: another program's file, or an unsafe SQLite.
            StoreTooNewError: a newer release wrote it.
            CorruptError: it is damaged.
        """
        store = cls(file, epoch=epoch, on_commit=on_commit, thread=thread)
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(store.aclose)
            # Each thread opens its connection for its first job; the writer's
            # first, for it makes the file.
            await store._writer.jobs.call(sqlite_reads.greet)
            await store._reader.jobs.call(sqlite_reads.greet)
            stack.pop_all()
        return store

    @property
    def epoch(self) -> int:
        """The epoch that is written on every row."""
        return self._epoch

    @property
    def healthy(self) -> bool:
        """False while the disk fails, once there is damage, or the store has broken.

        A failed write is made good by one that succeeds, a failed read only by
        the same one. Damage is final: it is in one place, and work in another would
        say nothing of it.
        """
        is_well = self._healthy and self._failed_read is None and not self._damage
        return is_well and not self.needs_reopening

    @property
    def needs_reopening(self) -> bool:
        """Whether a thread ended by a bug; nothing opens this store again."""
        return self._writer.jobs.is_dead or self._reader.jobs.is_dead

    def when_broken(self, tell: Callable[[StoreUnavailableError], object]) -> None:
        """Have somebody told, on the trio thread, that a thread ended by a bug.

        Why: this store will never take anything again, and what is durable is in the
        file. So who uses it had better end, and be started again.

        Args:
            tell: called with the reason, perhaps more than once; must neither wait nor
                raise.
        """
        self._on_broken = tell
        self._tell_broken()

    def when_damaged(self, tell: Callable[[str], object]) -> None:
        """Have somebody told, on the trio thread and once, that the file is damaged.

        Nothing is stored from then on, until the store is opened anew.

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
    def facts(self) -> SqliteFacts:
        """What is remembered; see the port."""
        return self._facts

    @property
    def queued(self) -> int:
        """How many commits wait for the writer now."""
        return self._writer.jobs.depth

    async def commit(self, commit: Commit) -> Committed:
        """Store one unit, and come back when it is durable; see the port."""
        refuse_misuse(commit)
        self._refuse_unreadable()
        return await self._writer.jobs.call(
            partial(sqlite_rows.write, commit=commit, epoch=self._epoch),
            body_bytes(commit),
        )

    def submit(self, commit: Commit, done: Done) -> None:
        """Store one unit without waiting; see the port."""
        try:
            refuse_misuse(commit)
            if self._damage or self._failed_read is not None:
                self._refuse_unreadable()
            self._writer.jobs.submit(
                partial(sqlite_rows.write, commit=commit, epoch=self._epoch),
                done,
                body_bytes(commit),
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
            partial(sqlite_reads.read, stream=stream, after=after, limit=limit)
        )

    async def snapshot(self, stream: str) -> StoredSnapshot | None:
        """Give the newest snapshot of a stream; see the port."""
        refuse_half_character(stream)
        return await self._reader.jobs.call(
            partial(sqlite_reads.snapshot, stream=stream)
        )

    async def unsettled(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[StoredMessage, ...]:
        """Give messages not yet settled; see the port."""
        refuse_limit(limit)
        return await self._reader.jobs.call(
            partial(sqlite_reads.unsettled, after=after, limit=limit)
        )

    async def unsettled_keys(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[MessageKey, ...]:
        """Give the keys of messages not yet settled; see the port."""
        refuse_limit(limit)
        return await self._reader.jobs.call(
            partial(sqlite_reads.unsettled_keys, after=after, limit=limit)
        )

    async def answered(self, connector: str, platform_id: str) -> Answered | None:
        """Give what became of a message; see the port."""
        refuse_half_character(connector + platform_id)
        return await self._reader.jobs.call(
            partial(sqlite_reads.answered, connector=connector, platform_id=platform_id)
        )

    async def messages(
        self, keys: Collection[tuple[str, str]]
    ) -> tuple[StoredMessage, ...]:
        """Give the messages with these keys; see the port."""
        refuse_keys(keys)
        return await self._reader.jobs.call(
            partial(sqlite_reads.messages, keys=tuple(dict.fromkeys(keys)))
        )

    async def exchanges(
        self, stream: str, before: int = 0, limit: int = 100
    ) -> tuple[Answered, ...]:
        """Give messages of a stream with what became of each; see the port."""
        refuse_limit(limit)
        refuse_half_character(stream)
        return await self._reader.jobs.call(
            partial(sqlite_reads.exchanges, stream=stream, before=before, limit=limit)
        )

    async def undelivered(
        self, connector: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[StoredDelivery, ...]:
        """Give deliveries not yet settled; see the port."""
        refuse_limit(limit)
        refuse_half_character(connector or "")
        return await self._reader.jobs.call(
            partial(
                sqlite_reads.undelivered, connector=connector, after=after, limit=limit
            )
        )

    async def records(
        self, kind: str, owner: str | None = None, before: int = 0, limit: int = 1000
    ) -> tuple[StoredRecord, ...]:
        """Give records of a kind; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind + (owner or ""))
        return await self._reader.jobs.call(
            partial(
                sqlite_reads.records,
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
                sqlite_reads.records_since,
                kind=kind,
                at=at,
                number=number,
                limit=limit,
            )
        )

    async def entry(self, kind: str, name: str) -> StoredEntry | None:
        """Give one entry; see the port."""
        refuse_half_character(kind + name)
        return await self._reader.jobs.call(
            partial(sqlite_entries.one, kind=kind, name=name)
        )

    async def entries(
        self, kind: str, owner: str | None = None, after: str = "", limit: int = 1000
    ) -> tuple[StoredEntry, ...]:
        """Give entries of a kind in the order of their ids; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind + (owner or "") + after)
        return await self._reader.jobs.call(
            partial(
                sqlite_entries.listed, kind=kind, owner=owner, after=after, limit=limit
            )
        )

    async def counts(self) -> Counts:
        """Count rows by state; see the port."""
        return await self._reader.jobs.call(sqlite_reads.counts)

    async def prune(self, before: float, limit: int = 1000) -> Pruned:
        """Forget what is long settled; see the port."""
        refuse_limit(limit)
        return await self._writer.jobs.call(
            partial(sqlite_rows.prune, before=before, limit=limit)
        )

    async def prune_records(self, kind: str, before: float, limit: int = 1000) -> int:
        """Forget old records of a kind; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind)
        return await self._writer.jobs.call(
            partial(sqlite_rows.prune_records, kind=kind, before=before, limit=limit)
        )

    async def was_changed_outside(self) -> bool:
        """Whether another program wrote since the last call; see the port."""
        # On the writer's connection: there our own commits do not count.
        version = await self._writer.jobs.call(sqlite_reads.data_version)
        before, self._seen = self._seen, version
        return before not in (None, version)

    async def probe(self) -> None:
        """Take room on the disk as a commit would; repeat a read that failed."""
        if why := self._reader.jobs.death:
            raise StoreUnavailableError(why)
        self._refuse_damaged()
        await self._writer.jobs.call(sqlite_rows.probe)
        await self._writer.jobs.call(sqlite_rows.end_probe)
        if (failed := self._failed_read) is not None:
            await self._reader.jobs.call(failed.run)
            self._failed_read = None

    async def aclose(self) -> None:
        """Finish earlier work, and end both threads.

        Afterwards no thread, connection or claim is left and the WAL is empty.
        Cancellation does not cut it short; a disk that no longer answers does.

        Raises:
            StoreUnavailableError: the disk did not let go within `close_within`.
        """
        refusal = f"the store {self._file.path} is closed; open it anew"
        within = self._file.options.close_within
        # Why: an unclosed connection keeps its thread, its lock and the WAL.
        with trio.move_on_after(within, shield=True) as scope:
            self._writer.jobs.close(refusal)
            # The reader first: the last connection to close empties the WAL.
            await self._reader.stop(refusal)
            await self._writer.stop(refusal)
        if scope.cancelled_caught:
            raise StoreUnavailableError(
                f"{self._file.path} could not be closed within {within:g} s: the disk"
                " does not answer. What was acknowledged is safe"
            )

    def _refuse_damaged(self) -> None:
        """Refuse to go on with a file in which damage was found.

        Why: SQLite itself goes on wherever it needs no damaged page. A question would
        be taken and a model paid, and then there would be no way to store the answer.

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
        if self._failed_read is not None:
            error = self._failed_read.error
            raise StoreUnavailableError(
                f"nothing is stored, because what is there cannot be read: {error}"
            )

    def _learn(self, ended: GroupEnded) -> None:
        if ended.healthy is not None:
            self._healthy = ended.healthy
        if ended.healthy is False:  # the last word of a thread that ended by a bug
            self._tell_broken()
        if ended.damage and not self._damage:
            self._damage = ended.damage
            if self._on_damage is not None:
                self._on_damage(ended.damage)
        # The first one stays: it is what `probe` tries again.
        self._failed_read = self._failed_read or ended.failed_read
        if ended.commits and self._on_commit is not None:
            self._on_commit(ended.seconds, ended.commits, ended.wal_bytes)
