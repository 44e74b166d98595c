"""A node that shares work, beside another one that only shows life."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import pytest
import trio
import trio.testing
from msgspec.structs import replace

from actors import names
from actors.journal.commits import as_enqueue
from actors.messages.keys import chat_partition
from actors.protocol import DrainOutbox, RouteArrived, RouteUnanswered
from actors.services import Duties
from connectors.app.reload.reload import SettingsSource
from connectors.app.sharing import (
    LOOKS_APART,
    LOOKS_GROWTH,
    PARTS_AT_ONCE,
    Looks,
    Overtaken,
    SharedWork,
)
from connectors.app.shutdown import Drain
from connectors.chat.telegram.platform import TelegramConfig
from connectors.commands.serve import (
    ENDED,
    WANTED,
    Ends,
    Hangup,
    ServiceNotifier,
    _end_company,
    _run_node,
)
from connectors.config.app import AppConfig, ConnectorConfig, HttpConfig
from connectors.settings.load import load_app
from connectors.web.page.platform import PageConfig
from runtime import __version__
from runtime.clock import SystemClock
from runtime.nodes.rows import ACCOUNT, COMPANY, PART
from runtime.postgresql.migrations import FORMATS
from runtime.postgresql.nodes import NodeCard, NodeDesk, NodesFromOutside
from runtime.postgresql.server import Db, PostgresqlServer, rows_of
from runtime.store.rows import Claim, Commit, Defer, Settle
from runtime.telemetry.logs import Redactor
from tests.connectors.app.test_nodes import PATIENCE, free_port
from tests.fakes.actors.neighbours import saying, words
from tests.fakes.company.company import TrioClock
from tests.fakes.store.in_memory import MemoryStore
from tests.processes.channels.test_telegram import MORE, is_answered, telegram, wait
from tests.support.chat.telegram_bed import ZOE
from tests.support.store.postgresql import emptied, shared_process
from tests.support.store.rows import heard

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterable
    from pathlib import Path

    from runtime.nodes.rows import LeaseRow

SETTINGS = """
default_agent = "anna"
[store]
kind = "postgresql"
path = "{folder}/callboard.db"
dsn = {{ env = "CB_DSN" }}
[nodes]
name = "a"
address = "127.0.0.1"
ttl = 6.0
[admin]
is_on = false
[models.scripted]
kind = "scripted"
script = "script.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.http]
kind = "http"
port = {http}
[connectors.page]
kind = "page"
port = {page}
"""


SCRIPT = """
[[rule]]
pattern = "^for long"
reply = "at last"
delay = 3600
[default]
reply = "you said {0}"
"""


class Beside:
    """The other node, and what the node under test is asked."""

    def __init__(self, folder: Path, more: str = "", **variables: str) -> None:
        self.ports = {"http": free_port(), "page": free_port()}
        self.desk = NodeDesk(emptied(), "b", 5.0)
        path = folder / "callboard.toml"
        path.write_text(SETTINGS.format(folder=folder, **self.ports) + more)
        path.with_name("script.toml").write_text(SCRIPT)
        dsn = shared_process().dsn("callboard")
        load = partial(load_app, path, os.environ | {"CB_DSN": dsn} | variables)
        self.source = SettingsSource(load(), load, Redactor())
        self.end: Callable[[], object] = bool
        """Has the node under test end as by SIGTERM."""

    async def wait_begun(self) -> None:
        """Wait until the node under test has everything."""
        outside = NodesFromOutside(PostgresqlServer(shared_process().dsn("callboard")))
        while not all(row.owner for row in outside.read()[1]):
            await trio.testing.wait_all_tasks_blocked(0.05)
        while not await self.is_served():
            await trio.testing.wait_all_tasks_blocked(0.05)

    async def wait_running(self) -> None:
        """Wait until somebody's message is worked on."""
        with PostgresqlServer(shared_process().dsn("callboard")).connect("tests") as db:
            while not rows_of(db, "SELECT FROM inbox WHERE state = 'running'"):
                await trio.testing.wait_all_tasks_blocked(0.05)

    async def take(self, name: str) -> None:
        """Have a lease given to this node, which nobody can reach."""
        # Anew each time: only where no node came lately are leases spread evenly.
        self.desk.join(NodeCard(release=__version__, formats=FORMATS), b"")
        with PostgresqlServer(shared_process().dsn("callboard")).connect("tests") as db:
            db.execute("UPDATE lease SET wanted = 'b' WHERE name = %s", (name,))
        while not any(x.name == name and x.owner == "b" for x in self.look()):
            await trio.testing.wait_all_tasks_blocked(0.05)

    async def have_all(self) -> None:
        """Have all leases, before the node under test is there."""
        self.desk.join(NodeCard(release=__version__, formats=FORMATS), b"")
        with PostgresqlServer(shared_process().dsn("callboard")).connect("tests") as db:
            db.execute("UPDATE lease SET owner = 'b', epoch = epoch + 1")

    async def wait_joined(self, node: str) -> None:
        """Wait until another node shows life."""
        while node not in self.desk.known():
            await trio.testing.wait_all_tasks_blocked(0.05)
            self.look()

    def have_begun(self) -> None:
        """Show life as a node that answers, and can act for all connectors."""
        self.desk.join(
            NodeCard(release=__version__, formats=FORMATS, has_begun=True), b""
        )

    def theirs(self) -> set[str]:
        """Show life; name the leases of the node under test."""
        return {row.name for row in self.look() if row.owner == "a"}

    def look(self) -> tuple[LeaseRow, ...]:
        """Show life; gives all leases."""
        return self.desk.beat().leases

    async def ask(self, chat: str, words: str) -> str:
        """Ask in a conversation."""
        said = [{"role": "user", "content": words}]
        url = f"http://127.0.0.1:{self.ports['http']}/v1/chat/completions"
        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            answer = await client.post(
                url,
                json={"model": "anna", "messages": said},
                headers={"x-callboard-conversation": chat},
            )
        found: str = answer.json()["choices"][0]["message"]["content"]
        return found

    async def is_served(self) -> bool:
        """Whether something answers at the port of the page."""
        url = f"http://127.0.0.1:{self.ports['page']}/"
        try:
            async with httpx.AsyncClient(timeout=0.5) as client:
                await client.get(url)
        except httpx.HTTPError:
            return False
        return True


