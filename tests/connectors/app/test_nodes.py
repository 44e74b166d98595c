"""Nodes that stand by: what must agree, and where connections go."""

from __future__ import annotations

import itertools
import socket
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given, strategies as st
from msgspec.structs import replace

from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.errors import MisdirectedError
from actors.messages.keys import chat_partition
from actors.services import Duties
from connectors.admin.nodes import (
    GONE,
    RUNS,
    STANDS_BY,
    ListedNode,
    NodeReply,
    NodeReport,
)
from connectors.app.forwarding import ConnectionForwarder, close_moved, probe_answer
from connectors.app.nodes import (
    account_leases,
    channel_of,
    comparable,
    differing,
    has_parts,
    is_leased,
    is_sharing,
    lease_of,
    lease_to_send,
    open_node,
    reachable,
)
from connectors.chat.discord.platform import DiscordConfig
from connectors.chat.matrix.platform import MatrixConfig
from connectors.chat.qq.platform import QQConfig
from connectors.chat.server_transport import ListenError
from connectors.chat.slack.platform import SlackAccountConfig, SlackConfig
from connectors.chat.telegram.platform import TelegramConfig
from connectors.chat.websocket.platform import WebSocketConfig
from connectors.commands.common.database import DatabaseChoice
from connectors.commands.forget_person import ORDER, erase_now
from connectors.commands.status import CompanyStatus, lines, with_nodes
from connectors.config.app import (
    AppConfig,
    ConnectorConfig,
    HttpConfig,
    NodesConfig,
    StoreConfig,
)
from connectors.settings.load import check_nodes, load_app
from connectors.web.page.platform import PageConfig
from connectors.web.peers import NodePlace
from runtime.errors import FencedError, SettingsError, StoreError
from runtime.nodes.membership import homes
from runtime.nodes.rows import COMPANY
from runtime.secret import Secret
from runtime.store.rows import PARTS, Append, Commit, Entry, NewEvent
from tests.fakes.store.cut_proxy import CutProxy
from tests.support.store.postgresql import emptied, shared, shared_process
from tests.support.store.rows import heard

if TYPE_CHECKING:
    from pathlib import Path

    from connectors.app.nodes import CompanyNode

SLACK = SlackAccountConfig(bot_token=Secret("x"), app_token=Secret("y"))
KEY = bytes(32)
PATIENCE = 30.0

SETTINGS = """
default_agent = "anna"
owners = [{owners}]
[store]
kind = "postgresql"
dsn = {{ env = "CB_DSN" }}
[nodes]
name = "{name}"
address = "127.0.0.1"
ttl = 2.0
[admin]
port = {admin}
[models.scripted]
kind = "scripted"
script = "script.toml"
[agents.anna]
prompt = "You are Anna."
[connectors.http]
kind = "http"
port = {port}
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port: int = door.getsockname()[1]
    return port


def settings(folder: Path, name: str, owners: str = "") -> AppConfig:
    path = folder / f"{name}.toml"
    text = SETTINGS.format(
        name=name, owners=owners, admin=free_port(), port=free_port()
    )
    path.write_text(text, encoding="utf-8")
    path.with_name("script.toml").write_text('[default]\nreply = "hm"\n')
    found = load_app(path, {"CB_DSN": shared_process().dsn("callboard")})
    return found.value


async def ask(port: int, words: bytes) -> bytes:
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(words)
        await stream.send_eof()
        return b"".join([part async for part in stream])


async def echo(stream: trio.SocketStream) -> None:
    async for part in stream:
        await stream.send_all(b"echo " + part)


async def run_first(
    config: AppConfig,
    is_over: trio.Event,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Be the node that runs the company, until it is over."""
    async with open_node(config) as node:
        await node.wait_seat()
        task_status.started()
        await is_over.wait()
        await node.prepare_to_leave()


