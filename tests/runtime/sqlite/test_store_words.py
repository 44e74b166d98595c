"""Proves that each trouble with the database is called what it is."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import io
from pathlib import Path

import apsw
import pytest

from connectors.chat.websocket.session import fault_of
from connectors.web.server import ApiError, log_refusal, translate
from runtime.disk import barrier
from runtime.errors import CorruptError, StoreError, StoreUnavailableError
from runtime.sqlite.errors import translate as in_words
from runtime.sqlite.file import SqliteFile, SqliteOptions
from runtime.sqlite.store import SqliteStore
from runtime.telemetry.logs import FIELDS, writing
from tests.support.store.rows import accepting

HASTY = SqliteOptions(busy_timeout=0.01)
REMOVED = StoreUnavailableError(
    "/srv/off/d.db-wal was removed while it was in use; restart Callboard"
)


def of_sqlite(error: apsw.Error) -> str:
    return str(in_words(error, Path("callboard.db")))


async def test_a_lock_of_another_program_is_no_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "callboard.db"
    store = await SqliteStore.open(SqliteFile(path, HASTY))
    shell = apsw.Connection(str(path))
    shell.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError, match="held by another program") as told:
        await store.commit(accepting("m1"))
    assert "sqlite3" in str(told.value)
    assert "room" not in str(told.value)
    shell.execute("ROLLBACK")
    shell.close()
    await store.commit(accepting("m1"))
    await store.aclose()


def test_a_file_that_cannot_be_opened_wants_its_permissions_mended(
    tmp_path: Path,
) -> None:
    with pytest.raises(apsw.CantOpenError) as refused:
        apsw.Connection(str(tmp_path))
    told = of_sqlite(refused.value)
    assert "cannot be opened for reading and writing by the user" in told
    assert "Mend owner or permissions" in told
    assert "room" not in told


def test_a_full_disk_wants_room() -> None:
    db = apsw.Connection(":memory:")
    db.pragma("max_page_count", 1)
    with pytest.raises(apsw.FullError) as refused:
        db.execute("CREATE TABLE a(x)")
    db.close()
    told = of_sqlite(refused.value)
    assert "found no more room on its disk (database or disk is full)" in told
    assert told.endswith("Make room there")


def test_sqlites_empty_words_are_left_out() -> None:
    told = of_sqlite(apsw.FullError("not an error"))
    assert told.startswith("callboard.db found no more room on its disk; nothing was")


@pytest.mark.parametrize(
    ("error", "cure"),
    [
        (apsw.IOError("disk I/O error"), "Mend the disk"),
        (apsw.NoMemError("out of memory"), "Give this machine more"),
        (apsw.InterruptError("interrupted"), "Try again"),
    ],
)
def test_every_other_trouble_has_its_own_cure(error: apsw.Error, cure: str) -> None:
    told = of_sqlite(error)
    assert f"({error}); nothing was written, and what was" in told
    assert cure in told


def test_the_outermost_folder_that_is_closed_is_named(tmp_path: Path) -> None:
    assert barrier(tmp_path / "callboard.db") == tmp_path
    gone = tmp_path / "gone"
    assert barrier(gone / "further" / "callboard.db") == gone


@pytest.mark.parametrize(
    "error", [REMOVED, CorruptError("/srv/off/d.db is damaged; restore a copy")]
)
def test_clients_are_told_neither_paths_nor_cures(error: StoreError) -> None:
    over_http = translate(error)
    assert over_http.text == "the message cannot be stored now; try again later"
    assert (over_http.status, over_http.retry_after) == (503, 5.0)
    over_websocket = fault_of(error)
    assert over_websocket.code == "unavailable"
    assert "/srv" not in str(vars(over_websocket))


def test_who_asks_without_end_fills_no_log() -> None:
    stream = io.StringIO()
    with writing(stream=stream, shape="json"):
        for _ in range(500):
            log_refusal({"type": "http"}, ApiError(401, "no key", code="no_key"))
    assert len(stream.getvalue().splitlines()) <= 61


def test_the_log_has_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ApiError) as refused:
        raise translate(REMOVED) from REMOVED
    log_refusal({"type": "http"}, refused.value)
    (line,) = caplog.records
    assert getattr(line, FIELDS)["why"] == str(REMOVED)