@asynccontextmanager
async def running(
    tmp_path: Path, more: str = "", **variables: str
) -> AsyncGenerator[Beside]:
    """Serve as node `a`, which has everything at first."""
    beside, is_told = Beside(tmp_path, more, **variables), trio.Event()
    ends = Ends(Hangup(), is_told, ServiceNotifier({}), may_begin_anew=False)
    beside.end = is_told.set
    try:
        with trio.fail_after(2 * PATIENCE):
            async with trio.open_nursery() as nursery:
                ends.hangup.received = aiter(nobody())
                nursery.start_soon(_run_node, beside.source, ends)
                await beside.wait_begun()
                assert await beside.ask("lobby", "hello") == "you said hello"
                yield beside
                is_told.set()
    finally:
        beside.desk.drop()


LIVES = "application_name ~ '^callboard/a/[0-9]+$'"
"""Sessions of the node under test in which it shows life."""


@contextmanager
def no_more_connections() -> Generator[Db]:
    """Have the server refuse new connections to the company's database."""
    change = "ALTER DATABASE callboard ALLOW_CONNECTIONS "
    with PostgresqlServer(shared_process().dsn("postgres")).connect("tests") as db:
        db.execute(change.encode() + b"false")
        try:
            yield db
        finally:
            db.execute(change.encode() + b"true")


async def nobody() -> AsyncGenerator[int]:
    """Give no signal."""
    await trio.sleep_forever()
    yield 0


@pytest.mark.timeout(120)
async def test_leases_are_given_away_at_rest_and_taken_up_again(tmp_path: Path) -> None:
    part = f"part/{chat_partition('http', 'lobby')}"
    async with running(tmp_path) as beside:
        assert await beside.is_served()
        for name in (part, COMPANY):
            await beside.take(name)
        assert not await beside.is_served()
        other = next(x for x in map(str, range(99)) if chat_of(x) != part)
        assert await beside.ask(other, "still there?") == "you said still there?"
        beside.desk.give({part: "a", COMPANY: "a"})
        assert await beside.ask("lobby", "and now?") == "you said and now?"
        while not await beside.is_served():
            await trio.testing.wait_all_tasks_blocked(0.05)