async def test_connections_go_to_the_node_that_runs_the_company(tmp_path: Path) -> None:
    emptied()
    first, second = settings(tmp_path, "a"), settings(tmp_path, "b")
    said: list[str] = []
    is_over = trio.Event()
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            await nursery.start(run_first, first, is_over)
            serve = partial(trio.serve_tcp, echo, host="127.0.0.1")
            await nursery.start(serve, port_of(first))
            async with open_node(second) as b:
                forwarder = ConnectionForwarder(b, nursery, said.append)
                nursery.start_soon(standing, forwarder, second, b)
                while not said:
                    await trio.testing.wait_all_tasks_blocked(0.01)
                place = f"127.0.0.1:{port_of(second)}"
                assert said == [f"http: standing by, listening on {place}"]
                assert await ask(port_of(second), b"hello") == b"echo hello"
                probes = second.admin.port or 0
                ready = await ask(probes, b"GET /readyz HTTP/1.1\r\n\r\n")
                assert ready.startswith(b"HTTP/1.1 200 ")
                assert not b.is_seated
                is_over.set()
                await b.wait_seat()  # given to it, and no time-out waited for
            nursery.cancel_scope.cancel()


async def standing(
    forwarder: ConnectionForwarder, config: AppConfig, node: CompanyNode
) -> None:
    for door in (await forwarder.stand(config, node.wait_seat)).values():
        door.close()


def test_the_channel_of_hints_follows_from_the_key() -> None:
    names = {channel_of(bytes([n]) * 32) for n in range(100)}
    assert len(names) == 100
    assert max(map(len, names)) <= 63  # bytes; PostgreSQL takes no longer name


async def test_a_node_works_on_a_chat_once_it_has_begun_there(tmp_path: Path) -> None:
    emptied()
    part = chat_partition("http", "lobby")
    with trio.fail_after(PATIENCE):
        async with open_node(settings(tmp_path, "a")) as a:
            await a.wait_turn()
            await a.wait_seat()
            duties = a.new_duties()
            mine, going = a.parts()
            assert (len(mine), len(going)) == (PARTS, 0)
            assert a.where("http", "lobby") == NodePlace("a")  # it has not begun there
            with pytest.raises(MisdirectedError), a.entering("http", "lobby"):
                pass
            duties.parts = mine
            assert a.where("http", "lobby").is_here
            assert a.where_rest("http").is_here
            with a.entering("http", "lobby"):
                assert a.is_entered(part)
            assert not a.is_entered(part)
            assert [*a.leases_for(told(SHARED, part))] == [f"part/{part}"]
            assert [*a.leases_for(told(OTHER, part))] == ["company"]
            assert a.leases_for(told("drafts/7", part)) == {}
            assert not a.concerns_others(Commit(at=0.0, accepts=(heard("m"),)))


async def test_who_waits_for_an_answer_here_enters_no_part_that_may_be_given_away(
    tmp_path: Path,
) -> None:
    emptied()
    with trio.fail_after(PATIENCE):
        async with open_node(settings(tmp_path, "a")) as a:
            await a.wait_turn()
            await a.wait_seat()
            duties = a.new_duties()
            duties.parts, _ = a.parts()
            duties.closed = frozenset({chat_partition("http", "lobby")})
            with pytest.raises(MisdirectedError), a.entering("http", "lobby"):
                pass
            with a.entering("http", "lobby", may_move=True):
                pass
            duties.closed = frozenset()
            with a.entering("http", "lobby"):
                pass


async def test_a_node_knows_where_the_others_work_and_gets_what_they_leave(
    tmp_path: Path,
) -> None:
    emptied()
    first, second = settings(tmp_path, "a"), settings(tmp_path, "b")
    with trio.fail_after(PATIENCE):
        async with open_node(first) as a:
            await a.wait_turn()
            async with open_node(second) as b:
                await b.wait_turn()
                place = NodePlace("a", "127.0.0.1", port_of(first))
                assert b.where("http", "lobby") == b.where_rest("http") == place
                with pytest.raises(FencedError):
                    b.leases_for(told(SHARED, chat_partition("http", "lobby")))
                guest = Entry(kind="guest", id="g", part=0, body=b"")
                assert b.concerns_others(Commit(at=0.0, entries=(guest,))) == {"guest"}
                assert b.concerns_others(Commit(at=0.0, accepts=(heard("m"),))) == {
                    "inbox"
                }
                await a.prepare_to_leave()
                while b.where("http", "lobby") != NodePlace("a"):
                    await trio.testing.wait_all_tasks_blocked(0.01)  # it is leaving
                await a.hand_over()
                await b.wait_seat()
                assert len(b.parts()[0]) == PARTS


