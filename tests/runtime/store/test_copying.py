"""Proves that `callboard store copy` moves all rows, both ways, and damages nothing."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import contextlib
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner

from connectors.commands.store import command
from runtime.errors import StoreUnavailableError
from runtime.postgresql.database import PostgresqlDatabase
from runtime.postgresql.server import PostgresqlServer
from runtime.postgresql.store import PostgresqlStore
from runtime.sql.database import READ
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile, SqliteOptions
from runtime.sqlite.store import SqliteStore
from runtime.store.copying import TABLES
from runtime.store.database import Decide
from runtime.store.facts import FactSearch, PutVector
from runtime.store.port import Store
from runtime.store.rows import Commit, Entry
from tests.support.store.postgresql import emptied, shared_process
from tests.support.store.rows import (
    NOW,
    accepting,
    change_facts,
    enqueueing,
    noting,
    remembering,
    summing_up,
    turn,
)

DSN = "CALLBOARD_TEST_DSN"
SCOPES = next(each for each in TABLES if each.name == "fact_scope")


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> str:
    """Give the name of an empty database, as the command line takes it."""
    emptied()
    monkeypatch.setenv(DSN, shared_process().dsn("callboard"))
    return f"env:{DSN}"


def copy(source: str, target: str) -> str:
    """Run the command; give what it says, and fail if it fails."""
    result = CliRunner().invoke(command, ["copy", source, target])
    assert result.exception is None, result.output
    return result.output


async def fill(store: Store) -> None:
    """Write rows of all kinds, with characters and gaps that are easily lost."""
    for number in range(3):
        await store.commit(turn(number, "a\x00\x01b"))
    await store.prune(NOW + 1, 1)
    await store.commit(accepting("m1", "m\\tab\n"))
    await store.commit(enqueueing("d1"))
    await store.commit(Commit(at=NOW, snapshots=(summing_up("a\x00\x01b", 2),)))
    await store.commit(Commit(at=NOW, records=(noting("r1"), noting("r2"))))
    await store.commit(Commit(at=NOW, records=(noting("r1"),)))
    entry = Entry(kind="person", id="p\\1", owner="o", part=255, body=b"\x00\xff\\")
    await store.commit(Commit(at=NOW, entries=(entry,)))
    await change_facts(store, remembering("f1", words=("tea",)))
    await change_facts(store, remembering("f2", words=("té", "milk"), key="drink"))
    vector = PutVector(
        agent="bot", scope="person:cli/anna", id="f1", space="s", vector=b"\x00\x7f\x80"
    )
    await change_facts(store, vector)


async def told(store: Store) -> tuple[object, ...]:
    """Read what a store holds."""
    search = FactSearch(
        agent="bot",
        scopes=("person:cli/anna",),
        kinds=("fact",),
        words=("te", "té"),
        space="s",
        vector=b"\x01\x7f\x80",
        now=NOW,
    )
    found = await store.facts.search(search)
    facts = sorted(found.facts, key=lambda each: each.fact.number)
    return (
        await store.read("a\x00\x01b"),
        await store.unsettled(),
        await store.undelivered(),
        await store.records("audit"),
        await store.entries("person"),
        await store.snapshot("a\x00\x01b"),
        await store.counts(),
        [each.fact for each in facts],
        found.counts,
    )


async def test_rows_go_to_a_server_and_back_as_they_were(
    address: str, tmp_path: Path
) -> None:
    first, last = tmp_path / "first.db", tmp_path / "folder" / "last.db"
    store = await SqliteStore.open(SqliteFile(first), epoch=7)
    await fill(store)
    before = await told(store)
    await store.aclose()

    assert "each as it was" in copy(str(first), address)
    on_server = await PostgresqlStore.open(emptied_no_more(), epoch=7)
    assert await told(on_server) == before
    ((number,)) = (await on_server.commit(accepting("m9"))).accepted
    assert number == 6  # as it would have been in the file
    now = await told(on_server)
    await on_server.aclose()

    copy(address, str(last))
    store = await SqliteStore.open(SqliteFile(last), epoch=7)
    assert await told(store) == now
    assert (await store.commit(accepting("m10"))).accepted == (7,)
    await store.aclose()
    with SqliteDatabase(last).inspect() as rows:
        assert len(list(rows.journal())) == 3


def emptied_no_more() -> PostgresqlServer:
    """Give the database of this process's tests, as it is."""
    return PostgresqlServer(shared_process().dsn("callboard"))