@pytest.mark.timeout(120)
async def test_a_bot_is_heard_by_the_node_that_has_its_lease(tmp_path: Path) -> None:
    async with telegram() as (server, url, token):
        chat = server.private(1, "anna_bot")
        more = MORE.format(url=url, drafts="false")
        async with running(tmp_path, more, TOKEN=token) as beside:
            server.say(chat, ZOE, "one")
            await wait(server, lambda: is_answered(chat, server, "you said one"))
            await beside.take("account/telegram")
            asked = server.count("getUpdates")
            server.say(chat, ZOE, "two")
            assert await beside.ask("lobby", "still there?") == "you said still there?"
            beside.look()
            assert server.count("getUpdates") == asked
            beside.desk.give({"account/telegram": "a"})
            await wait(server, lambda: is_answered(chat, server, "you said two"))
            assert chat.texts(server.named("anna_bot")) == [
                "you said one",
                "you said two",
            ]
        assert server.polled_at_once == 0


LONG = """
[limits]
drain_timeout = 3600
turn_timeout = 3600
longest_turn = 7200
"""


@pytest.mark.timeout(120)
async def test_a_node_that_leaves_keeps_only_what_is_not_at_rest(
    tmp_path: Path,
) -> None:
    async with telegram() as (_, url, token), trio.open_nursery() as nursery:
        more = LONG + MORE.format(url=url, drafts="false")
        async with running(tmp_path, more, TOKEN=token) as beside:
            beside.have_begun()
            nursery.start_soon(beside.ask, "lobby", "for long")
            await beside.wait_running()
            beside.end()
            while beside.theirs() != {chat_of("lobby")}:
                await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()


@pytest.mark.timeout(120)
async def test_a_node_that_cannot_read_at_its_turn_tries_again(tmp_path: Path) -> None:
    beside, is_told = Beside(tmp_path), trio.Event()
    ends = Ends(Hangup(), is_told, ServiceNotifier({}), may_begin_anew=False)
    ends.hangup.received = aiter(nobody())
    await beside.have_all()
    with trio.fail_after(2 * PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_run_node, beside.source, ends)
            await beside.wait_joined("a")
            with no_more_connections() as db:
                names = [row.name for row in beside.look()]
                beside.desk.give(dict.fromkeys(names, "a"))
                while rows_of(db, "SELECT FROM pg_stat_activity WHERE " + LIVES):
                    beside.look()
                    await trio.testing.wait_all_tasks_blocked(0.05)
            await beside.wait_begun()
            said = ""
            while not said:
                with suppress(KeyError):  # it is refused while the node begins
                    said = await beside.ask("lobby", "hello")
            assert said == "you said hello"
            is_told.set()
    beside.desk.drop()


def chat_of(name: str) -> str:
    return f"part/{chat_partition('http', name)}"


class SlowToGive:
    """A node whose server is away when it gives its part away."""

    gives_all = False

    def parts(self) -> tuple[frozenset[int], frozenset[int]]:
        """Give its part, which another is to have."""
        return frozenset({7}), frozenset({7})

    def is_entered(self, part: int) -> bool:
        """Nobody writes to it just now."""
        return part != 7

    async def give(self, names: Iterable[str]) -> None:
        """Give nothing."""
        assert list(names) == ["part/7"]


async def test_a_part_that_could_not_be_given_away_is_worked_on_as_before() -> None:
    duties, told = Duties(), list[object]()
    duties.parts = frozenset({7, 8})
    router = SimpleNamespace(tell=told.append)
    app: Any = SimpleNamespace(
        store=MemoryStore(),
        clock=SystemClock(),
        system=SimpleNamespace(
            find={names.ROUTER: router}.get, kernel=SimpleNamespace(names=[])
        ),
        transports={},
    )
    seat: Any = SimpleNamespace(node=SlowToGive(), duties=duties)
    rest: Any = SimpleNamespace(config=AppConfig())
    await SharedWork(app, seat, rest, rest)._release(frozenset({7}), Overtaken())
    assert duties.parts == {7, 8}
    assert RouteUnanswered() in told, "conversations that were ended have forgotten all"


