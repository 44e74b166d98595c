"""All rows of a database as of one moment, read from outside.

For command-line tools that count, list by time, or compare: unlike `sqlite_browse`,
what another process writes meanwhile is not seen. It blocks, and changes nothing.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import msgspec

from runtime.rows import StoredEvent, StoredRecord
from runtime.sqlite_entries import listed
from runtime.sqlite_file import SqliteFile
from runtime.sqlite_reads import EVENT, NEVER, RECORD, greet
from runtime.store import refuse_limit
from runtime.texts import refuse_half_character

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    import apsw

    from runtime.entries import StoredEntry

PAGE = 1000
"""Rows read at once."""

Mark = tuple[float, int]
FIRST: Mark = (float("inf"), NEVER)
"""Before all records."""

JOURNAL = f"""SELECT {EVENT} FROM journal WHERE (stream, sequence) > (?, ?)
    ORDER BY stream, sequence LIMIT ?"""
RECORD_OF = f"SELECT {RECORD} FROM record WHERE kind = ? AND id = ?"
RECENT = f"""SELECT {RECORD} FROM record INDEXED BY record_at
    WHERE kind = ? AND at >= ? AND (at, number) < (?, ?)
    ORDER BY at DESC, number DESC LIMIT ?"""
ENDING = """SELECT DISTINCT stream FROM journal
    WHERE substr(stream, -length(?1)) = ?1 LIMIT ?2"""
TOTALS = """SELECT (SELECT count(*) FROM inbox), (SELECT count(*) FROM outbox),
    (SELECT count(*) FROM journal)"""
OPEN = """SELECT (SELECT count(*) FROM inbox WHERE settled_at IS NULL),
    (SELECT count(*) FROM outbox WHERE settled_at IS NULL)"""
KINDS = "SELECT kind, count(*) FROM record GROUP BY kind"


class Totals(msgspec.Struct, frozen=True):
    """How many rows there are."""

    messages: int
    deliveries: int
    events: int
    records: dict[str, int]
    """By kind."""


@contextlib.contextmanager
def survey(path: Path) -> Generator[Survey]:
    """Open a database for reading, as it stands at this moment.

    Keep it short: while it lasts, a busy server's WAL cannot be emptied.

    Raises:
        StoreUnavailableError: there is none, or the disk fails.
        StoreRefusedError: another program's, or an older release's.
        StoreTooNewError: a newer release wrote it.
        CorruptError: it is damaged.
    """
    file = SqliteFile(path)
    db = file.open_existing()
    try:
        with file.told():
            db.execute("BEGIN")
            greet(db)
        yield Survey(file, db)
    finally:
        db.close()


class Survey:
    """What stood in a database at one moment; made by `survey`.

    Its calls raise `StoreUnavailableError` or `CorruptError` when the disk fails.

    Args:
        file: whose errors are told.
        db: an open connection to it, inside a transaction.
    """

    def __init__(self, file: SqliteFile, db: apsw.Connection) -> None:
        self._file = file
        self._db = db

    def events(self) -> Iterator[StoredEvent]:
        """Give all events, stream by stream in the order of their names."""
        last = ("", 0)
        while True:
            with self._file.told():
                rows = list(self._db.execute(JOURNAL, (*last, PAGE)))
            for row in rows:
                event = StoredEvent(*row)
                last = (event.stream, event.sequence)
                yield event
            if len(rows) < PAGE:
                return

    def streams_ending(self, end: str, limit: int = 10) -> tuple[str, ...]:
        """Name streams whose name ends so; reads all names there are.

        Raises:
            MisuseError: for a limit outside 1 to `MAX_ROWS`, or half a character.
        """
        refuse_limit(limit)
        refuse_half_character(end)
        with self._file.told():
            rows = list(self._db.execute(ENDING, (end, limit)))
        return tuple(str(name) for (name,) in rows)

    def record(self, kind: str, name: str) -> StoredRecord | None:
        """Give the one record of this kind and id, if there is one."""
        with self._file.told():
            row = self._db.execute(RECORD_OF, (kind, name)).get
        return None if row is None else StoredRecord(*row)

    def recent(
        self, kind: str, since: float = 0.0, past: Mark = FIRST
    ) -> Iterator[StoredRecord]:
        """Give records of a kind, the newest first.

        Args:
            kind: which ones.
            since: only those written at these Unix seconds or later.
            past: time and number of the last one seen.
        """
        last = past
        while True:
            with self._file.told():
                rows = list(self._db.execute(RECENT, (kind, since, *last, PAGE)))
            for row in rows:
                record = StoredRecord(*row)
                last = (record.at, record.number)
                yield record
            if len(rows) < PAGE:
                return

    def entries(self, kind: str) -> Iterator[StoredEntry]:
        """Give all entries of a kind, in the order of their ids."""
        after = ""
        while True:
            with self._file.told():
                rows = listed(self._db, kind, None, after, PAGE)
            yield from rows
            if len(rows) < PAGE:
                return
            after = rows[-1].id

    def open_rows(self) -> tuple[int, int]:
        """Count messages that are not answered, and deliveries that are not sent."""
        with self._file.told():
            messages, deliveries = next(self._db.execute(OPEN))
        return int(messages), int(deliveries)

    def totals(self) -> Totals:
        """Count all rows."""
        with self._file.told():
            messages, deliveries, events = next(self._db.execute(TOTALS))
            kinds = {str(kind): int(rows) for kind, rows in self._db.execute(KINDS)}
        return Totals(int(messages), int(deliveries), int(events), kinds)
