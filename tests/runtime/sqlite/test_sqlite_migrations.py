"""Proves that a database of an earlier release is taken over without a loss."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
import pytest

from runtime.errors import CorruptError, DuplicateError
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.migrations import MIGRATIONS, back_up
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Claim, Commit, Settle
from tests.support.store.rows import NOW, accepting, events, heard, saying

STATES_1 = ("accepted", "replied", "dropped", "cancelled", "dead")
RECEIVED_1 = ("pending", "sent", "unknown", "dead")

INBOX_1 = """number, id, connector, platform_id, part, epoch, stream, body,
    accepted_at, state, reason, settled_at"""
OUTBOX_1 = """number, id, connector, chat, correlation_id, part, epoch, body,
    enqueued_at, state, receipt, attempts, settled_at"""
JOURNAL_1 = "number, stream, sequence, part, epoch, kind, body, at"

Rows = list[tuple[Any, ...]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "callboard.db"


def make_version_1(path: Path) -> None:
    """Make a database as the first release did, with rows in every state."""
    db = SqliteFile(path, migrations=MIGRATIONS[:1]).open_writer()
    with db:
        for number, state in enumerate((*STATES_1, "replied"), 1):
            settled_at = None if state == "accepted" else NOW + number
            given = (f"m{number}", f"p{number}", b"\x00", NOW, state, "why", settled_at)
            db.execute(
                """INSERT INTO inbox(id, connector, platform_id, part, epoch, stream,
                    body, accepted_at, state, reason, settled_at)
                    VALUES (?, 'cli', ?, 7, 3, 'cli/room', ?, ?, ?, ?, ?)""",
                given,
            )
        for number, state in enumerate((*RECEIVED_1, "sent"), 1):
            settled_at = None if state == "pending" else NOW + number
            row = (f"d{number}", b"\xff", NOW, state, "42", number, settled_at)
            db.execute(
                """INSERT INTO outbox(id, connector, chat, correlation_id, part, epoch,
                    body, enqueued_at, state, receipt, attempts, settled_at)
                    VALUES (?, 'cli', 'room', 'm2', 7, 3, ?, ?, ?, ?, ?, ?)""",
                row,
            )
        db.execute(
            "INSERT INTO journal VALUES (1, 'a', 1, 7, 3, 'said', x'00', ?)", (NOW,)
        )
        # The newest of each is pruned: its number must stay used.
        db.execute("DELETE FROM inbox WHERE number = 6")
        db.execute("DELETE FROM outbox WHERE number = 5")
    db.close()


def rows(path: Path, sql: str) -> Rows:
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    found = list(db.execute(sql))
    db.close()
    return found


def all_rows(path: Path) -> tuple[Rows, ...]:
    """Give everything that version 1 knew."""
    return (
        rows(path, f"SELECT {INBOX_1} FROM inbox ORDER BY number"),  # noqa: S608  names
        rows(path, f"SELECT {OUTBOX_1} FROM outbox ORDER BY number"),  # noqa: S608  same
        rows(path, f"SELECT {JOURNAL_1} FROM journal ORDER BY number"),  # noqa: S608  same
    )


async def migrate(path: Path) -> None:
    await (await SqliteStore.open(SqliteFile(path))).aclose()


async def test_nothing_of_version_1_is_lost(path: Path) -> None:
    make_version_1(path)
    before = all_rows(path)
    assert [len(table) for table in before] == [5, 4, 1]
    await migrate(path)
    assert all_rows(path) == before
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert rows(path, "SELECT DISTINCT priority, attempts, due_at FROM inbox") == [
        (5, 0, 0.0)
    ]


async def test_version_1_is_copied_before_it_is_changed(path: Path) -> None:
    make_version_1(path)
    before = all_rows(path)
    await migrate(path)
    copy = path.with_name("callboard.db.backup-v1")
    assert all_rows(copy) == before
    assert rows(copy, "PRAGMA user_version") == [(1,)]


async def test_a_damaged_version_1_is_left_as_it_is(path: Path) -> None:
    make_version_1(path)
    db = apsw.Connection(str(path))
    db.pragma("ignore_check_constraints", value=True)
    db.execute("INSERT INTO journal VALUES (9, 'a', 2, 999, 3, 'said', x'00', 0.0)")
    db.close()
    with pytest.raises(CorruptError, match=f"{path} is damaged .*CHECK constraint"):
        await SqliteStore.open(SqliteFile(path))
    assert rows(path, "PRAGMA user_version") == [(1,)]
    assert not list(path.parent.glob("*backup*"))


def test_the_copy_and_its_name_are_on_the_disk_before_a_change(path: Path) -> None:
    make_version_1(path)
    calls: list[str] = []

    def listen(_frame: FrameType, event: str, callee: Any) -> None:
        if event == "c_call" and callee.__name__ in {"fsync", "rename", "replace"}:
            calls.append(callee.__name__)

    db = apsw.Connection(str(path))
    sys.setprofile(listen)
    back_up(db, path, path.with_name("copy"))
    sys.setprofile(None)
    db.close()
    assert calls == ["fsync", "replace", "fsync"]


async def test_numbers_go_on_where_version_1_stopped(path: Path) -> None:
    make_version_1(path)
    store = await SqliteStore.open(SqliteFile(path))
    committed = await store.commit(
        Commit(
            at=NOW,
            accepts=(heard("new"),),
            appends=(events("a", 1),),
            deliveries=(saying("new"),),
        )
    )
    assert (committed.accepted, committed.enqueued) == ((7,), (6,))
    assert committed.sequences == (2,)
    await store.aclose()


async def test_numbers_go_on_also_when_all_rows_were_pruned(path: Path) -> None:
    make_version_1(path)
    db = apsw.Connection(str(path))
    db.execute("DELETE FROM inbox; DELETE FROM outbox")
    db.close()
    store = await SqliteStore.open(SqliteFile(path))
    assert (await store.commit(accepting("new"))).accepted == (7,)
    await store.aclose()


async def test_what_was_open_in_version_1_can_be_worked_on(path: Path) -> None:
    make_version_1(path)
    store = await SqliteStore.open(SqliteFile(path))
    with pytest.raises(DuplicateError):
        await store.commit(Commit(at=NOW, accepts=(heard("other", platform_id="p5"),)))
    (open_message,) = await store.unsettled()
    (open_delivery,) = await store.undelivered("cli")
    assert (open_message.id, open_message.state) == ("m1", "accepted")
    assert (open_delivery.id, open_delivery.attempts) == ("d1", 1)
    await store.commit(Commit(at=NOW, claims=(Claim("m1", 1),)))
    await store.commit(Commit(at=NOW, settles=(Settle("m1", "replied"),)))
    answered = await store.answered("cli", "p2")
    assert answered is not None
    assert [row.id for row in answered.deliveries] == ["d1", "d2", "d3", "d4"]
    await store.aclose()


def make_version_2(path: Path) -> None:
    """Make a database with the steps of one message that is there, and one not."""
    make_version_1(path)
    db = SqliteFile(path, migrations=MIGRATIONS[:2]).open_writer()
    for stream, kind in (
        ("anna/cli/room//zoe", "exchanged"),
        ("anna/cli/room//zoe/m2", "round"),
        ("anna/cli/room//zoe/m2", "tool"),
        ("anna/cli/room//zoe/gone", "round"),
    ):
        db.execute(
            """INSERT INTO journal(stream, sequence, part, epoch, kind, body, at)
                SELECT ?1, 1 + count(*), 7, 3, ?2, x'', ?3 FROM journal
                WHERE stream = ?1""",
            (stream, kind, NOW),
        )
    db.close()


async def test_steps_of_version_2_are_forgotten_with_their_message(path: Path) -> None:
    make_version_2(path)
    store = await SqliteStore.open(SqliteFile(path))
    assert await store.read("anna/cli/room//zoe/gone") == ()
    assert len(await store.read("anna/cli/room//zoe/m2")) == 2
    assert (await store.prune(NOW + 100)).events == 2
    assert await store.read("anna/cli/room//zoe/m2") == ()
    assert len(await store.read("anna/cli/room//zoe")) == 1
    assert len(await store.read("a")) == 1
    await store.aclose()


async def test_people_see_jobs_with_their_status(path: Path) -> None:
    make_version_1(path)
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(accepting("m7"))
    await store.commit(Commit(at=NOW + 1, claims=(Claim("m7", 2),)))
    await store.aclose()
    assert rows(path, "SELECT id, status FROM jobs ORDER BY created_at, id") == [
        ("m1", "pending"),
        ("m2", "completed"),
        ("m3", "cancelled"),
        ("m4", "cancelled"),
        ("m5", "failed"),
        ("m7", "running"),
    ]
    assert rows(path, "SELECT * FROM jobs WHERE id IN ('m5', 'm7')") == [
        ("m5", "failed", 5, 0, NOW, None, 0.0, NOW + 5, "why", "cli"),
        ("m7", "running", 5, 2, NOW, NOW + 1, 0.0, None, "", "cli"),
    ]


async def test_every_table_checks_the_types_of_its_columns(path: Path) -> None:
    await migrate(path)
    tables = rows(
        path,
        "SELECT name, strict FROM pragma_table_list"
        " WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    )
    assert {name for name, _ in tables} == {
        "entry",
        "fact",
        "fact_scope",
        "fact_vector",
        "inbox",
        "journal",
        "outbox",
        "probe",
        "record",
        "snapshot",
    }
    assert all(strict for _, strict in tables)