async def test_who_leaves_gives_away_what_waits_for_a_later_try() -> None:
    store, clock = MemoryStore(), SystemClock()
    http: dict[str, ConnectorConfig] = {"http": HttpConfig()}
    app: Any = SimpleNamespace(store=store, clock=clock)
    rest: Any = SimpleNamespace(config=AppConfig(connectors=http))
    node = SimpleNamespace(gives_all=False)
    seat: Any = SimpleNamespace(node=node, duties=Duties())
    parts = {"put off": 1, "behind it": 1, "due soon": 2, "running": 3, "unreadable": 4}
    for name, part in parts.items():
        row = replace(heard(name, connector="http"), part=part, stream=f"chat {part}")
        body = b"?" if name == "unreadable" else msgspec.json.encode(words())
        await store.commit(Commit(at=1.0, accepts=(replace(row, body=body),)))
    for name, later in (("put off", 600.0), ("due soon", 1.0), ("running", 0.0)):
        await store.commit(Commit(at=1.0, claims=(Claim(name, 1),)))
        if later:
            due = Defer(name, 1, clock.wall() + later)
            await store.commit(Commit(at=1.0, defers=(due,)))
    work, among = SharedWork(app, seat, rest, rest), frozenset({1, 2, 3, 4})
    assert (await work._busy(among)).keys() == among, (
        "a node that stays will work on all"
    )
    node.gives_all = True
    assert await work._busy(among) == {2: {"due soon"}, 3: {"running"}}


class Giving:
    """A node that gives leases away, and notes what was worked on meanwhile."""

    look_every = 1.0

    def __init__(self, duties: Duties, *going: str) -> None:
        self.gives_all = True
        self.duties = duties
        self.leases = dict.fromkeys(going, "b")
        self.given: list[list[str]] = []
        self.working: list[frozenset[int]] = []
        """At each giving away, the parts that were worked on here still."""

    def heirs(self) -> dict[str, str]:
        """Give what others are to have."""
        return self.leases

    def parts(self) -> tuple[frozenset[int], frozenset[int]]:
        """Give the parts that it has, all of which others are to have."""
        mine = frozenset(int(x.removeprefix(PART)) for x in self.leases if PART in x)
        return mine, mine

    def is_entered(self, part: int) -> bool:
        """Nobody writes just now."""
        return part < 0

    async def wait_changed(self, within: float) -> None:
        """Wait until leases may have changed hands."""
        await trio.sleep(within)

    def accounts(self) -> tuple[frozenset[str], frozenset[str]]:
        """Give the connectors that it has, all of which others are to have."""
        found = (x.removeprefix(ACCOUNT) for x in self.leases if ACCOUNT in x)
        mine = frozenset(found)
        return mine, mine

    async def wait_wanted(self) -> None:
        """Wait for ever: nobody wants the company."""
        await trio.sleep_forever()

    async def wait_written(self) -> None:
        """Wait for ever: nobody writes."""
        await trio.sleep_forever()

    async def give(self, names: Iterable[str]) -> None:
        """Give leases away."""
        self.given.append(sorted(names))
        self.working.append(self.duties.parts or frozenset())
        for name in self.given[-1]:
            del self.leases[name]


class Settled:
    """Settings that are as they are, and connectors that end at once."""

    def __init__(self, **connectors: ConnectorConfig) -> None:
        self.config = AppConfig(connectors=connectors)

    async def renew_connectors(self) -> None:
        """End those that are to."""
        await trio.lowlevel.checkpoint()


async def accept(store: MemoryStore, connector: str, part: int) -> None:
    """Store a message that somebody works on."""
    row = replace(heard("one", connector=connector), part=part, stream="a chat")
    body = msgspec.json.encode(words())
    await store.commit(Commit(at=1.0, accepts=(replace(row, body=body),)))
    await store.commit(Commit(at=1.0, claims=(Claim("one", 1),)))


async def settle(store: MemoryStore) -> None:
    """Settle that message."""
    await store.commit(Commit(at=2.0, settles=(Settle("one", "replied"),)))


