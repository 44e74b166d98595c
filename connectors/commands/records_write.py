"""The writing behind `callboard records rebuild`, while no server may be running."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

from actors.records import AUDIT, AuditRecord, kept
from connectors.commands.records_check import Comparison
from runtime.rows import Commit, Committed
from runtime.sqlite_file import SqliteFile
from runtime.sqlite_store import SqliteStore
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from pathlib import Path

    from actors.rebuild import Expected
    from actors.redaction import Keep
    from runtime.rows import Record

# Chosen: they share one flush to the disk.
TOGETHER = 500


async def rebuild_all(
    path: Path, audited_since: float, keep: Keep
) -> tuple[int, list[str]]:
    """Write each record that is missing or different.

    Args:
        path: the database.
        audited_since: Unix seconds; audit records of earlier events may be gone.
        keep: says what the audit keeps.

    Returns:
        How many were written, and what could not be mended.

    Raises:
        runtime.errors.StoreError: there is no such database, a server uses it, or
            the disk fails.
    """
    with survey(path):  # else a database would be made, or brought up to date
        pass
    store = await SqliteStore.open(SqliteFile(path))
    try:
        with survey(path) as rows:
            return await _write_all(store, Comparison(rows, audited_since), keep)
    finally:
        with trio.CancelScope(shield=True):
            await store.aclose()


async def _write_all(
    store: SqliteStore, comparison: Comparison, keep: Keep
) -> tuple[int, list[str]]:
    written, left = 0, list[str]()
    waiting: list[Expected] = []
    for found in comparison.differences():
        if found.expected is None:
            left.append(f"{found.kind} {found.id} {found.problem}")
            continue
        waiting.append(found.expected)
        written += 1
        if len(waiting) == TOGETHER:
            await _write(store, waiting, keep)
            waiting.clear()
    if waiting:
        await _write(store, waiting, keep)
    return written, left


async def _write(store: SqliteStore, made: list[Expected], keep: Keep) -> None:
    """Store records in their order, each with the time of its event.

    Raises:
        runtime.errors.StoreError: the disk refused one.
    """
    outcomes: list[Committed | Exception] = []
    all_told = trio.Event()

    def done(outcome: Committed | Exception) -> None:
        outcomes.append(outcome)
        if len(outcomes) == len(made):
            all_told.set()

    for each in made:
        record = cleaned(each.record, keep)
        store.submit(Commit(at=each.at, records=(record,)), done)
    await all_told.wait()
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


def cleaned(record: Record, keep: Keep) -> Record:
    """Give a record with only that of it which is kept."""
    if record.kind != AUDIT:
        return record
    body = msgspec.json.decode(record.body, type=AuditRecord)
    return msgspec.structs.replace(record, body=msgspec.json.encode(kept(body, keep)))