async def test_a_node_that_is_drained_is_shown_so_and_nobody_is_sent_to_closed_doors(
    tmp_path: Path,
) -> None:
    emptied()
    page: dict[str, ConnectorConfig] = {"page": PageConfig(port=free_port())}
    first, second = (
        replace(settings(tmp_path, name), connectors=page) for name in ("a", "b")
    )
    with trio.fail_after(PATIENCE):
        async with open_node(first) as a, open_node(second) as b:
            await a.wait_seat()
            while b.owner != "a":
                await b.wait_changed(0.1)
            await b.place_of("page")
            await a.be_drained()
            await a.wait_wanted()  # then the company ends, and its doors are closed
            await b.look()
            with trio.CancelScope() as now:
                now.cancel()
                pytest.fail(f"sent to {await b.place_of('page')}")
            await a.hand_over()
            await b.wait_seat()
            assert {x.listed.name: x.listed.state for x in b.ways()} == {
                "a": "is drained",
                "b": RUNS,
            }


SHARED, OTHER = "anna/http/lobby//sam", "anna/websocket/lobby//sam"


def told(stream: str, part: int) -> Commit:
    event = NewEvent("said", b"{}")
    row = Append(stream=stream, expected=0, part=part, events=(event,))
    return Commit(at=0.0, appends=(row,))


def test_work_is_shared_where_a_connector_s_chats_can_be() -> None:
    connectors: dict[str, ConnectorConfig] = {"http": HttpConfig()}
    assert is_sharing(AppConfig(connectors=connectors))
    assert not is_sharing(AppConfig())


def through_proxy(folder: Path) -> tuple[CutProxy, AppConfig]:
    """Give a way to the database that can be cut, and settings that take it."""
    process = shared_process()
    proxy = CutProxy(process.folder / ".s.PGSQL.5432")
    user = process.dsn("callboard").partition("user=")[2].split()[0]
    way = f"host=127.0.0.1 port={proxy.port} user={user} dbname=callboard"
    settings(folder, "a")
    return proxy, load_app(folder / "a.toml", {"CB_DSN": way}).value


async def test_a_client_of_a_node_that_is_cut_off_is_told_to_try_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.app.forwarding.MOST_PASSED_ON", 1)
    emptied()
    proxy, config = through_proxy(tmp_path)
    try:
        with trio.fail_after(PATIENCE):
            async with open_node(config) as node, trio.open_nursery() as nursery:
                await node.wait_turn()
                proxy.is_away = True
                proxy.cut()
                await node.wait_lost()
                forwarder = ConnectionForwarder(node, nursery, print)
                nursery.start_soon(forwarder.stand, config, trio.sleep_forever)
                await trio.testing.wait_all_tasks_blocked(0.01)
                for _ in range(3):  # one after the other, so there is room for each
                    told = await ask(port_of(config), b"GET / HTTP/1.1\r\n\r\n")
                    assert told.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
                    assert b'"this node cannot reach the database; try again"' in told
                    assert str(proxy.port).encode() not in told
                proxy.is_away = False
                while node.trouble():
                    await node.wait_changed(0.1)
                nursery.cancel_scope.cancel()
    finally:
        proxy.close()


async def test_an_address_that_is_taken_is_named_with_its_table(tmp_path: Path) -> None:
    emptied()
    config = settings(tmp_path, "a")
    taken = ("127.0.0.1", port_of(config))
    told = rf"connectors\.http: cannot listen on 127\.0\.0\.1:{taken[1]}: "
    with socket.create_server(taken), trio.fail_after(PATIENCE):
        async with open_node(config) as node, trio.open_nursery() as nursery:
            forwarder = ConnectionForwarder(node, nursery, print)
            with pytest.raises(ListenError, match=told):
                await forwarder.stand(config, trio.sleep_forever)
            nursery.cancel_scope.cancel()


def port_of(config: AppConfig) -> int:
    connector = config.connectors["http"]
    assert isinstance(connector, HttpConfig)
    return connector.port


async def test_a_node_with_other_settings_is_refused_and_they_are_named(
    tmp_path: Path,
) -> None:
    emptied()
    first, second = settings(tmp_path, "a"), settings(tmp_path, "b", '"http/zoe"')
    with trio.fail_after(PATIENCE):
        async with open_node(first) as a:
            await a.wait_seat()
            with pytest.RaisesGroup(
                pytest.RaisesExc(SettingsError, match="other settings: owners"),
                flatten_subgroups=True,
                allow_unwrapped=True,
            ):
                async with open_node(second) as b:
                    await b.wait_seat()