def shared_work(
    node: Giving, store: MemoryStore, duties: Duties, **connectors: ConnectorConfig
) -> SharedWork:
    """Make what gives a node's work away, without a company around it."""
    clock, rest = TrioClock(), Settled(**connectors)
    system: Any = SimpleNamespace(
        find=dict[str, object]().get, kernel=SimpleNamespace(names=[])
    )

    def drain_of(names: Iterable[str], *, has_moved: bool) -> Drain:
        return Drain(system, store, clock, [*names], duties=duties, has_moved=has_moved)

    app: Any = SimpleNamespace(
        store=store,
        clock=clock,
        system=system,
        drain_of=drain_of,
        transports=dict.fromkeys(connectors),
    )
    seat: Any = SimpleNamespace(
        node=node, duties=duties, accounts=frozenset({"ann", "ben"}), runs_rest=True
    )
    reloading: Any = rest
    forwarder: Any = None
    return SharedWork(app, seat, reloading, forwarder)


async def test_parts_go_a_few_at_a_time_and_none_waits_for_an_answer_in_another(
    autojump_clock: trio.testing.MockClock,
) -> None:
    duties, store, count = Duties(), MemoryStore(), 2 * PARTS_AT_ONCE + 3
    duties.parts = frozenset(range(count))
    node = Giving(duties, *(f"{PART}{number}" for number in range(count)))
    await accept(store, "http", part=5)
    work = shared_work(node, store, duties, http=HttpConfig())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work.leave)
        await trio.testing.wait_all_tasks_blocked()
        assert [len(names) for names in node.given] == [PARTS_AT_ONCE] * 2 + [2]
        left = set(range(count))
        for names, working in zip(node.given, node.working, strict=True):
            gone = {int(name.removeprefix(PART)) for name in names}
            assert working == left - gone, "only these are silent"
            left -= gone
        assert duties.parts == left == {5}
        with trio.move_on_after(10.0) as waited:
            await work.wait_left()
        assert waited.cancelled_caught
        await settle(store)
        await work.wait_left()
        assert autojump_clock.current_time() <= 11.0, "with the next look"
        nursery.cancel_scope.cancel()
    assert duties.parts == set()


class Taking(Giving):
    """A node that has just got parts, and keeps them."""

    def parts(self) -> tuple[frozenset[int], frozenset[int]]:
        """Give the parts that it has, none of which others are to have."""
        return super().parts()[0], frozenset()


async def test_what_another_node_had_not_said_is_looked_for_before_what_is_new() -> (
    None
):
    duties, told = Duties(), list[tuple[str, object]]()
    duties.parts = frozenset()
    node = Taking(duties, f"{PART}5")
    work = shared_work(node, MemoryStore(), duties, http=HttpConfig())
    actors: Any = work._app.system

    def note(name: str, message: object) -> None:
        told.append((name, message))

    def find(name: str) -> SimpleNamespace:
        return SimpleNamespace(tell=partial(note, name))

    actors.find = find
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work._follow_parts)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert duties.parts == {5}
    assert told[:2] == [
        (names.connector("http"), DrainOutbox()),
        (names.ROUTER, RouteArrived()),
    ]


class Hasty:
    """Somebody who writes again at once, whenever an answer comes."""

    def __init__(self, duties: Duties, store: MemoryStore, lasts: float) -> None:
        self._duties = duties
        self._store = store
        self._lasts = lasts
        self.answers = 0

    async def write(self) -> None:
        """Write without an end; while the part is closed, wait."""
        kept, lasts = msgspec.json.encode(words()), self._lasts
        row = replace(heard("0", connector="http"), part=5, stream="a chat", body=kept)
        accepts, settles = (row,), tuple[Settle, ...]()
        while True:
            await self._store.commit(Commit(at=1.0, accepts=accepts, settles=settles))
            await trio.sleep(lasts)
            settles = (Settle(row.id, "replied"),)
            self.answers += 1
            row = replace(row, id=f"{self.answers}", platform_id=f"{self.answers}")
            accepts = (row,)
            if not self._duties.closed:
                continue
            await self._store.commit(Commit(at=1.0, settles=settles))
            settles = ()
            while self._duties.closed:
                await trio.testing.wait_all_tasks_blocked(0.01)