async def test_rows_are_found_changed_and_removed_alike_on_both(
    address: str, tmp_path: Path
) -> None:
    path = tmp_path / "callboard.db"
    store = await SqliteStore.open(SqliteFile(path))
    await fill(store)
    await store.aclose()
    copy(str(path), address)
    server = emptied_no_more()
    both = (SqliteDatabase(path), PostgresqlDatabase(server))
    found = [sorted(map(repr, each.every_row())) for each in both]
    assert found[0] == found[1]
    assert len({each.table for each in both[1].every_row()}) == len(READ)
    for body in (b"{}", None):
        assert len({each.rewrite(always(body)) for each in both}) == 1
        rows = [list(each.every_row()) for each in both]
        assert sorted(map(repr, rows[0])) == sorted(map(repr, rows[1]))
        left = [each.body for each in rows[0] if each.table != "fact"]
        assert left == [body] * len(left)
        assert bool(rows[0]) == (body is not None)
    for each in both:  # a scope has the account of whose it is as its name
        with each.read_whole() as whole:
            assert list(whole.rows(SCOPES)) == []


@pytest.mark.usefixtures("address")
async def test_who_reads_a_table_is_named_if_it_cannot_be_written_anew() -> None:
    server = emptied_no_more()
    store = await PostgresqlStore.open(server)
    await store.commit(accepting("first"))
    await store.aclose()
    with contextlib.closing(server.connect("tests")) as db:
        db.execute("BEGIN")
        db.execute("SELECT FROM journal")
        with pytest.raises(StoreUnavailableError, match="journal could not be"):
            PostgresqlDatabase(server).rewrite(always(None))
    assert list(PostgresqlDatabase(server).every_row()) == []


async def test_who_reads_an_old_state_of_a_file_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patience = SqliteOptions(busy_timeout=0.01)
    monkeypatch.setattr("runtime.sqlite.database.PATIENCE", patience)
    path = tmp_path / "callboard.db"
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(accepting("first"))
    await store.aclose()
    with contextlib.closing(apsw.Connection(str(path))) as db:
        db.execute("BEGIN")
        assert db.execute("SELECT count(*) FROM inbox").get == 1
        with pytest.raises(StoreUnavailableError, match="still has what was removed"):
            SqliteDatabase(path).rewrite(always(None))
    assert list(SqliteDatabase(path).every_row()) == []


def always(body: bytes | None) -> Decide:
    """Decide the same of each row."""
    return lambda _: body


async def test_nothing_is_written_over(address: str, tmp_path: Path) -> None:
    store = await SqliteStore.open(SqliteFile(tmp_path / "a.db"))
    await store.commit(accepting("m1"))
    await store.aclose()
    copy(str(tmp_path / "a.db"), address)
    for target in (address, str(tmp_path / "a.db")):
        result = CliRunner().invoke(command, ["copy", str(tmp_path / "a.db"), target])
        assert result.exception is not None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("postgresql://me:secret@host/db", "env:NAME"),
        ("postgresql://host/db?password=secret", "env:NAME"),
        ("env:NOT_THERE_AT_ALL", "is not set"),
    ],
)
def test_passwords_do_not_stand_in_command_lines(name: str, words: str) -> None:
    result = CliRunner().invoke(command, ["copy", name, "b.db"])
    assert result.exit_code == 2
    assert words in result.output
    assert "secret" not in result.output


async def test_a_database_that_is_served_is_not_copied(
    address: str, tmp_path: Path
) -> None:
    store = await PostgresqlStore.open(emptied_no_more())
    result = CliRunner().invoke(command, ["copy", address, str(tmp_path / "a.db")])
    await store.aclose()
    assert "in use by another" in str(result.exception)
    assert not SqliteDatabase(tmp_path / "a.db").exists()
    assert PostgresqlDatabase(emptied_no_more()).exists()
