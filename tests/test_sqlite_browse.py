"""Proves that a database can be read from outside while a server is using it."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw
import pytest

from runtime.errors import (
    CorruptError,
    MisuseError,
    StoreError,
    StoreRefusedError,
    StoreTooNewError,
    StoreUnavailableError,
)
from runtime.migrations import MIGRATIONS
from runtime.rows import Claim, Commit, Receipt, Settle
from runtime.sqlite_browse import StreamSummary, browse
from runtime.sqlite_file import SqliteFile
from runtime.sqlite_store import SqliteStore
from tests.store_rows import (
    NOW,
    accepting,
    enqueueing,
    events,
    noting,
    summing_up,
)

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


async def test_messages_are_listed_by_state_and_order(
    store: SqliteStore, path: Path
) -> None:
    await store.commit(accepting("m1", "m2", "m3", "m4"))
    await store.commit(
        Commit(
            at=NOW,
            claims=(Claim("m2", 1),),
            settles=(Settle("m3", "dead"), Settle("m4", "replied")),
        )
    )
    with browse(path) as browser:
        newest_first = browser.messages()
        oldest_first = browser.messages(newest_first=False, limit=2)
        being_done = browser.messages(("accepted", "running"))
        dead = browser.messages(["dead"])
    assert [row.id for row in newest_first] == ["m4", "m3", "m2", "m1"]
    assert [row.id for row in oldest_first] == ["m1", "m2"]
    assert [row.id for row in being_done] == ["m2", "m1"]
    assert [row.id for row in dead] == ["m3"]


async def test_what_is_written_meanwhile_is_seen(
    store: SqliteStore, path: Path
) -> None:
    with browse(path) as browser:
        assert browser.messages() == ()
        await store.commit(accepting("m1"))
        await store.commit(enqueueing("d1", "d2"))
        await store.commit(Commit(at=NOW, receipts=(Receipt("d1", "sent"),)))
        assert browser.messages() == await store.unsettled()
        assert browser.deliveries(["pending"]) == await store.undelivered()
        assert browser.counts() == await store.counts()
    assert not await store.was_changed_outside()


async def test_a_row_is_found_by_the_beginning_of_its_id(
    store: SqliteStore, path: Path
) -> None:
    await store.commit(accepting("01AB", "01AC", "01ACX", "02"))
    await store.commit(enqueueing("01AB:0", "01AB:1"))
    with browse(path) as browser:
        assert browser.message("01AB").id == "01AB"
        assert browser.message("01AC").id == "01AC", "an id goes before a beginning"
        assert browser.message("02").id == "02"
        assert browser.delivery("01AB:1").id == "01AB:1"
        with pytest.raises(MisuseError, match=r"'01': 01AB, 01AC, 01ACX; give more"):
            browser.message("01")
        with pytest.raises(MisuseError, match="no message has an id"):
            browser.message("03")
        with pytest.raises(MisuseError, match="no delivery has an id"):
            browser.delivery("01AB:2")
        with pytest.raises(MisuseError, match="give the id"):
            browser.message("")


async def test_of_many_rows_that_an_id_may_mean_a_few_are_named(
    store: SqliteStore, path: Path
) -> None:
    await store.commit(accepting(*(f"m{number}" for number in range(9))))
    with browse(path) as browser, pytest.raises(MisuseError) as told:
        browser.message("m")
    assert "m0, m1, m2, m3, m4, …; give more" in str(told.value)


async def test_deliveries_are_given_by_what_they_belong_to(
    store: SqliteStore, path: Path
) -> None:
    await store.commit(enqueueing("d1", "d2", correlation_id="m1"))
    await store.commit(enqueueing("d3", correlation_id="m2"))
    with browse(path) as browser:
        assert [row.id for row in browser.deliveries_of("m1")] == ["d1", "d2"]


async def test_events_of_a_stream_and_those_below_come_as_they_happened(
    store: SqliteStore, path: Path
) -> None:
    for stream in ("a/b", "a", "ab", "a/c", "a-b", "a/b"):
        expected = len(await store.read(stream))
        await store.commit(Commit(at=NOW, appends=(events(stream, expected),)))
    with browse(path) as browser:
        found = [(row.number, row.event.stream) for row in browser.events("a")]
        assert found == [(1, "a/b"), (2, "a"), (4, "a/c"), (6, "a/b")]
        assert [row.number for row in browser.events("a", 2, 1)] == [4]
        assert [row.event.sequence for row in browser.events("a/b")] == [1, 2]


async def test_streams_are_named_with_their_size_and_last_time(
    store: SqliteStore, path: Path
) -> None:
    await store.commit(Commit(at=NOW, appends=(events("a", 0, 3), events("b", 0))))
    await store.commit(Commit(at=NOW + 9, appends=(events("a", 3),)))
    with browse(path) as browser:
        assert browser.streams() == (
            StreamSummary("a", 4, NOW + 9),
            StreamSummary("b", 1, NOW),
        )
        assert browser.streams(1) == (StreamSummary("a", 4, NOW + 9),)


async def test_snapshots_and_records_are_given_as_the_store_gives_them(
    store: SqliteStore, path: Path
) -> None:
    records = (noting("x", owner="anna"), noting("y", owner="ben"))
    await store.commit(Commit(at=NOW, snapshots=(summing_up("a", 1),), records=records))
    with browse(path) as browser:
        assert browser.snapshot("a") == await store.snapshot("a")
        assert browser.records("audit") == await store.records("audit")
        assert [row.id for row in browser.records("audit", "anna")] == ["x"]


async def test_senseless_questions_are_refused(store: SqliteStore, path: Path) -> None:
    assert store.healthy
    with browse(path) as browser:
        for call in (
            lambda: browser.messages(limit=0),
            lambda: browser.streams(-1),
            lambda: browser.events("half \ud83d"),
            lambda: browser.message("half \ud83d"),
            lambda: browser.records("audit", limit=10**6),
        ):
            with pytest.raises(MisuseError):
                call()


def test_a_missing_database_is_not_made(path: Path) -> None:
    with (
        pytest.raises(StoreUnavailableError, match="there is no database"),
        browse(path),
    ):
        pass
    assert not path.exists()


@pytest.mark.parametrize("is_device", [False, True])
def test_what_holds_nothing_is_no_database(path: Path, *, is_device: bool) -> None:
    if is_device:
        path = type(path)("/dev/null")
    else:
        path.touch()
    text = "/dev/null: it is no file" if is_device else "is empty: no database"
    with pytest.raises(StoreError, match=text), browse(path):
        pass


def test_an_older_database_is_not_brought_up_to_date(path: Path) -> None:
    SqliteFile(path, migrations=MIGRATIONS[:1]).open_writer().close()
    before = path.read_bytes()
    with pytest.raises(StoreRefusedError, match="older release"), browse(path):
        pass
    assert path.read_bytes() == before


def test_a_newer_database_is_refused(path: Path) -> None:
    SqliteFile(path).open_writer().close()
    db = apsw.Connection(str(path))
    db.pragma("user_version", len(MIGRATIONS) + 1)
    db.close()
    with pytest.raises(StoreTooNewError, match="newer release"), browse(path):
        pass


def test_another_programs_database_is_refused(path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE theirs(x)")
    db.close()
    with pytest.raises(StoreRefusedError, match="another program"), browse(path):
        pass


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"Dear diary, " * 1000)
    with pytest.raises(CorruptError, match="no database"), browse(path):
        pass


async def test_an_error_of_the_reader_itself_stays_as_it_is(
    store: SqliteStore, path: Path
) -> None:
    assert store.healthy
    with pytest.raises(BrokenPipeError), browse(path):
        raise BrokenPipeError