async def test_nobody_is_forgotten_beside_nodes_whatever_the_settings_here_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emptied()
    monkeypatch.setattr("runtime.postgresql.threads.LET_GO_WITHIN", 0.0)
    monkeypatch.setenv("CB_DSN", shared_process().dsn("callboard"))
    config = settings(tmp_path, "a")
    path = tmp_path / "a.toml"
    unnamed = path.read_text().replace('name = "a"', "").replace("address", "# address")
    path.write_text(unnamed)
    whom = ("http/sam",)
    with trio.fail_after(PATIENCE):
        async with open_node(config) as node:
            await node.wait_seat()
            choice = DatabaseChoice(path, None)
            with pytest.raises(click.ClickException, match="several nodes: stop all"):
                await trio.to_thread.run_sync(erase_now, choice, whom[0], whom)
            with choice.database.inspect() as rows:
                assert list(rows.entries(ORDER)) == []


async def test_a_connection_to_a_connector_that_is_gone_by_now_waits(
    tmp_path: Path,
) -> None:
    emptied()
    config = settings(tmp_path, "a")
    with trio.fail_after(PATIENCE):
        async with open_node(config) as node:
            await node.wait_seat()
            await node.use(msgspec.structs.replace(config, connectors={}))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(node.place_of, "http")
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()


async def test_a_node_is_refused_that_shares_work_beside_one_that_does_not(
    tmp_path: Path,
) -> None:
    emptied()
    first, second = settings(tmp_path, "a"), settings(tmp_path, "b")
    with trio.fail_after(PATIENCE):
        async with open_node(replace(first, connectors={})) as a:
            await a.wait_seat()
            await a.use(first)  # it goes on as it was started
            with pytest.RaisesGroup(
                pytest.RaisesExc(
                    SettingsError,
                    match="'a', which .* was started to share no work, unlike",
                ),
                flatten_subgroups=True,
                allow_unwrapped=True,
            ):
                async with open_node(second) as b:
                    await b.wait_turn()


BOT = TelegramConfig(accounts={})


async def test_a_node_goes_on_when_a_connector_of_its_own_is_taken_out(
    tmp_path: Path,
) -> None:
    emptied()
    config = settings(tmp_path, "a")
    more = replace(config, connectors={**config.connectors, "bot": BOT})
    with trio.fail_after(PATIENCE):
        async with open_node(more) as node:
            fence = await node.wait_turn()
            while "bot" not in node.accounts()[0]:
                await node.wait_changed(0.1)
            await node.use(config)
            await node.look()
            assert node.may_write(fence), "nothing else of it ends with a connector"


async def test_a_bot_goes_to_no_node_that_has_refused_the_settings_with_it(
    tmp_path: Path,
) -> None:
    emptied()
    mine, others = (settings(tmp_path, name) for name in ("a", "b"))
    suits_b = (f"bot{n}" for n in itertools.count() if is_home(f"account/bot{n}", "b"))
    bot = next(suits_b)
    more = replace(mine, connectors={**mine.connectors, bot: BOT})
    with trio.fail_after(PATIENCE):
        async with open_node(mine) as node, open_node(others) as refusing:
            await node.wait_turn()
            await refusing.wait_turn()
            await node.use(more)
            while bot not in node.accounts()[0]:
                assert bot not in refusing.accounts()[0]
                await node.wait_changed(0.1)
            await node.prepare_to_leave()
            await node.hand_over()
            await refusing.look()
            assert not refusing.accounts()[0], "nobody has it until somebody can"
            await refusing.use(replace(others, connectors=more.connectors))
            while bot not in refusing.accounts()[0]:
                await refusing.wait_changed(0.1)


