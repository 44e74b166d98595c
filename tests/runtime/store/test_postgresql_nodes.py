"""Nodes on a real server: who joins, who takes over, and what is refused then."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pytest
import trio
import trio.testing
from click.testing import CliRunner
from msgspec import structs

from connectors.commands.nodes import command
from runtime.errors import (
    FencedError,
    StoreRefusedError,
    StoreTooNewError,
    StoreUnavailableError,
)
from runtime.nodes.hints import Hint, HintsShown, RowsWritten, Shown, encode
from runtime.nodes.membership import MembershipPlan, TakeOver
from runtime.nodes.rows import COMPANY, Fence, Format, Formats
from runtime.postgresql.hints import HintListener, HintSender
from runtime.postgresql.migrations import FORMATS, MIGRATIONS, migrate, version_of
from runtime.postgresql.nodes import NodeCard, NodeDesk, NodesFromOutside, NodesLook
from runtime.postgresql.server import NOTIFY, PostgresqlOptions, PostgresqlServer
from runtime.postgresql.store import PostgresqlStore
from runtime.postgresql.threads import claim
from runtime.store.rows import PARTS, Commit, Entry
from tests.support.store.postgresql import emptied, shared_process, use_standby
from tests.support.store.rows import accepting, events

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator
    from pathlib import Path

    from runtime.nodes.rows import Member
    from runtime.postgresql.server import Db

CARD = NodeCard(release="1", formats=FORMATS, address="10.0.0.5", doors={"http": 8080})


class Life:
    """A node that has joined."""

    def __init__(self, server: PostgresqlServer, name: str) -> None:
        self.name = name
        self.desk = NodeDesk(server, name, 5.0)
        self.member: Member = self.desk.join(CARD, b"{}")

    def plan(
        self, *, adopt: bool = False, dead: Life | None = None
    ) -> tuple[MembershipPlan, NodesLook]:
        """Make a plan that takes the company."""
        look = self.desk.beat()
        over = None
        if dead is not None:
            row = next(each for each in look.nodes if each.id == dead.name)
            over = TakeOver(row, {COMPANY: self.name})
        mine = {COMPANY: self.name} if adopt else {}
        return MembershipPlan({}, (), {}, over, mine, {}), look

    def seat(self) -> Fence:
        """Say under which fence and lease this node writes the company's rows."""
        lease = next(each for each in self.desk.beat().leases if each.name == COMPANY)
        assert lease.owner == self.name
        return Fence(self.name, self.member.fence, 0, ((COMPANY, lease.epoch),))


@contextmanager
def nodes(*names: str) -> Generator[list[Life]]:
    """Have nodes join; the first one has the company."""
    server = emptied()
    with ExitStack() as stack:
        lives = [Life(server, name) for name in names]
        for life in lives:
            stack.callback(life.desk.drop)
        lives[0].desk.carry_out(*lives[0].plan(adopt=True))
        yield lives


async def opened(
    seat: Fence, leases: Callable[[Commit], dict[str, int]] | None = None
) -> PostgresqlStore:
    """Open the store of the node that runs the company."""

    def concerns_others(commit: Commit) -> tuple[str, ...]:
        return ("event",) if commit.appends else ()

    options = PostgresqlOptions(
        seat=seat, away_for=0.5, leases=leases, concerns_others=concerns_others
    )
    server = PostgresqlServer(shared_process().dsn("callboard"), options)
    return await PostgresqlStore.open(server)


async def test_the_company_goes_from_node_to_node_and_keeps_its_rows() -> None:
    with nodes("a", "b") as (a, b):
        store = await opened(a.seat())
        await store.commit(accepting("first"))
        await store.aclose()
        a.desk.give({COMPANY: "b"})
        store = await opened(b.seat())
        await store.commit(accepting("second"))
        assert [row.id for row in await store.unsettled()] == ["first", "second"]
        await store.aclose()


