"""Proves that the store on a server loses and doubles nothing when the server goes."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING

import psycopg
import pytest
import trio
import trio.testing

from runtime.errors import StoreRefusedError, StoreTooNewError, StoreUnavailableError
from runtime.postgresql.database import PostgresqlDatabase
from runtime.postgresql.migrations import (
    FORMATS,
    MIGRATIONS,
    migrate,
    oldest_of,
    version_of,
)
from runtime.postgresql.server import (
    TIMELINE,
    PostgresqlOptions,
    PostgresqlServer,
    rows_of,
)
from runtime.postgresql.store import PostgresqlStore
from tests.fakes.store.cut_proxy import CutProxy
from tests.support.store.engines import names_unsettled
from tests.support.store.postgresql import emptied, shared, shared_process, use_standby
from tests.support.store.rows import accepting, turn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from runtime.postgresql.server import Db
    from tests.fakes.store.cut_proxy import Lost

QUICK = PostgresqlOptions(away_for=0.5, connect_within=2)


@pytest.fixture
def server() -> PostgresqlServer:
    return emptied()


@pytest.fixture
def proxy(server: PostgresqlServer) -> Iterator[CutProxy]:
    del server
    proxy = CutProxy(shared_process().folder / ".s.PGSQL.5432")
    yield proxy
    proxy.close()


@pytest.fixture
async def store(proxy: CutProxy) -> AsyncGenerator[PostgresqlStore]:
    dsn = f"host=127.0.0.1 port={proxy.port} user=callboard dbname=callboard"
    store = await PostgresqlStore.open(PostgresqlServer(dsn, QUICK))
    yield store
    await store.aclose()


async def write(store: PostgresqlStore, stream: str, count: int) -> None:
    """Commit that many turns of a stream, one after the other."""
    for number in range(count):
        await store.commit(turn(number, stream))


@pytest.mark.parametrize("losing", ["answer", "request"])
async def test_a_commit_whose_answer_is_lost_is_stored_once(
    store: PostgresqlStore, proxy: CutProxy, losing: Lost
) -> None:
    for number in range(3):
        proxy.losing = losing
        # A turn stored a second time would be refused: its ids are taken.
        await store.commit(turn(number, "a"))
    assert proxy.lost == 3
    assert len(await store.read("a")) == 3
    assert store.healthy


@pytest.mark.parametrize("losing", ["answer", "request"])
async def test_who_loses_the_answer_by_which_it_goes_on_is_not_fenced_by_itself(
    store: PostgresqlStore, proxy: CutProxy, losing: Lost
) -> None:
    await store.commit(accepting("m1"))
    proxy.word = b"UPDATE writer SET fence"
    for number in (2, 3):
        proxy.losing = losing
        proxy.cut()
        await store.commit(accepting(f"m{number}"))
    assert proxy.lost == 2
    assert await names_unsettled(store) == ["m1", "m2", "m3"]
    assert store.healthy


async def test_neighbours_of_a_lost_commit_are_stored_once(
    store: PostgresqlStore, proxy: CutProxy
) -> None:
    async with trio.open_nursery() as nursery:
        for stream in "abcdefgh":
            nursery.start_soon(write, store, stream, 10)
        for losing in ("answer", "request") * 4:
            while proxy.losing != "nothing":
                await trio.lowlevel.checkpoint()
            proxy.losing = losing
    assert [len(await store.read(stream)) for stream in "abcdefgh"] == [10] * 8


async def test_connections_that_are_cut_at_rest_are_made_anew(
    store: PostgresqlStore, proxy: CutProxy
) -> None:
    await store.commit(accepting("m1"))
    proxy.cut()
    assert await names_unsettled(store) == ["m1"]
    proxy.cut()
    await store.commit(accepting("m2"))
    assert store.healthy


async def test_a_second_process_is_refused_and_told_why(
    store: PostgresqlStore, server: PostgresqlServer
) -> None:
    with pytest.raises(StoreUnavailableError, match="in use by another Callboard"):
        await PostgresqlStore.open(server)
    await store.commit(accepting("m1"))


async def test_who_was_stopped_and_goes_on_cannot_commit(
    store: PostgresqlStore, proxy: CutProxy, server: PostgresqlServer
) -> None:
    told: list[StoreUnavailableError] = []
    store.when_broken(told.append)
    proxy.cut()  # as the server does with the connections of a process that is stopped
    second = await PostgresqlStore.open(server)
    await second.commit(accepting("m2"))
    with pytest.raises(StoreUnavailableError, match=r"taken .* over"):
        await store.commit(accepting("m1"))
    assert store.needs_reopening
    while not told:
        await trio.lowlevel.checkpoint()
    assert await names_unsettled(second) == ["m2"]
    await second.aclose()


async def test_a_fence_that_was_raised_refuses_a_living_connection(
    store: PostgresqlStore, server: PostgresqlServer
) -> None:
    with server.connect("tests") as db:
        db.execute("UPDATE writer SET fence = fence + 1")
    with pytest.raises(StoreUnavailableError, match=r"taken .* over"):
        await store.commit(accepting("m1"))
    with server.connect("tests") as db:
        assert db.execute("SELECT count(*) FROM inbox").fetchall() == [(0,)]


async def test_a_server_that_takes_no_writes_says_so_and_is_healthy_again(
    store: PostgresqlStore, server: PostgresqlServer
) -> None:
    with server.connect("tests") as db:
        db.execute("ALTER DATABASE callboard SET default_transaction_read_only = on")
    end_sessions(server)
    try:
        with pytest.raises(StoreUnavailableError, match="takes no writes"):
            await store.commit(accepting("m1"))
        assert not store.healthy
    finally:
        with server.connect("tests") as db:
            db.execute("SET default_transaction_read_only = off")
            db.execute("ALTER DATABASE callboard RESET default_transaction_read_only")
    end_sessions(server)
    await store.probe()
    assert store.healthy
    await store.commit(accepting("m1"))


WAITING = """SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'
    AND starts_with(application_name, 'callboard writer') AND pid <> ALL (%s)"""


@pytest.mark.parametrize("times", [1, 2])
async def test_a_wait_for_a_standby_that_is_cancelled_acknowledges_nothing(
    store: PostgresqlStore, server: PostgresqlServer, times: int
) -> None:
    stored: list[str] = []
    released = trio.Event()

    async def commit() -> None:
        while not released.is_set():
            await store.commit(accepting(f"m{len(stored)}"))
            stored.append(f"m{len(stored)}")

    with server.connect("tests") as db, contextlib.ExitStack() as stack:
        stack.callback(use_standby, db, "")
        use_standby(db, "nobody")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(commit)
            seen = [await waiting(db, [])]
            before = len(stored)
            for _ in range(times):
                db.execute("SELECT pg_cancel_backend(%s)", (seen[-1],))
                seen.append(await waiting(db, seen))  # it is asked for once more
            assert len(stored) == before
            released.set()
            use_standby(db, "")
    assert await names_unsettled(store) == stored
    assert store.healthy


class Commits:
    """Commits one message after the other."""

    def __init__(self, store: PostgresqlStore) -> None:
        self.store = store
        self.stored: list[str] = []
        self.refused: list[str] = []
        self._names = (f"m{number}" for number in itertools.count())

    async def one(self) -> None:
        name = next(self._names)
        try:
            await self.store.commit(accepting(name))
        except StoreUnavailableError as error:
            self.refused.append(str(error))
        else:
            self.stored.append(name)


async def test_while_the_standby_is_away_people_are_told_and_nothing_is_acknowledged(
    store: PostgresqlStore, server: PostgresqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.postgresql.threads.LET_GO_WITHIN", 0.0)
    commits = Commits(store)
    with server.connect("tests") as db, contextlib.ExitStack() as stack:
        stack.callback(use_standby, db, "")
        use_standby(db, "nobody")
        async with trio.open_nursery() as nursery:
            while store.healthy:
                nursery.start_soon(commits.one)
                await trio.testing.wait_all_tasks_blocked(0.05)
            while not commits.refused:
                await commits.one()
            assert "waits for its synchronous standby" in commits.refused[0]
            with pytest.raises(StoreUnavailableError, match="synchronous standby"):
                await PostgresqlStore.open(server)
            before = len(commits.stored)
            use_standby(db, "")
        assert len(commits.stored) > before  # it was in doubt
    assert sorted(await names_unsettled(store)) == sorted(commits.stored)
    await store.probe()
    assert store.healthy


async def waiting(db: Db, not_these: list[int]) -> int:
    """Wait until a session of the writer waits for a standby; gives its number."""
    with trio.fail_after(30):
        while not (found := db.execute(WAITING, (not_these,)).fetchone()):
            await trio.lowlevel.checkpoint()
    return int(found[0])


def end_sessions(server: PostgresqlServer) -> None:
    """End all sessions of the store."""
    with server.connect("tests") as db:
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name LIKE 'callboard%'"
        )


def database(name: str, sql: str = "", encoding: str = "UTF8") -> PostgresqlServer:
    """Make a database, and do something in it."""
    process = shared_process()
    with psycopg.connect(process.dsn("postgres"), autocommit=True) as db:
        db.execute(f"DROP DATABASE IF EXISTS {name}".encode())
        made = f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}'"
        db.execute(made.encode())
    with psycopg.connect(process.dsn(name), autocommit=True) as db:
        db.execute(sql.encode() or b"SELECT 1")
    return PostgresqlServer(process.dsn(name))


async def test_another_programs_tables_are_not_touched() -> None:
    server = database("foreign_one", "CREATE TABLE record(theirs integer)")
    with pytest.raises(StoreRefusedError, match="'record' of another program"):
        await PostgresqlStore.open(server)


NEWEST = len(MIGRATIONS)
NEWER = (*MIGRATIONS, "ALTER TABLE inbox ADD COLUMN colour text DEFAULT 'red'")


async def test_a_newer_releases_database_is_refused_if_this_one_cannot_use_it() -> None:
    server = database("newer_one")
    with server.connect("tests") as db:
        migrate(db, server.name, NEWER, oldest=NEWEST + 1)
        with pytest.raises(StoreTooNewError, match="newer release"):
            await PostgresqlStore.open(server)


async def test_what_a_newer_release_has_added_is_let_alone() -> None:
    server = database("added_one")
    with server.connect("tests") as db:
        migrate(db, server.name)
        store = await PostgresqlStore.open(server)
        await store.commit(accepting("first"))
        migrate(db, server.name, NEWER)
        await store.commit(accepting("second"))
        await store.aclose()
        store = await PostgresqlStore.open(server)
        assert [row.id for row in await store.unsettled()] == ["first", "second"]
        await store.aclose()
        colours = db.execute("SELECT colour FROM inbox").fetchall()
        assert colours == [("red",), ("red",)]
        assert version_of(db) == NEWEST + 1
    outside = PostgresqlDatabase(server)
    assert outside.is_current()
    with pytest.raises(StoreTooNewError, match="overlook nothing"):
        outside.read_whole().__enter__()


async def test_tables_say_whom_they_suit() -> None:
    with shared().connect("tests") as db:
        tables = FORMATS.tables
        assert (version_of(db), oldest_of(db)) == (tables.version, tables.oldest)


FEW = (
    """CREATE TABLE record(number integer);
    CREATE TABLE callboard_schema(version integer, oldest integer);
    INSERT INTO callboard_schema VALUES (0)""",
)
"""Few tables: of the news of many, the server tells all connections at once."""


def migrate_alone(server: PostgresqlServer) -> None:
    with server.connect("tests") as db:
        migrate(db, server.name, FEW)


async def test_several_may_be_the_first_to_open_an_empty_database() -> None:
    server = database("first_one")
    waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    async with trio.open_nursery() as nursery:
        with server.connect("tests") as db, db.transaction():
            migrate(db, server.name, FEW)
            nursery.start_soon(trio.to_thread.run_sync, migrate_alone, server)
            while not db.execute(waiting).fetchone():
                await trio.lowlevel.checkpoint()


async def test_a_step_that_fails_changes_nothing() -> None:
    server = database("halfway_one")
    with server.connect("tests") as db:
        with pytest.raises(psycopg.Error):
            migrate(db, server.name, (*MIGRATIONS, "SELECT no_such_thing()"))
        assert db.execute("SELECT to_regclass('inbox')").fetchall() == [(None,)]
        migrate(db, server.name)


async def test_a_database_that_stores_no_unicode_is_refused() -> None:
    server = database("ascii_one", encoding="SQL_ASCII")
    with pytest.raises(StoreRefusedError, match="ENCODING 'UTF8'"):
        await PostgresqlStore.open(server)


async def test_who_is_not_let_in_is_told_without_the_password() -> None:
    process = shared_process()
    dsn = f"postgresql://nobody:hunter2@/missing?host={process.folder}"
    with pytest.raises(StoreUnavailableError) as caught:
        await PostgresqlStore.open(PostgresqlServer(dsn))
    assert "hunter2" not in str(caught.value)
    with pytest.raises(StoreRefusedError) as refused:
        PostgresqlServer("postgresql://me:hunter2@host:port/db?what=ever")
    assert "hunter2" not in str(refused.value)


def test_who_goes_back_to_an_old_primary_is_told_to_restart() -> None:
    emptied()
    dsn = shared_process().dsn("callboard")
    server = PostgresqlServer(dsn)
    with server.connect("tests") as db:
        ((name, number),) = rows_of(db, TIMELINE)
    server._newest[name] = number + 1
    with pytest.raises(StoreUnavailableError, match="restart Callboard"):
        server.connect("tests")
    PostgresqlServer(dsn).connect("tests").close()  # as after a restart