async def test_a_node_that_comes_back_gives_up_what_others_can_do_until_it_has_begun(
    tmp_path: Path,
) -> None:
    emptied()
    # So long that nobody is taken over from, however slow the machine is.
    first, second = (settings(tmp_path, name) for name in ("a", "b"))
    first, second = (
        replace(x, nodes=replace(x.nodes, ttl=60.0)) for x in (first, second)
    )
    with trio.fail_after(PATIENCE):
        async with open_node(first) as node:
            await node.wait_turn()
            node.note_begun()
            await node.look()
            with shared().connect("tests") as db:
                theirs = "name < 'part/2' OR name = 'company'"
                moved = "UPDATE lease SET owner = 'b', epoch = epoch + 1 WHERE "
                db.execute(moved.encode() + theirs.encode())
            async with open_node(second) as again:
                assert again.parts()[0] == frozenset(), "it has not begun"
                while len(node.parts()[0]) < PARTS or not node.is_seated:
                    assert not again.is_seated
                    await node.look()
                await again.wait_turn()


async def test_who_leaves_gives_early_to_who_answers_and_is_given_nothing(
    tmp_path: Path,
) -> None:
    emptied()
    first, second = (settings(tmp_path, name) for name in ("a", "b"))
    with trio.fail_after(PATIENCE):
        async with open_node(first) as node, open_node(second) as other:
            await node.wait_turn()
            node.note_begun()
            await node.prepare_to_leave()
            assert len(node.parts()[0]) == PARTS
            assert not node.parts()[1], "nobody answers yet who could go on"
            other.note_begun()
            await other.look()
            await node.look()
            assert node.heirs().keys() >= {f"part/{number}" for number in range(PARTS)}
            assert {*node.heirs().values()} == {"b"}
            await other.look()
            seen = other._seen
            assert seen is not None
            assert seen.begun == {"b"}, "the other one gives nothing to who leaves"


def is_home(lease: str, node: str) -> bool:
    return homes([lease], [], {"a", "b"}) == {lease: node}


async def test_what_a_node_says_of_itself_is_said_again_if_it_could_not_be(
    tmp_path: Path,
) -> None:
    emptied()
    config = settings(tmp_path, "a")
    more = replace(config, connectors={**config.connectors, "bot": BOT})
    with trio.fail_after(PATIENCE):
        async with open_node(config) as node:
            await node.wait_turn()
            with shared().connect("tests") as db:
                db.execute("ALTER TABLE node_card RENAME TO away")
                with pytest.raises(StoreError):
                    await node.use(more)
                db.execute("ALTER TABLE away RENAME TO node_card")
            await node.use(more)
            while "bot" not in node.accounts()[0]:
                await node.wait_changed(0.1)


def test_what_listens_at_an_address_of_before_is_closed() -> None:
    names = ("same", "moved", "gone")
    sockets = {name: socket.socket() for name in names}
    doors = dict(zip(names, sockets.values(), strict=True))
    before = {name: ("127.0.0.1", 8080 + at) for at, name in enumerate(names)}
    after = {"same": before["same"], "moved": ("127.0.0.1", 9090)}
    close_moved(sockets, before, after)
    assert [*sockets] == ["same"]
    assert [door.fileno() < 0 for door in doors.values()] == [False, True, True]
    sockets["same"].close()


def test_what_a_node_is_by_itself_need_not_agree() -> None:
    one = AppConfig(
        nodes=NodesConfig(name="a", address="10.0.0.1"),
        store=StoreConfig(path="/one/callboard.db"),
        connectors={"http": HttpConfig(port=1, host="10.0.0.1")},
    )
    two = AppConfig(
        nodes=NodesConfig(name="b"),
        connectors={"http": HttpConfig(port=2)},
        default_agent="ben",
    )
    assert differing(comparable(one, KEY), comparable(two, KEY)) == ["default_agent"]
    three = msgspec.structs.replace(two, nodes=NodesConfig(name="b", ttl=9.0))
    assert differing(comparable(two, KEY), comparable(three, KEY)) == ["nodes.ttl"]


class NextLimits(LimitsConfig, frozen=True):
    """The limits of a release that knows one more, and has another default for one."""

    max_in_flight: int = 33
    patience: float = 2.5


@pytest.mark.parametrize(
    ("older", "newer", "named"),
    [
        ({}, {}, []),
        ({}, {"patience": 3.0}, ["limits.patience"]),
        ({"max_in_flight": 7}, {"max_in_flight": 7}, []),
        ({"max_in_flight": 7}, {}, ["limits.max_in_flight"]),
        ({"max_in_flight": 33}, {"max_in_flight": 33}, []),
    ],
)
def test_what_a_release_adds_with_its_default_is_no_difference(
    older: dict[str, int], newer: dict[str, Any], named: list[str]
) -> None:
    one = AppConfig(limits=LimitsConfig(**older))
    two = replace(AppConfig(), limits=NextLimits(**newer))
    mine, theirs = comparable(one, KEY), comparable(two, KEY)
    assert differing(mine, theirs) == differing(theirs, mine) == named