async def test_a_lease_comes_and_goes_while_the_node_writes_for_another() -> None:
    with nodes("a", "b") as (a, b), beside() as db, ExitStack() as stack:
        stack.callback(db.execute, "DELETE FROM lease WHERE name = 'scheduler'")
        db.execute("INSERT INTO lease(name) VALUES ('scheduler')")
        store = await opened(a.seat())
        await store.commit(accepting("first"))
        written = "SELECT fence, last_group FROM writer WHERE node = 'a'"
        before = db.execute(written).fetchall()
        plan, look = a.plan()
        a.desk.carry_out(structs.replace(plan, adopt={"scheduler": "a"}), look)
        owners = "SELECT name, owner FROM lease WHERE owner <> '' ORDER BY name"
        assert db.execute(owners).fetchall() == [(COMPANY, "a"), ("scheduler", "a")]
        a.desk.give({"scheduler": "b"})
        assert db.execute(owners).fetchall() == [(COMPANY, "a"), ("scheduler", "b")]
        # By these it would be told later what became of a commit.
        assert db.execute(written).fetchall() == before
        await store.commit(accepting("second"))
        await store.aclose()
        assert b.desk.carry_out(*b.plan(dead=a))
        a.desk.drop()  # its session was ended
        with pytest.raises(FencedError):
            a.desk.carry_out(structs.replace(plan, adopt={"scheduler": "a"}), look)


def test_there_is_a_lease_for_each_connector_of_any_node_and_none_for_old_ones() -> (
    None
):
    query = "SELECT name FROM lease WHERE name LIKE 'account/%' ORDER BY name"
    with nodes("a", "b") as (a, b), beside() as db:
        a.desk.publish(CARD, b"", ["account/two", "account/one"])
        plan, look = a.plan()
        a.desk.carry_out(structs.replace(plan, adopt={"account/one": "a"}), look)
        b.desk.publish(CARD, b"", ["account/two", "account/three"])
        found = ["account/one", "account/three", "account/two"]
        assert [name for (name,) in db.execute(query)] == found
        b.desk.join(CARD, b"", ["account/two"])
        assert [name for (name,) in db.execute(query)] == found, "a may need them"
        b.desk.leave()
        a.desk.join(CARD, b"", ["account/one"])
        assert [name for (name,) in db.execute(query)] == ["account/one"]
        assert [x.owner for x in a.desk.beat().leases if x.name == "account/one"] == [
            "a"
        ]


async def test_what_is_written_under_a_lease_that_was_given_away_is_refused() -> None:
    with nodes("a", "b") as (a, b):
        store = await opened(a.seat())
        await store.commit(accepting("first"))
        a.desk.give({COMPANY: "b"})
        with pytest.raises(StoreUnavailableError, match="taken"):
            await store.commit(accepting("late"))
        await store.aclose()
        assert b.seat().leases


async def test_who_was_taken_over_from_writes_nothing_more() -> None:
    with nodes("a", "b") as (a, b):
        store = await opened(a.seat())
        await store.commit(accepting("first"))
        assert b.desk.carry_out(*b.plan(dead=a))
        with pytest.raises(FencedError):
            await store.commit(accepting("late"))
        assert store.needs_reopening
        await store.aclose()
        with pytest.raises((FencedError, StoreUnavailableError)):
            a.desk.beat()
        store = await opened(b.seat())
        assert [row.id for row in await store.unsettled()] == ["first"]
        await store.aclose()


