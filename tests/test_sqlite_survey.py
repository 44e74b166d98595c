"""Proves that a survey gives all rows as of one moment, however they are paged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runtime import sqlite_survey
from runtime.errors import CorruptError, MisuseError, StoreUnavailableError
from runtime.rows import Commit
from runtime.sqlite_file import SqliteFile
from runtime.sqlite_store import SqliteStore
from runtime.sqlite_survey import PAGE, Totals, survey
from tests.store_rows import NOW, accepting, enqueueing, events, noting

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "callboard.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SqliteStore]:
    store = await SqliteStore.open(SqliteFile(path))
    yield store
    await store.aclose()


async def test_events_come_stream_by_stream_over_all_pages(
    store: SqliteStore, path: Path
) -> None:
    rows = {"b": 3, "a": PAGE, "a/x": 2}
    for stream, many in rows.items():
        await store.commit(Commit(at=NOW, appends=(events(stream, 0, many),)))
    with survey(path) as found:
        given = [(event.stream, event.sequence) for event in found.events()]
    assert given == [
        (stream, number + 1)
        for stream in sorted(rows)
        for number in range(rows[stream])
    ]


async def test_records_come_newest_first_by_their_time(
    store: SqliteStore, path: Path
) -> None:
    for at in (3.0, 1.0, 2.0):
        await store.commit(Commit(at=at, records=(noting(f"at {at}"),)))
    many = tuple(noting(f"{number}") for number in range(PAGE))
    await store.commit(Commit(at=0.5, records=many))
    with survey(path) as found:
        names = [row.id for row in found.recent("audit")]
        late = [row.id for row in found.recent("audit", since=2.0)]
        one = found.record("audit", "at 1.0")
        assert found.record("audit", "at 9") is None
    assert names[:3] == ["at 3.0", "at 2.0", "at 1.0"]
    assert names[3:] == [f"{number}" for number in reversed(range(PAGE))]
    assert late == names[:2]
    assert one is not None
    assert one.at == 1.0


async def test_what_is_written_meanwhile_is_not_seen(
    store: SqliteStore, path: Path
) -> None:
    await store.commit(accepting("m1"))
    with survey(path) as found:
        await store.commit(accepting("m2"))
        await store.commit(enqueueing("d1"))
        assert found.totals() == Totals(1, 0, 0, {})
    records = (noting("x"), noting("y"), noting("x", kind="usage"))
    await store.commit(Commit(at=NOW, records=records))
    with survey(path) as found:
        assert found.totals() == Totals(2, 1, 0, {"audit": 2, "usage": 1})


async def test_streams_are_found_by_how_they_end(
    store: SqliteStore, path: Path
) -> None:
    for stream in ("a/m1", "b/m1", "m1/a", "a/m12"):
        await store.commit(Commit(at=NOW, appends=(events(stream, 0),)))
    with survey(path) as found:
        assert sorted(found.streams_ending("/m1")) == ["a/m1", "b/m1"]
        assert len(found.streams_ending("/m1", 1)) == 1
        assert found.streams_ending("/m3") == ()
        with pytest.raises(MisuseError):
            found.streams_ending("x", 0)
        with pytest.raises(MisuseError):
            found.streams_ending("\ud83d")


def test_a_missing_database_is_not_made(path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="no database"), survey(path):
        pass
    assert not path.exists()


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"Dear diary, " * 1000)
    with pytest.raises(CorruptError), sqlite_survey.survey(path):
        pass