def test_a_table_that_only_one_node_has_differs_though_nothing_stands_in_it() -> None:
    one = AppConfig(agents={"anna": AgentConfig(description="x")})
    two = AppConfig(agents={**one.agents, "ben": AgentConfig()})
    assert differing(comparable(one, KEY), comparable(two, KEY)) == ["agents.ben"]
    assert "agents.anna" in differing(
        comparable(AppConfig(), KEY), comparable(one, KEY)
    )


def test_no_value_of_a_setting_can_be_read_from_what_is_compared() -> None:
    config = AppConfig(owners=("http/zoe",))
    assert "zoe" not in str(comparable(config, KEY))
    other = bytes([1] * 32)
    assert comparable(config, KEY) != comparable(config, other)


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (AppConfig(nodes=NodesConfig(address="10.0.0.5")), ["nodes.address"]),
        (AppConfig(nodes=NodesConfig(name="a")), ["nodes.name"]),
        (
            AppConfig(
                nodes=NodesConfig(name="A b"), store=StoreConfig(kind="postgresql")
            ),
            ["nodes.name"],
        ),
        (
            AppConfig(
                nodes=NodesConfig(name="a", address="10.0.0.5:80"),
                store=StoreConfig(kind="postgresql", synchronous="normal"),
                connectors={"http": HttpConfig(port=0)},
            ),
            ["nodes.address", "store.synchronous", "connectors.http.port"],
        ),
        (
            AppConfig(
                nodes=NodesConfig(name="a"),
                store=StoreConfig(kind="postgresql"),
                connectors={"http": HttpConfig()},
            ),
            ["nodes.address"],
        ),
        (
            AppConfig(
                nodes=NodesConfig(name="a", address="fd00::5"),
                store=StoreConfig(kind="postgresql"),
                connectors={"http": HttpConfig()},
            ),
            [],
        ),
    ],
)
def test_settings_that_cannot_work_with_nodes_are_named(
    config: AppConfig, named: list[str]
) -> None:
    found = [".".join(map(str, each.way)) for each in check_nodes(config)]
    assert found == named


def listed(name: str, state: str) -> ListedNode:
    return ListedNode(name, state, 0, (), "m", 1, "10.0.0.5", "0.1.0")


def reported(name: str, state: str, *reasons: str) -> NodeReply:
    report = NodeReport(reasons, 40, turns=2, cost=0.5, accounts=())
    return NodeReply(listed(name, state), body=msgspec.json.encode(report))


REPLIES = [
    reported("a", RUNS),
    reported("b", "works on its parts", "account main is not let in"),
    NodeReply(listed("c", GONE), "no actors run there"),
    NodeReply(listed("d", "works on its parts"), "did not answer within 3 s"),
    NodeReply(listed("e", STANDS_BY), "no actors run there"),
]


def test_the_status_shows_all_nodes_with_sums() -> None:
    found = CompanyStatus(release="1", database="d", process=7, node="a")
    to_do: list[str] = []
    found = with_nodes(found, REPLIES, to_do)
    shown = [*lines(found)]
    assert shown[0].startswith("callboard 1: node a, process 7, ")
    table = [x.split() for x in shown if x.startswith(("nodes ", " " * 11))]
    assert table[0][1:] == [
        "NODE",
        "STATE",
        "READY",
        "PARTS",
        "ANSWERING",
        "CONNECTORS",
    ]
    assert [row[0] for row in table[1:]] == ["a", "b", "c", "d", "e", "all"]
    assert table[1] == ["a", "runs", "the", "company", "yes", "-", "2", "-"]
    assert table[2][5:] == ["NO", "-", "2", "-"]
    assert table[4][5:] == ["-", "-", "-", "-"]
    assert table[6] == ["all", "-", "-", "-", "4", "-"]
    assert to_do == [
        "node b is not ready: account main is not let in",
        "node c is gone: start it, or callboard nodes remove c",
        "node d says nothing: did not answer within 3 s",
    ]
    standing = CompanyStatus(release="1", database="d", node="e")
    assert next(lines(standing)) == "callboard 1: node e stands by"
    with_nodes(found, REPLIES[1:], to_do)
    assert to_do[-1] == "no node runs the company: callboard nodes list"