@pytest.mark.usefixtures("autojump_clock")
@pytest.mark.parametrize("lasts", [0.04, 0.7, 5.0])
async def test_a_part_goes_in_which_somebody_writes_without_a_pause(
    lasts: float,
) -> None:
    duties, store = Duties(), MemoryStore()
    duties.parts = frozenset({5})
    node = Giving(duties, f"{PART}5")
    work = shared_work(node, store, duties, http=HttpConfig())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Hasty(duties, store, lasts).write)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(work._follow_parts)
        with trio.fail_after(8 * lasts + 3.0):
            while not node.given:
                await trio.testing.wait_all_tasks_blocked(0.01)
        nursery.cancel_scope.cancel()
    assert node.given == [[f"{PART}5"]]


@pytest.mark.usefixtures("autojump_clock")
async def test_nobody_waits_for_one_long_answer_in_another_chat_of_the_part() -> None:
    duties, store = Duties(), MemoryStore()
    duties.parts = frozenset({5})
    await accept(store, "http", part=5)
    work = shared_work(Giving(duties, f"{PART}5"), store, duties, http=HttpConfig())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work._follow_parts)
        for _ in range(1000):
            await trio.sleep(0.0101)
            assert not duties.closed
        nursery.cancel_scope.cancel()


@pytest.mark.usefixtures("autojump_clock")
async def test_what_was_seen_at_an_earlier_move_closes_no_part() -> None:
    duties, store = Duties(), MemoryStore()
    duties.parts = frozenset({5})
    node = Giving(duties, f"{PART}5")
    work = shared_work(node, store, duties, http=HttpConfig())
    async with trio.open_nursery() as nursery:
        await accept(store, "http", part=5)
        nursery.start_soon(work._follow_parts)
        await trio.sleep(2.0)
        node.leases.clear()  # who was to have it has gone
        await settle(store)
        await trio.sleep(2.0)
        row = replace(heard("two", connector="http"), part=5, stream="another chat")
        row = replace(row, body=msgspec.json.encode(words()))
        await store.commit(Commit(at=3.0, accepts=(row,)))
        node.leases[f"{PART}5"] = "b"
        for _ in range(500):
            await trio.sleep(0.0101)
            assert not duties.closed, "one long answer closes nothing"
        nursery.cancel_scope.cancel()


async def test_a_bot_that_has_said_all_waits_for_no_other_and_none_for_ever(
    autojump_clock: trio.testing.MockClock,
) -> None:
    duties, store = Duties(), MemoryStore()
    duties.parts, duties.accounts = frozenset(), frozenset({"ann", "ben"})
    duties.is_shared = duties.is_leased = lambda _: True
    accounts = {name: f"{ACCOUNT}{name}" for name in ("ann", "ben")}
    node = Giving(duties, *accounts.values())
    said = replace(as_enqueue(saying(2), 7), connector="ann")
    await store.commit(Commit(at=1.0, deliveries=(said,)))
    bot = TelegramConfig(accounts={})
    work = shared_work(node, store, duties, ann=bot, ben=bot)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work.leave)
        await trio.testing.wait_all_tasks_blocked()
        assert node.given == [[accounts["ben"]]]
        assert duties.accounts == {"ann"}
        await work.wait_left()
        within = AppConfig().limits.drain_timeout
        assert within <= autojump_clock.current_time() <= within + 2.0
        nursery.cancel_scope.cancel()
    assert node.given[1:] == [[accounts["ann"]]]


async def test_what_is_not_shared_goes_when_it_is_at_rest_if_still_wanted(
    autojump_clock: trio.testing.MockClock,
) -> None:
    duties, store = Duties(), MemoryStore()
    duties.parts = frozenset()
    duties.is_shared = lambda _: False
    node = Giving(duties, COMPANY)
    await accept(store, "page", part=5)
    work = shared_work(node, store, duties, page=PageConfig())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work._give_rest)
        await trio.testing.wait_all_tasks_blocked()
        assert not node.given
        assert duties.has_rest, "its doors are open"
        node.leases.clear()  # who was to have it has gone
    assert not node.given
    node.leases[COMPANY] = "b"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work._give_rest)
        await trio.testing.wait_all_tasks_blocked()
        await settle(store)
    assert node.given == [[COMPANY]]
    assert not duties.has_rest
    assert autojump_clock.current_time() < 1.0