async def test_a_commit_under_an_older_epoch_is_refused(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with nodes("a") as (a,):
        seat = a.seat()
        store = await opened(seat)
        with beside() as db:
            db.execute("UPDATE lease SET epoch = epoch + 1")
        with pytest.raises(StoreUnavailableError, match="taken"):
            await store.commit(accepting("late"))
        await store.aclose()
        assert await is_refused(seat)
    told = {(x.levelname, x.exc_info) for x in caplog.records}
    assert told == {("WARNING", None)}, "a take-over is no mistake in the program"


@asynccontextmanager
async def with_part(a: Life) -> AsyncGenerator[PostgresqlStore]:
    """Open the store of a node that has part 7 besides the company."""
    plan, look = a.plan()
    a.desk.carry_out(structs.replace(plan, adopt={"part/7": "a"}), look)
    held = {x.name: x.epoch for x in a.desk.beat().leases if x.owner == "a"}

    def leases(commit: Commit) -> dict[str, int]:
        if any(row.part != 7 for row in commit.appends):
            raise FencedError("another node's")
        return {"part/7": held["part/7"]} if commit.appends else {}

    store = await opened(a.seat(), leases)
    yield store
    await store.aclose()


MINE = Commit(at=0.0, appends=(events("mine", 0),))


async def test_a_commit_for_another_nodes_chat_is_refused_alone() -> None:
    with nodes("a") as (a,):
        async with with_part(a) as store:
            row = structs.replace(events("theirs", 0), part=8)
            refused: list[object] = []
            async with trio.open_nursery() as nursery:  # all in one group
                nursery.start_soon(store.commit, MINE)
                store.submit(Commit(at=0.0, appends=(row,)), refused.append)
                nursery.start_soon(store.commit, accepting("neighbour"))
            assert isinstance(refused[0], FencedError)
            assert [each.id for each in await store.unsettled()] == ["neighbour"]
            assert len(await store.read("mine")) == 1


async def test_nodes_look_again_at_what_concerns_them_and_at_nothing_else() -> None:
    told = "SELECT topic, version FROM change WHERE node = 'a'"
    with nodes("a") as (a,), beside() as db:
        async with with_part(a) as store:
            await store.commit(accepting("nobody's business"))
            assert db.execute(told).fetchall() == []
            await store.commit(MINE)
            assert db.execute(told).fetchall() == [("event", 1)]


async def test_a_part_that_is_another_nodes_by_now_takes_no_events() -> None:
    with nodes("a") as (a,), beside() as db:
        async with with_part(a) as store:
            db.execute("UPDATE lease SET epoch = epoch + 1 WHERE name = 'part/7'")
            await store.commit(accepting("needs no lease"))
            with pytest.raises(StoreUnavailableError, match="taken"):
                await store.commit(MINE)


@contextmanager
def beside() -> Generator[Db]:
    """Open a connection beside all nodes."""
    with PostgresqlServer(shared_process().dsn("callboard")).connect("tests") as db:
        yield db


async def is_refused(seat: Fence) -> bool:
    """Whether nobody can open the store as that node any more."""
    try:
        store = await opened(seat)
    except StoreUnavailableError:
        return True
    await store.aclose()
    return False


async def test_a_node_that_is_alive_is_not_taken_over_from() -> None:
    with nodes("a", "b") as (a, b):
        plan, look = b.plan(dead=a)
        a.desk.beat()
        b.desk.carry_out(plan, look)
        assert a.seat().leases


def test_a_later_life_of_a_node_has_another_epoch() -> None:
    with nodes("a") as (a,):
        before = a.seat()
        a.member = a.desk.join(CARD, b"{}")
        after = a.seat()
        assert after.fence > before.fence
        assert after.leases[0][1] > before.leases[0][1]


def test_two_processes_do_not_share_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.postgresql.nodes.LET_GO_WITHIN", 0.0)
    with nodes("a"), pytest.raises(StoreRefusedError, match="runs as node 'a'"):
        Life(PostgresqlServer(shared_process().dsn("callboard")), "a")


TABLES = FORMATS.tables.version
NEXT = NodeCard("2", Formats(Format(TABLES, TABLES), Format(2, 1)))
LATER = NodeCard("3", Formats(Format(TABLES, TABLES), Format(2, 2)))
UNKNOWN = NodeCard("0")

WANTED = Format(TABLES + 1, oldest=TABLES + 1)
NARROW = NodeCard("9", structs.replace(FORMATS, tables=WANTED))
"""A release that brings the tables to what no earlier one can use."""

narrowing = partial(
    migrate,
    steps=(*MIGRATIONS, "ALTER TABLE callboard_schema ADD COLUMN narrow integer"),
    oldest=WANTED.oldest,
)


@contextmanager
def beginning(name: str) -> Generator[NodeDesk]:
    """Have a process that is to be a node."""
    server = PostgresqlServer(shared_process().dsn("callboard"))
    desk = NodeDesk(server, name, 5.0)
    try:
        yield desk
    finally:
        desk.drop()


def test_nodes_of_a_release_and_the_next_one_work_together() -> None:
    with nodes("a") as (a,), beginning("b") as b, beginning("c") as c:
        b.join(NEXT, b"{}")
        c.join(CARD, b"{}")
        a.desk.join(CARD, b"{}")
        assert {x.id: x.card.release for x in b.known().values()} == {
            "a": "1",
            "b": "2",
            "c": "1",
        }


@pytest.mark.parametrize("other", [LATER, UNKNOWN])
def test_a_node_that_others_cannot_work_beside_is_refused_and_they_stay(
    other: NodeCard,
) -> None:
    with nodes("a") as (a,), beginning("b") as b:
        before = a.seat()
        a.desk.publish(CARD if other is LATER else other, b"{}")
        told = "runs release [01] and this is [13]: they cannot work side by side"
        with pytest.raises(StoreRefusedError, match=told):
            b.join(LATER if other is LATER else CARD, b"{}")
        assert a.seat() == before
        assert [*a.desk.known()] == ["a"]


def test_of_two_that_join_at_once_and_cannot_work_together_one_stays_at_most() -> None:
    with nodes("a") as (a,), beside() as db, ThreadPoolExecutor(2) as pool:
        end(a.desk, db)
        for number in range(10):
            with beginning(f"b{number}") as b, beginning(f"c{number}") as c:
                tries = [
                    pool.submit(desk.join, card, b"{}")
                    for desk, card in ((b, CARD), (c, LATER))
                ]
                refused = [
                    x for x in tries if isinstance(x.exception(), StoreRefusedError)
                ]
                assert refused
                up = [
                    x for x in b.known().values() if x.state == "up" and x.is_connected
                ]
                assert len(up) + len(refused) == 2
                end(b, db)
                end(c, db)


async def test_tables_are_not_changed_under_a_node_that_needs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The step is only taken when the last such node has ended."""
    with nodes("a") as (a,), beginning("b") as b, beside() as db:
        monkeypatch.setattr("runtime.postgresql.nodes.migrate", narrowing)
        known = f"knows tables up to version {TABLES}, and this one needs others"
        with pytest.raises(StoreRefusedError, match=known):
            b.join(NARROW, b"{}")
        assert version_of(db) == TABLES
        end(a.desk, db)
        try:
            b.join(NARROW, b"{}")
            monkeypatch.undo()
            with pytest.raises(StoreRefusedError, match="this one knows tables"):
                a.desk.join(CARD, b"{}")
            end(b, db)
            with pytest.raises(StoreTooNewError, match="install that release again"):
                a.desk.join(CARD, b"{}")
        finally:
            back = "UPDATE callboard_schema SET version = %s, oldest = %s"
            db.execute("ALTER TABLE callboard_schema DROP COLUMN narrow")
            db.execute(back, (TABLES, FORMATS.tables.oldest))


def test_tables_are_not_changed_under_a_node_that_joined_just_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with nodes("a") as (a,), beginning("b") as b, beside() as db:
        end(a.desk, db)

        def late(db: Db, name: str, check: Callable[[], object]) -> None:
            monkeypatch.undo()
            a.desk.join(CARD, b"{}")
            narrowing(db, name, check=check)

        monkeypatch.setattr("runtime.postgresql.nodes.migrate", late)
        with pytest.raises(StoreRefusedError, match="runs release 1 and this is 9"):
            b.join(NARROW, b"{}")
        assert version_of(db) == TABLES


def end(desk: NodeDesk, db: Db) -> None:
    """End a node, and wait until the server has noticed."""
    desk.leave()
    desk.drop()
    begin = f"callboard/{desk._node}/"
    there = "SELECT FROM pg_stat_activity WHERE starts_with(application_name, %s)"
    while db.execute(there, (begin,)).fetchall():
        pass


async def test_a_node_that_was_away_does_not_come_back_beside_a_later_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runtime.postgresql.nodes.LET_GO_WITHIN", 0.0)
    with nodes("a") as (a,), beginning("b") as b:
        store = await opened(a.seat())
        await store.commit(accepting("first"))
        await store.aclose()
        seat = a.seat()
        a.desk.drop()  # cut off, and not yet taken over from
        while not has_joined(b):
            pass  # until the server has noticed
        with pytest.raises(FencedError):
            a.desk.beat()
        assert await is_refused(seat)
        with pytest.raises(StoreRefusedError, match="runs release 3 and this is 1"):
            a.desk.join(CARD, b"{}")


def has_joined(desk: NodeDesk) -> bool:
    """Whether a node of a later release could join."""
    try:
        desk.join(LATER, b"{}")
    except StoreRefusedError:
        return False
    return True


async def test_a_process_that_is_no_node_is_kept_out_by_nodes_and_keeps_them_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once = partial(
        monkeypatch.setattr, "runtime.postgresql.threads.LET_GO_WITHIN", 0.0
    )
    server = PostgresqlServer(shared_process().dsn("callboard"))
    at_once()
    with nodes("a"), pytest.raises(StoreUnavailableError, match="in use by another"):
        await PostgresqlStore.open(server)
    monkeypatch.undo()  # the server takes a moment to end a session
    alone = await PostgresqlStore.open(server)
    at_once()
    desk = NodeDesk(server, "a", 5.0)
    with pytest.raises(StoreUnavailableError, match="in use by another"):
        desk.join(CARD, b"{}")
    desk.drop()
    await alone.aclose()


def test_a_sign_of_life_does_not_wait_for_ever_for_a_standby() -> None:
    with nodes("a"), beside() as db, ExitStack() as stack:
        server = PostgresqlServer(shared_process().dsn("callboard"))
        desk = NodeDesk(server, "b", 0.5)
        stack.callback(desk.drop)
        desk.join(CARD, b"{}")
        stack.callback(use_standby, db, "")
        use_standby(db, "nobody")
        while is_alive(desk):
            pass  # until the server goes by it
        use_standby(db, "")
        while not is_alive(desk):
            pass  # until the beat that waited has ended


def is_alive(desk: NodeDesk) -> bool:
    """Whether a node can show life."""
    try:
        desk.beat()
    except StoreUnavailableError:
        return False
    return True


def test_operators_see_nodes_move_the_company_and_forget_who_is_gone() -> None:
    with nodes("a", "b") as (a, b):
        outside = NodesFromOutside(PostgresqlServer(shared_process().dsn("callboard")))
        known, leases = outside.read()
        assert [(each.id, each.is_connected) for each in known] == [
            ("a", True),
            ("b", True),
        ]
        assert known[0].card == CARD
        assert [each.name for each in leases if each.owner == "a"] == [COMPANY]
        assert len(leases) == 1 + PARTS
        assert not outside.set_drained("c", is_drained=True)
        assert outside.set_drained("a", is_drained=True)
        drained = [each.id for each in a.desk.beat().nodes if each.is_drained]
        assert drained == [x.id for x in outside.read()[0] if x.is_drained] == ["a"]
        assert not outside.remove("a")  # it has the company
        a.desk.give({COMPANY: "b"})
        a.desk.leave()
        assert outside.remove("a")
        assert b.seat().leases


def test_a_node_that_lost_its_session_stays_out_while_another_process_has_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with nodes("a") as (a,), beside() as db:
        a.desk.drop()
        claim(db, "the database")
        monkeypatch.setattr("runtime.postgresql.threads.LET_GO_WITHIN", 0.0)
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match="in use"):
                a.desk.beat()


def test_a_drained_node_stays_so_in_a_new_life_but_not_as_a_new_process() -> None:
    with nodes("a") as (a,):
        outside = NodesFromOutside(PostgresqlServer(shared_process().dsn("callboard")))
        assert outside.set_drained("a", is_drained=True)
        a.desk.join(CARD, b"{}")
        assert [row.is_drained for row in a.desk.beat().nodes] == [True]
        a.desk.drop()
        other = NodeDesk(PostgresqlServer(shared_process().dsn("callboard")), "a", 5.0)
        other.join(CARD, b"{}")
        assert [row.is_drained for row in other.beat().nodes] == [False]
        other.drop()


def test_draining_waits_until_all_is_given_and_names_who_got_the_company(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CB_DSN", shared_process().dsn("callboard"))
    path = tmp_path / "callboard.toml"
    path.write_text('[store]\nkind = "postgresql"\ndsn = { env = "CB_DSN" }\n')
    with nodes("a", "b", "c") as (a, *_), ThreadPoolExecutor(1) as pool:
        words = ["drain", "a", "--config", str(path), "--wait", "20"]
        ended = pool.submit(CliRunner().invoke, command, words)
        while not (any(x.is_drained for x in a.desk.beat().nodes) or ended.done()):
            pass
        a.desk.give({COMPANY: "c"})
        assert ended.result().output == (
            "node a is drained: others do all of its work\n"
            "node c runs the company now\n"
        )
        for words, said in (
            (["resume", "a"], "node a takes work again: it is given its share"),
            (["resume", "a"], "node a is not drained"),
            (["drain", "d"], "there is no node 'd'"),
        ):
            done = CliRunner().invoke(command, [*words, "--config", str(path)])
            assert said in done.output
        assert not any(row.is_drained for row in a.desk.beat().nodes)
        for each in "bc":
            words = ["drain", each, "--config", str(path), "--wait", "0"]
            said = CliRunner().invoke(command, words).output
            assert ("still has the company" in said) == (each == "c")
        done = CliRunner().invoke(command, ["drain", "a", "--config", str(path)])
        assert "no other node can go on" in done.output


def test_a_take_over_ends_no_session_of_another_companys_node() -> None:
    other = PostgresqlServer(shared_process().dsn("postgres"))
    with nodes("a", "b") as (a, b), closing(other.connect("callboard/a/1")) as db:
        assert b.desk.carry_out(*b.plan(dead=a))
        assert db.execute("SELECT 1").fetchall() == [(1,)]


FLOOD = """SELECT count(pg_notify('callboard', repeat('x', 7900) || i))
    FROM generate_series(1, 1500) i"""
SESSIONS = """SELECT wait_event FROM pg_stat_activity
    WHERE application_name = 'callboard/b/hints'"""


def test_a_take_over_ends_a_session_that_the_dead_node_reads_no_hints_from() -> None:
    """Else the server keeps all hints for it, and refuses commits when it has 8 GB."""
    server = server_of("callboard")
    with nodes("a", "b") as (a, b), beside() as db, ExitStack() as stack:
        stopped = server.connect("callboard/b/hints")
        stack.callback(stopped.close)
        stopped.execute("LISTEN callboard")
        db.execute(FLOOD)
        while db.execute(SESSIONS).fetchall() != [("ClientWrite",)]:
            pass
        assert a.desk.carry_out(*a.plan(dead=b))
        while db.execute(SESSIONS).fetchall():
            pass


def server_of(channel: str) -> PostgresqlServer:
    options = PostgresqlOptions(channel=channel)
    return PostgresqlServer(shared_process().dsn("callboard"), options)


class Listener:
    """A node that hears hints."""

    def __init__(self, name: str, channel: str = "callboard") -> None:
        self.heard: list[Hint] = []
        server = server_of(channel)
        self.hints = HintListener(server, name, self.heard.append)

    async def wait_heard(self, *hints: Hint) -> None:
        """Wait until these have come, each once."""
        while len(self.heard) < len(hints):
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert sorted(self.heard, key=str) == sorted(hints, key=str)
        self.heard.clear()


@asynccontextmanager
async def listening(*names: str) -> AsyncGenerator[list[Listener]]:
    """Have nodes hear hints; a name may be followed by `@` and a channel."""
    heard = [Listener(*name.split("@")) for name in names]
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for each in heard:
                await nursery.start(each.hints.run)
            yield heard
            nursery.cancel_scope.cancel()


def tell(db: Db, node: str, *kinds: str) -> None:
    """Send a hint, as a commit of a node does."""
    db.execute(NOTIFY.encode(), ("callboard", encode(node, kinds)))


async def test_nodes_hear_hints_of_each_other_and_not_their_own() -> None:
    emptied()
    async with listening("a", "b", "c") as (a, b, c):
        with beside() as db:
            db.execute("SELECT pg_notify('callboard', 'by hand')")
            tell(db, "a", "\u00e4", "guest")
            tell(db, "b", "two")
        by_a, by_b = RowsWritten("a", ("guest", "\u00e4")), RowsWritten("b", ("two",))
        await c.wait_heard(by_a, by_b)
        await a.wait_heard(by_b)
        await b.wait_heard(by_a)


async def test_a_node_shows_things_to_others_until_another_took_over() -> None:
    server = PostgresqlServer(shared_process().dsn("callboard"))
    first, second = (Shown("bot", "k", msgspec.Raw(each)) for each in (b"1", b"2"))
    with nodes("a", "b") as (a, b):
        life = a.member.incarnation
        async with listening("b") as (other,), trio.open_nursery() as nursery:
            sender = HintSender(server, "a", lambda: life)
            nursery.start_soon(sender.run)
            sender.tell(first)
            await other.wait_heard(HintsShown("a", (first,)))
            assert b.desk.carry_out(*b.plan(dead=a))
            # The take-over ended its session: it has come back, and connected anew.
            anew = HintSender(server, "a", lambda: life)
            await anew._send([second], life)
            anew._drop()
            with beside() as db:
                tell(db, "a", "later")
            await other.wait_heard(RowsWritten("a", ("later",)))
            nursery.cancel_scope.cancel()


async def test_who_knows_another_channel_hears_no_hint_and_tells_none() -> None:

    def concerns_others(_: Commit) -> tuple[str, ...]:
        return ("event",)

    words, others = (Shown("bot", "k", msgspec.Raw(x)) for x in (b'"words"', b'"o"'))
    with nodes("a") as (a,):
        life = a.member.incarnation
        async with listening("b@Ours", "c@theirs") as (ours, theirs):
            server = server_of("Ours")
            server.options = structs.replace(
                server.options, seat=a.seat(), concerns_others=concerns_others
            )
            store = await PostgresqlStore.open(server)
            await store.commit(accepting("first"))
            await store.aclose()
            for shown, where in ((words, server), (others, server_of("theirs"))):
                sender = HintSender(where, "a", lambda: life)
                await sender._send([shown], life)
                sender._drop()
            by_ours = RowsWritten("a", ("event",)), HintsShown("a", (words,))
            await ours.wait_heard(*by_ours)
            await theirs.wait_heard(HintsShown("a", (others,)))


async def test_what_a_commit_has_for_others_is_told_when_it_is_durable() -> None:
    with nodes("a") as (a,):
        async with with_part(a) as store, listening("a", "b") as (own, other):
            await store.commit(accepting("nobody's business"))
            await store.commit(MINE)
            await other.wait_heard(RowsWritten("a", ("event",)))
            assert own.heard == []


async def test_all_are_told_at_once_when_leases_have_moved() -> None:
    with nodes("a", "b") as (a, b):
        async with listening("b", "c") as (own, other):
            a.desk.give({COMPANY: "b"})
            for each in (own, other):
                await each.wait_heard(RowsWritten("a", ("leases",)))
            assert b.desk.carry_out(*b.plan(dead=a))
            await other.wait_heard(RowsWritten("b", ("leases",)))
            assert own.heard == []


async def test_what_nobody_is_in_a_hurry_for_is_not_told_at_once() -> None:
    with nodes("a") as (a,):
        async with listening("b") as (other,):
            server = PostgresqlServer(
                shared_process().dsn("callboard"),
                PostgresqlOptions(
                    seat=a.seat(),
                    concerns_others=lambda commit: {x.kind for x in commit.entries},
                    unhurried=frozenset({"call"}),
                ),
            )
            store = await PostgresqlStore.open(server)
            for kind in ("call", "guest"):
                entry = Entry(kind=kind, id="x", part=0, body=b"{}")
                await store.commit(Commit(at=0.0, entries=(entry,)))
            await other.wait_heard(RowsWritten("a", ("guest",)))
            await store.aclose()


async def test_hints_go_on_after_their_connection_was_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("runtime.postgresql.hints.AGAIN", 0.01)
    emptied()
    query = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = 'callboard/b/hints'"""
    async with listening("b") as (b,):
        with beside() as db:
            assert db.execute(query).fetchall() == [(1,)]
            while not b.heard:  # hints are lost until it listens again
                tell(db, "a", "news")
                await trio.testing.wait_all_tasks_blocked(0.01)