def test_the_status_of_one_process_speaks_of_no_nodes() -> None:
    found, to_do = CompanyStatus(release="1", database="d", process=7), list[str]()
    found = with_nodes(found, [], to_do)
    assert to_do == []
    assert not any("node" in each for each in lines(found))


def test_probes_of_a_node_that_stands_by() -> None:
    assert probe_answer(b"/healthz", "in trouble", "a").startswith(b"HTTP/1.1 200 OK")
    assert probe_answer(b"/readyz", "", "a").startswith(b"HTTP/1.1 200 OK")
    away = probe_answer(b"/readyz", "no node runs the company", "a")
    assert away.startswith(b"HTTP/1.1 503 ")
    assert b"no node runs the company" in away
    shown = probe_answer(b"/metrics", "", "a")
    assert b'\ncallboard_node_standing_by{node="a"} 1\n' in shown
    assert probe_answer(b"/actors", "", "a").startswith(b"HTTP/1.1 404 ")


def test_a_server_on_all_addresses_is_reached_on_its_own() -> None:
    assert reachable("0.0.0.0") == "127.0.0.1"  # noqa: S104
    assert reachable("::") == "::1"
    assert reachable("10.0.0.5") == "10.0.0.5"


EVERYTHING = AppConfig(
    connectors={
        "http": HttpConfig(),
        "discord": DiscordConfig(accounts={}),
        "matrix": MatrixConfig(homeserver="https://matrix.test", accounts={}),
        "qq": QQConfig(accounts={}),
        "polled": TelegramConfig(accounts={}),
        "called": TelegramConfig(accounts={}, mode="webhook"),
        "socket": SlackConfig(accounts={"anna": SLACK}),
        "events": SlackConfig(
            accounts={
                "anna": replace(SLACK, app_token=None, signing_secret=Secret("x"))
            }
        ),
        "websocket": WebSocketConfig(),
    }
)
NAMES = ("a", "b", "c")
ACCOUNTS = ("discord", "matrix", "qq", "polled", "socket")


def test_what_only_calls_its_platform_has_a_lease_of_its_own() -> None:
    assert account_leases(EVERYTHING) == [f"account/{name}" for name in ACCOUNTS]
    assert is_sharing(AppConfig(connectors={"qq": QQConfig(accounts={})}))
    assert is_sharing(AppConfig(connectors={"websocket": WebSocketConfig()}))
    assert not is_sharing(AppConfig(connectors={"page": PageConfig()}))


@given(part=st.integers(0, PARTS - 1), data=st.data())
def test_each_chat_is_that_nodes_which_has_its_lease_and_nobody_elses(
    part: int, data: st.DataObject
) -> None:
    leases = (f"part/{part}", COMPANY, *account_leases(EVERYTHING))
    owner_of = {name: data.draw(st.sampled_from(NAMES)) for name in leases}
    all_duties = {name: duties_of(name, owner_of) for name in NAMES}
    for connector in (*EVERYTHING.connectors, "removed"):
        having = [name for name in NAMES if all_duties[name].has(connector, part)]
        assert having == [owner_of[lease_of(EVERYTHING, connector, part)]]
        sending = [name for name in NAMES if all_duties[name].sends(connector, part)]
        assert sending == [owner_of[lease_to_send(EVERYTHING, connector, part)]]
        for name in NAMES:
            is_away = all_duties[name].is_away(connector)
            assert not (is_away and name in sending)
            assert is_away or name in sending or connector not in ACCOUNTS


def duties_of(node: str, owner_of: dict[str, str]) -> Duties:
    """Give the duties of a node that has the leases that are its own."""
    mine = {name for name, owner in owner_of.items() if owner == node}
    duties = Duties()
    duties.parts = frozenset(part for part in range(PARTS) if f"part/{part}" in mine)
    duties.accounts = frozenset(
        x for x in EVERYTHING.connectors if f"account/{x}" in mine
    )
    duties.has_rest = COMPANY in mine
    duties.is_shared = partial(has_parts, EVERYTHING)
    duties.is_leased = partial(is_leased, EVERYTHING)
    return duties