class Looked:
    """A node of which each wait for a change is noted, in seconds."""

    look_every = 1.0

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def wait_changed(self, within: float) -> None:
        """Wait for nothing."""
        self.waits.append(within)


async def test_what_stays_busy_is_looked_at_ever_less_often() -> None:
    node: Any = Looked()
    looks = Looks(node)
    for _ in range(40):
        await looks.wait({1, 2})
    assert node.waits[:2] == [LOOKS_APART, LOOKS_APART * LOOKS_GROWTH]
    assert node.waits == sorted(node.waits)
    assert node.waits[-1] == node.look_every
    await looks.wait({2})
    assert node.waits[-1] == LOOKS_APART, "one was given away: the next may be soon"
    await looks.wait(())
    assert node.waits[-1] == node.look_every


class GivenBot:
    """A node that was given a bot, and settings of which a file is missing at first."""

    look_every = 0.0

    def __init__(self) -> None:
        self.is_begun = trio.Event()
        self.tries = 0

    def accounts(self) -> tuple[frozenset[str], frozenset[str]]:
        """Give the bot, which nobody else is to have."""
        return frozenset({"bot"}), frozenset()

    async def wait_changed(self, within: float) -> None:
        """Wait for nothing."""
        await trio.sleep(within)

    async def renew_connectors(self) -> None:
        """Begin, at the second try."""
        self.tries += 1
        if self.tries == 1:
            raise FileNotFoundError("anna/SOUL.md")
        self.is_begun.set()


async def test_a_bot_that_cannot_be_begun_for_want_of_a_file_is_begun_later() -> None:
    node: Any = GivenBot()
    nobody: Any = SimpleNamespace(find=dict[str, object]().get)
    app: Any = SimpleNamespace(system=nobody, transports={})
    seat: Any = SimpleNamespace(node=node, duties=Duties(), accounts=frozenset())
    rest: Any = None
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            work = SharedWork(app, seat, node, rest)
            nursery.start_soon(work._follow_accounts)
            await node.is_begun.wait()
            nursery.cancel_scope.cancel()
    assert node.tries == 2


class Leaving:
    """Notes what is done as a company ends."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.scope = trio.CancelScope()
        self.is_draining = False

    async def be_drained(self) -> None:
        """Begin to give all away."""
        assert self.is_draining, "it is not ready from here on"
        self.done.append("given with open doors")

    async def wait_drained(self) -> None:
        """Have something that is never at rest."""
        await trio.sleep_forever()

    async def prepare_to_leave(self) -> None:
        """Choose who goes on."""
        assert not self.scope.cancel_called
        self.done.append("prepared")

    async def wait_seen(self) -> None:
        """Let it be seen."""
        self.done.append("seen")

    async def drain(self, within: float) -> bool:
        """Finish what is under way."""
        assert self.scope.cancel_called
        self.done.append(f"doors closed for {within:.0f} s")
        return True

    async def leave(self) -> None:
        """Give away the rest."""
        self.done.append("given with closed doors")

    async def wait_left(self) -> None:
        """Wait until that is done."""
        self.done.append("left")


CLOSED = ["prepared", "seen", "doors closed for 10 s"]


@pytest.mark.parametrize(
    ("reason", "is_told", "done"),
    [
        (
            "asked to over a connector",
            True,
            ["given with open doors", "prepared", "seen", "doors closed for 5 s"],
        ),
        (ENDED, True, CLOSED),
        (WANTED, False, CLOSED[2:]),  # who wants it has seen that by then
    ],
)
async def test_a_company_that_is_told_to_end_gives_first_and_does_not_begin_again(
    reason: str, done: list[str], autojump_clock: object, *, is_told: bool
) -> None:
    del autojump_clock
    ends = Ends(Hangup(), trio.Event(), ServiceNotifier({}), may_begin_anew=False)
    it: Any = Leaving()
    it.seat, it.clock = SimpleNamespace(node=it), TrioClock()
    reloading: Any = SimpleNamespace(config=AppConfig())
    await _end_company(it, reloading, ends, reason, it)
    assert ends.is_told.is_set() == is_told
    said = [x for x in it.done if x not in {"given with closed doors", "left"}]
    assert said == done
    assert {*it.done} - {*said} == {"given with closed doors", "left"}
