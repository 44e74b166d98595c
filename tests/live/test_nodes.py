"""Proves that a company of several nodes loses and doubles nothing, whatever is killed.

`CALLBOARD_FAULTS=200 pytest -m live tests/live/test_nodes.py -k nothing_is_lost` makes
200 faults; `CALLBOARD_FIGURES=FILE` writes after each how long people have waited;
`CALLBOARD_FAIL_OVERS` says how often the database moves to its standby,
`CALLBOARD_MOVES` how often a node gives its work away; in a quarter of these nothing
happens, to compare with.
"""

from __future__ import annotations

import itertools
import os
import re
import secrets
import shutil
import signal
import socket
import sys
from collections import Counter
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
import trio
import trio.testing
from wsproto.utilities import LocalProtocolError

from actors.messages.keys import chat_partition
from connectors.chat.websocket.frames import chat_of
from runtime import __version__
from runtime.postgresql.migrations import FORMATS
from runtime.postgresql.nodes import NodesFromOutside
from runtime.postgresql.server import PostgresqlServer
from runtime.store.rows import PARTS
from tests.fakes.store.cut_proxy import CutProxy
from tests.fakes.telegram.api import FakeTelegram
from tests.fakes.telegram.chats import Chat, FakeBot
from tests.fakes.telegram.server import on_a_socket
from tests.fakes.websocket.client import SocketClient
from tests.live.test_postgresql_faults import BETWEEN, CHATS, PAUSE, Company, check
from tests.processes.running import (
    PATIENCE,
    ROOT,
    Finished,
    Server,
    environment,
    run,
    served,
)
from tests.support.chat.telegram_bed import ZOE
from tests.support.store.postgresql import PORT, ServerProcess, use_standby

FAULTS = int(os.environ.get("CALLBOARD_FAULTS", "20"))
FAIL_OVERS = int(os.environ.get("CALLBOARD_FAIL_OVERS", "2"))
MOVED = int(os.environ.get("CALLBOARD_MOVES", "4"))
FIGURES = os.environ.get("CALLBOARD_FIGURES", "")
NAMES = ("a", "b", "c")

TAIL = 25
"""Lines of a node's log that are shown when something has hung."""

WAITING = """SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'
    AND application_name LIKE '%/writer%'"""
CUT = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE starts_with(application_name, 'callboard')"""
OLD = "application_name=callboard/"
TRIES = 10

THOUGHT = 0.3
"""Seconds that people think before they write again."""

MOVES = ("calm", "drain", "end", "command")
"""How a node gives its work away: told to in the database, by SIGTERM, and by a
command, whose start takes processor time, too; and for comparison, not at all."""

HAS = "SELECT count(*)::int FROM lease WHERE owner = %s"

SLOWLY = " ".join(map(str, range(20)))
"""What takes a while to say."""

RETRIED = {"unavailable", "stopping", "busy"}
"""What a client may be told when it has to say something again."""

KINDS = (
    "kill owner",
    "cut all",
    "stop owner",
    "end owner",
    "move",
    "cut owner off",
    "kill other",
    "kill server",
    "stop other",
)


def free_port() -> int:
    """Find a port that nobody listens on, nor is given to a client before a restart."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


class Nodes(Company):
    """Three nodes, each behind a proxy of its own, and people who write to any."""

    more = ""
    """Further tables of their settings."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.ports = {name: free_port() for name in NAMES}
        way = self.database.folder / ".s.PGSQL.5432"
        self.proxies = {name: CutProxy(way) for name in NAMES}
        self.running: dict[str, Server] = {}
        self.stacks = {name: ExitStack() for name in NAMES}
        self.turn = itertools.cycle(NAMES)
        self.hung: set[str] = set()
        self.scopes: dict[str, set[trio.CancelScope]] = {name: set() for name in NAMES}
        """Of each node, the requests that came to it."""

        self._scope = trio.CancelScope()
        self.helpers: trio.Nursery | None = None
        """Starts nodes again while others go on."""
        self.faults: list[tuple[str, float, float]] = []
        """What went wrong, when, and when all was well again; seconds."""

    def variables(self, name: str) -> dict[str, Any]:
        """Give what a node's settings differ by."""
        port = self.proxies[name].port
        return {
            "CALLBOARD_STORE__KIND": "postgresql",
            "CALLBOARD_STORE__DSN": '{ env = "CB_DSN" }',
            "CB_DSN": f"host=127.0.0.1 port={port} user=callboard dbname=postgres",
            "CALLBOARD_NODES__NAME": name,
            "CALLBOARD_NODES__ADDRESS": "127.0.0.1",
            "CALLBOARD_NODES__TTL": "2",
            "CALLBOARD_CONNECTORS__HTTP__PORT": str(self.ports[name]),
            "CALLBOARD_LOG__FILE": str(self.folder / f"{name}.log"),
        }

    def begin(self, name: str) -> None:
        """Start a node."""
        made = served(self.folder, more=self.more, **self.variables(name))
        self.running[name] = self.stacks[name].enter_context(made)

    async def finish(self, name: str, number: signal.Signals | None = None) -> int:
        """End a node; None: it has its signal."""
        server = self.running.pop(name)
        code = await (server.wait() if number is None else server.end(number))
        self.stacks[name].close()
        return code

    def entrance(self) -> Server | None:
        """Give the next node that is there."""
        for name in itertools.islice(self.turn, len(NAMES)):
            if name in self.running and name not in self.hung:
                self.scopes[name].add(self._scope)
                return self.running[name]
        return None

    async def ask(self, chat: str, words: str, key: str = "") -> str:
        """Write once; empty if there was no answer."""
        with trio.CancelScope() as scope:
            self._scope = scope
            try:
                return await super().ask(chat, words, key)
            finally:
                for scopes in self.scopes.values():
                    scopes.discard(scope)
        return ""

    def hang(self, name: str) -> None:
        """Stop a node; a proxy before it sends those who wait for it elsewhere."""
        self.hung.add(name)
        self.running[name].process.send_signal(signal.SIGSTOP)
        for scope in [*self.scopes[name]]:
            scope.cancel()

    def begin_again(self, name: str) -> None:
        """Start a node while others go on."""
        assert self.helpers is not None
        self.helpers.start_soon(trio.to_thread.run_sync, self.begin, name)

    async def wait_running(self) -> None:
        """Wait until all nodes run."""
        while self.running.keys() != {*NAMES}:
            await trio.testing.wait_all_tasks_blocked(PAUSE)

    async def wait_everybody(self) -> None:
        """Wait until each person has got the answer that is waited for now."""
        before = trio.current_time()
        while any(since <= before for since in self.asked.values()):
            await trio.testing.wait_all_tasks_blocked(PAUSE)

    def owner(self) -> str:
        """Name the node that runs the company."""
        return str(self.rows("SELECT owner FROM lease WHERE name = 'company'")[0][0])

    async def wait_owner(self, *not_these: str) -> str:
        """Wait until another node than these runs the company."""
        while (name := self.owner()) in {"", *not_these}:
            await trio.testing.wait_all_tasks_blocked(PAUSE)
        return name

    def parts(self) -> dict[int, str]:
        """Give the node of each part of the chats that nodes share."""
        query = "SELECT name, owner FROM lease WHERE name LIKE 'part/%'"
        return {int(name.split("/")[1]): owner for name, owner in self.rows(query)}

    async def wait_without(self, name: str) -> None:
        """Wait until others have taken over all that a node had."""
        while name in {*self.parts().values(), self.owner()}:
            await trio.testing.wait_all_tasks_blocked(PAUSE)

    async def fault(self, kind: str) -> None:
        """Let something go wrong, and wait until all is well.

        Who was killed is started again at once, as a supervisor does: it starts while
        people wait.
        """
        await self.wait_running()
        owner = await self.wait_owner()
        other = next(name for name in NAMES if name != owner)
        match kind:
            case "kill owner" | "end owner" | "kill other":
                name = other if kind == "kill other" else owner
                hard = signal.SIGTERM if kind == "end owner" else signal.SIGKILL
                code = await self.finish(name, hard)
                assert (code == 0) == (kind == "end owner")
                self.begin_again(name)
            case "stop owner" | "stop other":
                name = other if kind == "stop other" else owner
                self.hang(name)
                await self.wait_without(name)
                await self.wait_everybody()
                self.running[name].process.send_signal(signal.SIGCONT)
                self.hung.clear()
            case "cut owner off":
                self.proxies[owner].is_away = True
                self.proxies[owner].cut()
                await self.wait_owner(owner)
                await self.wait_everybody()
                self.proxies[owner].is_away = False
            case "move":
                said = await trio.to_thread.run_sync(self.move, owner)
                assert said.code == 0, f"{said.said}\n{self.beliefs()}"
                assert self.owner() != owner
            case "kill server":
                self.database.kill()
                await trio.to_thread.run_sync(self.database.start)
            case _:
                for proxy in self.proxies.values():
                    proxy.cut()
        await self.wait_answers(BETWEEN)
        await self.wait_everybody()

    def move(self, owner: str) -> Finished:
        """Have the owner give all away by command."""
        command = ("nodes", "drain", owner, "--wait", str(PATIENCE / 2))
        return run(*command, folder=self.folder, **self.variables(owner))

    def log(self) -> str:
        """Give what the nodes have said."""
        logs = [*self.folder.glob("*.log"), self.folder / "stderr"]
        return "".join(each.read_text() for each in logs)

    def beliefs(self) -> str:
        """Say what the database and each node believe, and who waits for an answer."""
        now = trio.current_time()
        waiting = {x: round(now - since, 1) for x, since in self.asked.items()}
        said = [f"seconds without an answer, by chat: {waiting}", f"hung: {self.hung}"]
        with suppress(psycopg.Error):
            said += map(str, self.rows("SELECT * FROM node ORDER BY id"))
            owned = "SELECT owner, wanted, count(*) FROM lease GROUP BY 1, 2"
            said += map(str, self.rows(owned))
        for name in NAMES:
            said.append(f"--- {name}, which {self.state_of(name)}")
            log = self.folder / f"{name}.log"
            said += log.read_text().splitlines()[-TAIL:] if log.exists() else ()
        return "\n".join(said)

    def state_of(self, name: str) -> str:
        """Say what a node's process is doing."""
        if name not in self.running:
            return "is not running"
        pid = self.running[name].process.pid
        status = Path(f"/proc/{pid}/status")
        state = status.read_text().split("State:")[1].split("\n")[0].strip()
        return f"is process {pid}, {state}"

    def silences(self) -> list[tuple[str, float]]:
        """Give the longest that each chat waited during a fault, and the kind of it.

        In seconds; who still waits when the next fault begins waits for that one.
        """
        found: list[tuple[str, float]] = []
        for kind, began, ended in self.faults:
            longest = dict.fromkeys(range(CHATS), 0.0)
            for chat, written, answered in self.waited:
                if written < ended and answered > began:
                    waited = min(answered, ended) - max(written, began)
                    longest[chat] = max(longest[chat], waited)
            found += [(kind, each) for each in longest.values()]
        return found

    def write_figures(self, found: str = "") -> None:
        """Write the figures where they are wanted."""
        if FIGURES:
            Path(FIGURES).write_text(f"{self.figures()}\n{found}")

    def figures(self) -> str:
        """Say in lines what was done, and how long people waited."""
        found = self.silences()
        done = f"{len(self.faults)} faults, {self.answered} messages answered"
        lines = [f"{done}, {self.apologies} of them with an apology"]
        for kind in dict.fromkeys(("", *(kind for kind, *_ in self.faults))):
            waits = sorted(x for name, x in found if kind in {"", name})
            took = [e - b for name, b, e in self.faults if kind in {"", name}]
            if waits:
                p50, p99 = (waits[len(waits) * part // 100] for part in (50, 99))
                lines.append(
                    f"{kind or 'all'}: {len(took)} faults of at most {max(took):.1f} s;"
                    f" a chat waited p50 {p50:.2f} s, p99 {p99:.2f} s,"
                    f" at most {waits[-1]:.2f} s"
                )
        return "\n".join(lines)

    def end(self) -> None:
        """End all that was started."""
        for stack in self.stacks.values():
            stack.close()
        for proxy in self.proxies.values():
            proxy.close()
        super().end()


class NodesOfTwoServers(Nodes):
    """Nodes whose database has a synchronous standby, and no proxies before it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        replicate(self.database, "*")
        self.standby = ServerProcess(
            "fsync=on", "log_connections=on", primary=self.database
        )
        hosts = f"{self.standby.folder},{self.database.folder}"
        self.dsn = (
            f"host={hosts} port={PORT},{PORT} user=callboard dbname=postgres"
            " target_session_attrs=read-write"
        )

    def variables(self, name: str) -> dict[str, Any]:
        """Give what a node's settings differ by."""
        return super().variables(name) | {"CB_DSN": self.dsn}

    async def fault(self, kind: str) -> None:
        """Have the standby become the primary, and the other one its standby."""
        if kind == "cancel":
            self.standby.kill()
            await self.cancel_waits()
        self.database.kill()
        if kind == "cancel":
            await trio.to_thread.run_sync(self.standby.start)
        await trio.to_thread.run_sync(self.standby.promote)
        self.database, self.standby = self.standby, self.database
        if kind == "return":
            await self.have_old_return()
        await trio.to_thread.run_sync(self.standby.follow, self.database)
        await self.wait_answers(BETWEEN)

    async def have_old_return(self) -> None:
        """Have the old primary, which stands first in the address, take writes."""
        replicate(self.database, "")
        await self.wait_answers(BETWEEN)
        await trio.to_thread.run_sync(self.standby.start)
        replicate(self.standby, "")
        before = self.tries()
        self.rows(CUT)
        while self.tries() < before + TRIES:
            await trio.testing.wait_all_tasks_blocked(PAUSE)
        self.standby.kill()
        replicate(self.database, "*")

    def tries(self) -> int:
        """Count how often nodes have connected to the old primary."""
        return (self.standby.folder / "log").read_text().count(OLD)

    async def cancel_waits(self) -> None:
        """Do what must acknowledge nothing: end a commit's wait for the standby."""
        seen: list[int] = []
        while len(seen) < 2:
            for row in self.rows(WAITING):
                if row[0] not in seen:
                    seen.append(row[0])
                    self.rows(f"SELECT pg_cancel_backend({row[0]})")
            await trio.testing.wait_all_tasks_blocked(PAUSE)

    def end(self) -> None:
        """End all that was started."""
        super().end()
        self.standby.end()


def replicate(server: ServerProcess, to: str) -> None:
    """Have a server's commits wait for these standbys."""
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as db:
        use_standby(db, to)


async def under_load(nodes: Nodes, kinds: tuple[str, ...]) -> None:
    """Let people write while one thing after the other goes wrong."""
    async with trio.open_nursery() as nursery:
        nodes.helpers = nursery
        for chat in range(CHATS):
            nursery.start_soon(nodes.talk, chat)
        await nodes.wait_answers(BETWEEN)
        for kind in kinds:
            began = trio.current_time()
            with trio.move_on_after(2 * PATIENCE) as limit:
                await nodes.fault(kind)
            assert not limit.cancelled_caught, f"{kind}\n{nodes.beliefs()}"
            nodes.faults.append((kind, began, trio.current_time()))
            nodes.write_figures()
        nodes.is_over = True


@pytest.mark.live
@pytest.mark.timeout(0)
async def test_nothing_is_lost_or_doubled_by_three_nodes(tmp_path: Path) -> None:
    nodes = Nodes(tmp_path)
    try:
        for name in NAMES:
            await trio.to_thread.run_sync(nodes.begin, name)
        await under_load(nodes, tuple(itertools.islice(itertools.cycle(KINDS), FAULTS)))
        await nodes.wait_running()
        for name in NAMES:
            assert await nodes.finish(name, signal.SIGTERM) == 0
        check(nodes, FAULTS)
        assert "Traceback" not in nodes.log()
        nodes.write_figures("nothing was lost, doubled or out of order\n")
    finally:
        nodes.end()


class MovedNodes(Nodes):
    """Three nodes that give their work away, and people who think between messages.

    So there is processor time left: what they wait for is the move, not their turn.
    """

    async def talk(self, chat: int) -> None:
        """Write one message after the other, and think a while after each answer."""
        while not self.is_over:
            number, before = self.sent[chat], trio.current_time()
            self.asked[chat] = before
            answer = ""
            while not answer:
                answer = await self.ask(f"chat{chat}", f"{chat}-{number}")
            assert answer == f"you said {chat}-{number}"
            self.waited.append((chat, self.asked.pop(chat), trio.current_time()))
            self.sent[chat] += 1
            self.answered += 1
            await trio.sleep(THOUGHT)

    async def fault(self, kind: str) -> None:
        """Have the node that runs the company give all away; or nothing happens.

        What is measured ends when others have all, and people were answered by them. A
        new process begins after that, as it would on a machine of its own.
        """
        owner = await trio.to_thread.run_sync(self.owner)
        if kind == "end":
            assert await self.finish(owner, signal.SIGTERM) == 0
        if kind == "drain":
            await trio.to_thread.run_sync(self.drain, owner)
        if kind == "command":
            variables = self.variables(owner)
            command = partial(run, "nodes", "drain", owner, folder=self.folder)
            done = await trio.to_thread.run_sync(partial(command, **variables))
            assert done.code == 0, done.said
        await self.wait_answers(4 * CHATS)
        await self.wait_everybody()

    def drain(self, owner: str) -> None:
        """Have a node drained, without a command's own start, until it has nothing."""
        outside = NodesFromOutside(PostgresqlServer(self.database.dsn("postgres")))
        assert outside.set_drained(owner, is_drained=True)
        with psycopg.connect(self.database.dsn("postgres"), autocommit=True) as db:
            while db.execute(HAS.encode(), (owner,)).fetchone() != (0,):
                db.execute("SELECT pg_sleep(0.05)")

    async def mend(self) -> None:
        """Have all nodes work again."""
        for name in NAMES:
            if name not in self.running:
                await trio.to_thread.run_sync(self.begin, name)
        outside = NodesFromOutside(PostgresqlServer(self.database.dsn("postgres")))
        for name in NAMES:
            resume = partial(outside.set_drained, name, is_drained=False)
            assert await trio.to_thread.run_sync(resume)
        while {*(await trio.to_thread.run_sync(self.parts)).values()} != {*NAMES}:
            await trio.testing.wait_all_tasks_blocked(PAUSE)


@pytest.mark.live
@pytest.mark.timeout(0)
async def test_nobody_is_kept_waiting_by_a_node_that_gives_its_work_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = MovedNodes(tmp_path)
    try:
        for name in NAMES:
            await trio.to_thread.run_sync(nodes.begin, name)
        async with trio.open_nursery() as nursery:
            for chat in range(CHATS):
                nursery.start_soon(nodes.talk, chat)
            for kind in itertools.islice(itertools.cycle(MOVES), MOVED):
                with trio.fail_after(4 * PATIENCE):
                    await nodes.mend()
                    began = trio.current_time()
                    await nodes.fault(kind)
                nodes.faults.append((kind, began, trio.current_time()))
            nodes.is_over = True
        for name in [*nodes.running]:
            assert await nodes.finish(name, signal.SIGTERM) == 0
        check(nodes, MOVED)
        assert "Traceback" not in nodes.log()
        nodes.write_figures()
        with capsys.disabled():
            sys.stdout.write(f"\n{nodes.figures()}\n")
    finally:
        nodes.end()


class TwoNodes(Nodes):
    """Two nodes, and people who ask at the first one."""

    def heard(self, name: str) -> int:
        """Count the messages that a node has taken in."""
        return (self.folder / f"{name}.log").read_text().count('"message received"')

    async def wait_shared(self) -> None:
        """Wait until each has half of the chats."""
        while Counter(self.parts().values()) != {"a": PARTS // 2, "b": PARTS // 2}:
            await trio.testing.wait_all_tasks_blocked(PAUSE)

    def chats_of(self, name: str, count: int, prefix: str) -> list[str]:
        """Name chats that a node works on."""
        parts = self.parts()
        names = (f"{prefix}{number}" for number in itertools.count())
        mine = (x for x in names if parts[chat_partition("http", x)] == name)
        return list(itertools.islice(mine, count))

    async def check_stop(self) -> None:
        """Have a `/stop` at one node end what the other one works on."""
        (chat,) = self.chats_of("b", 1, "stopped")
        before = self.heard("b")
        async with trio.open_nursery() as nursery:
            words = " ".join(map(str, range(10_000)))  # for a quarter of an hour
            nursery.start_soon(self.ask, chat, f"slowly {words}", "slow")
            while self.heard("b") == before:
                await trio.testing.wait_all_tasks_blocked(PAUSE)
            assert await self.ask(chat, "/stop", "stop")
        assert self.rows("SELECT count(*) FROM inbox WHERE state = 'cancelled'") == [
            (1,)
        ]

    async def ask_slowly(self, chat: str) -> None:
        """Ask something that takes a while to answer."""
        assert await self.ask(chat, f"slowly {SLOWLY}", key=chat) == SLOWLY

    async def take_away(self, name: str, how: signal.Signals) -> None:
        """Send a signal to a node while it answers, until others go on with it."""
        await self.wait_shared()
        heard = self.heard(name)
        async with trio.open_nursery() as nursery:
            for owner in NAMES[:2]:
                for chat in self.chats_of(owner, 3, how.name):
                    nursery.start_soon(self.ask_slowly, chat)
            while self.heard(name) < heard + 3:
                await trio.testing.wait_all_tasks_blocked(PAUSE)
            self.running[name].process.send_signal(how)
            await self.wait_without(name)


class NodesWithSockets(TwoNodes):
    """Two nodes, and people who talk by WebSocket with the first one."""

    more = '[connectors.socket]\nkind = "websocket"'

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.sockets = {name: free_port() for name in NAMES}

    def variables(self, name: str) -> dict[str, Any]:
        """Give what a node's settings differ by."""
        port = {"CALLBOARD_CONNECTORS__SOCKET__PORT": str(self.sockets[name])}
        return super().variables(name) | port

    def clients_of(self, name: str, count: int, prefix: str) -> list[str]:
        """Name clients whose chats a node works on."""
        parts = self.parts()
        made = (f"{prefix}-client-{number:09d}" for number in itertools.count())
        mine = (x for x in made if parts[chat_partition("socket", chat_of(x))] == name)
        return list(itertools.islice(mine, count))

    async def talk_slowly(self, client: str) -> None:
        """Say one thing, and come again until all is said to it, and no more."""
        for after in (-1, 0):
            while not (said := await self.visit(client, typing=True, after=after)):
                await trio.testing.wait_all_tasks_blocked(PAUSE)
            assert said == [SLOWLY]

    async def visit(self, client: str, **hello: object) -> list[str]:
        """Connect, and say it, until it is answered or the connection has ended."""
        try:
            stream = await trio.open_tcp_stream("127.0.0.1", self.sockets["a"])
        except OSError:
            return []
        socket = SocketClient(stream)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(socket.run)
            with suppress(trio.BrokenResourceError, LocalProtocolError):
                await socket.ask()
                await socket.wait(lambda: socket.has_ended or socket.is_accepted)
                await socket.send("hello", client=client, **hello)
                words = f"slowly {SLOWLY}"
                await socket.send("message", id="m", content=words)
                await socket.wait(
                    lambda: (
                        socket.has_ended
                        or bool(socket.said())
                        or bool(socket.of("error"))
                    )
                )
            nursery.cancel_scope.cancel()
        assert all(each.get("code") in RETRIED for each in socket.of("error"))
        return socket.said()


@pytest.mark.live
@pytest.mark.timeout(0)
async def test_two_nodes_share_their_chats_and_one_goes_on_with_the_other_s(
    tmp_path: Path,
) -> None:
    nodes = TwoNodes(tmp_path)
    try:
        for name in NAMES[:2]:
            await trio.to_thread.run_sync(nodes.begin, name)
        nodes.hung.add("b")  # it is asked by the first one
        with trio.fail_after(4 * PATIENCE):
            await nodes.wait_shared()
            await nodes.check_stop()
        settled = "SELECT state, count(*) FROM inbox GROUP BY state"
        said = "SELECT count(*), count(DISTINCT correlation_id) FROM outbox"
        before, ((sent, _),) = Counter(dict(nodes.rows(settled))), nodes.rows(said)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            with trio.fail_after(4 * PATIENCE):
                await nodes.take_away("b", number)
                if number == signal.SIGSTOP:
                    nodes.running["b"].process.send_signal(signal.SIGCONT)
        after = Counter(dict(nodes.rows(settled)))
        assert after - before == {"replied": 12}
        assert nodes.rows(said) == [(sent + 12, sent + 12)]
        assert "Traceback" not in (tmp_path / "a.log").read_text()
    finally:
        nodes.end()


BOTS = (
    """
[presence]
draft_chars = 5
"""
    + "".join(
        f"""
[connectors.{name}]
kind = "telegram"
api_url = "{{url}}"
pace = 0.0
per_minute = 0
poll_timeout = 2.0
[connectors.{name}.access]
people = "anyone"
[connectors.{name}.accounts.anna]
token = {{{{ env = "TOKEN_{name.upper()}" }}}}
"""
        for name in ("one", "two")
    )
    + """
[[permissions]]
delegated = true
ask = ["calculate"]
"""
)
DECIDER = 900
"""Is asked for leave in the chat with the second bot, wherever somebody waits."""

PEOPLE = 3
"""Who write to each bot."""


class NodesWithBots(TwoNodes):
    """Two nodes that share two bots, and people who write to these."""

    def __init__(self, folder: Path, telegram: FakeTelegram, url: str) -> None:
        super().__init__(folder)
        self.telegram = telegram
        self.more = BOTS.format(url=url)
        number = secrets.randbelow(10**8) + 10
        self.bots = {
            name: telegram.bots[telegram.bot(number + at, f"{name}_bot")]
            for at, name in enumerate(("one", "two"))
        }
        self.chats = [
            (bot, telegram.private(person, f"{name}_bot"))
            for at, (name, bot) in enumerate(self.bots.items())
            for person in range(10 * at + 1, 10 * at + 1 + PEOPLE)
        ]
        self.before: Counter[str] = Counter()
        """How many messages there were before these people wrote, by their state."""

    def variables(self, name: str) -> dict[str, Any]:
        """Give what a node's settings differ by."""
        tokens = {
            f"TOKEN_{bot.username.partition('_')[0].upper()}": token
            for token, bot in self.telegram.bots.items()
        }
        asked = f"two/{DECIDER}@anna"
        tokens["CALLBOARD_APPROVALS__APPROVAL_CHAT"] = asked
        return super().variables(name) | tokens

    def holders(self) -> dict[str, str]:
        """Give the node of each bot."""
        query = "SELECT name, owner FROM lease WHERE name LIKE 'account/%'"
        return {name.split("/")[1]: owner for name, owner in self.rows(query)}

    async def wait_spread(self) -> None:
        """Wait until each node has one bot."""
        while sorted(self.holders().values()) != ["a", "b"]:
            await trio.testing.wait_all_tasks_blocked(PAUSE)

    async def wait_without(self, name: str) -> None:
        """Wait until others have taken over all that a node had."""
        await super().wait_without(name)
        while name in self.holders().values():
            await trio.testing.wait_all_tasks_blocked(PAUSE)

    async def write(self, bot: FakeBot, chat: Chat) -> None:
        """Write one message after the other, each when the one before is answered."""
        person = {**ZOE, "id": chat.id}
        for number in itertools.count():
            if self.is_over:
                return
            self.telegram.say(chat, person, str(number))
            while f"you said {number}" not in chat.texts(bot):
                await self.telegram.wait_change()
            self.answered += 1

    def check(self, faults: int) -> None:
        """Look whether each message was answered once, and in order."""
        repeats = 0
        for bot, chat in self.chats:
            texts = chat.texts(bot)
            assert [*dict.fromkeys(texts)] == [
                f"you said {number}" for number in range(len({*texts}))
            ]
            repeats += len(texts) - len({*texts})
        # What is being sent in the moment of a kill may stand there twice.
        assert repeats <= faults * PEOPLE
        total = sum(len({*chat.texts(bot)}) for bot, chat in self.chats)
        assert self.settled() - self.before == {"replied": total}
        said = "SELECT count(*) - count(DISTINCT id) FROM outbox WHERE state = 'sent'"
        assert self.rows(said) == [(0,)]
        assert self.rows("SELECT count(*) FROM outbox WHERE state <> 'sent'") == [(0,)]

    def settled(self) -> Counter[str]:
        """Count messages by how they ended."""
        return Counter(dict(self.rows("SELECT state, count(*) FROM inbox GROUP BY 1")))

    def chat_elsewhere(self, name: str, node: str) -> Chat:
        """Open a chat of a bot that another node works on than this one."""
        parts, people = self.parts(), map(str, itertools.count(1_000))
        bot = "@anna"
        theirs = (x for x in people if parts[chat_partition(name, x + bot)] != node)
        return self.telegram.private(int(next(theirs)), f"{name}_bot")

    async def check_asked(self) -> None:
        """Check that somebody is asked in a chat that another node works on."""
        node = self.parts()[chat_partition("two", f"{DECIDER}@anna")]
        chat = self.chat_elsewhere("two", node)
        bot = self.bots["two"]
        asked = self.telegram.private(DECIDER, "two_bot")
        person = {**ZOE, "id": DECIDER}
        for number, word in enumerate(("approve", "deny")):
            self.telegram.say(chat, person, f"sum {number} + 83")
            while sum("/approve" in x for x in asked.texts(bot)) <= number:
                await self.telegram.wait_change()
            question = next(x for x in reversed(asked.texts(bot)) if "/deny" in x)
            name = question.split("/deny ")[1].split(",")[0]
            self.telegram.say(asked, person, f"/{word} {name}")
            told = "Approved: ben may" if word == "approve" else "Denied: ben does not"
            while not any(told in x for x in asked.texts(bot)):
                await self.telegram.wait_change()
            answer = "83" if word == "approve" else "was not run"
            while not any(answer in x for x in chat.texts(bot)[-1:]):
                await self.telegram.wait_change()

    async def check_seen(self) -> None:
        """Check that people see a draft grow and can stop it, at whichever node."""
        bot, chat = self.bots["one"], self.chat_elsewhere("one", self.holders()["one"])
        person = {**ZOE, "id": chat.id}
        grown: set[str] = set()
        self.telegram.say(chat, person, f"slowly {SLOWLY}")
        while SLOWLY not in grown:
            await self.telegram.wait_change()
            grown.update(chat.texts(bot))
        assert len(grown) > 1
        assert chat.texts(bot) == [SLOWLY]
        assert chat.typing
        self.telegram.say(chat, person, f"slowly {' '.join(map(str, range(10_000)))}")
        while len(chat.texts(bot)) < 2:
            await self.telegram.wait_change()
        self.telegram.say(chat, person, "/stop")
        while not self.settled()["cancelled"]:
            await trio.testing.wait_all_tasks_blocked(PAUSE)
        while "stopped" not in chat.texts(bot)[1].lower():
            await self.telegram.wait_change()
        assert self.settled()["replied"] >= 1


@pytest.mark.live
@pytest.mark.timeout(0)
async def test_bots_are_spread_over_nodes_and_go_on_with_another_one(
    tmp_path: Path,
) -> None:
    telegram = FakeTelegram()
    async with on_a_socket(telegram) as url:
        nodes = NodesWithBots(tmp_path, telegram, url)
        try:
            for name in NAMES[:2]:
                await trio.to_thread.run_sync(nodes.begin, name)
            with trio.fail_after(4 * PATIENCE):
                await nodes.wait_shared()
                await nodes.wait_spread()
                await nodes.check_seen()
                await nodes.check_asked()
                while set(nodes.settled()) - {"replied", "cancelled"}:
                    await trio.testing.wait_all_tasks_blocked(PAUSE)
            nodes.before = nodes.settled()
            async with trio.open_nursery() as nursery:
                for bot, chat in nodes.chats:
                    nursery.start_soon(nodes.write, bot, chat)
                for number in (signal.SIGSTOP, signal.SIGKILL, signal.SIGTERM):
                    with trio.fail_after(4 * PATIENCE):
                        await lose_holder(nodes, number)
                nodes.is_over = True
            for name in NAMES[:2]:
                assert await nodes.finish(name, signal.SIGTERM) == 0
            nodes.check(3)
            assert "Traceback" not in (tmp_path / "stderr").read_text()
        finally:
            nodes.end()


async def lose_holder(nodes: NodesWithBots, number: signal.Signals) -> None:
    """Have the node of the first bot stop, and come back."""
    await nodes.wait_spread()
    await nodes.wait_answers(BETWEEN)
    name = nodes.holders()["one"]
    if number == signal.SIGSTOP:
        nodes.running[name].process.send_signal(number)
    else:
        assert (await nodes.finish(name, number) == 0) == (number == signal.SIGTERM)
    await nodes.wait_without(name)
    await nodes.wait_answers(2 * BETWEEN)
    if number == signal.SIGSTOP:
        nodes.running[name].process.send_signal(signal.SIGCONT)
    else:
        await trio.to_thread.run_sync(nodes.begin, name)
    await nodes.wait_answers(BETWEEN)


@pytest.mark.live
@pytest.mark.timeout(0)
async def test_a_client_of_any_node_is_served_by_the_node_of_its_chat_whatever_dies(
    tmp_path: Path,
) -> None:
    nodes = NodesWithSockets(tmp_path)
    try:
        for name in NAMES[:2]:
            await trio.to_thread.run_sync(nodes.begin, name)
        for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
            with trio.fail_after(4 * PATIENCE):
                await nodes.wait_shared()
                before = nodes.heard("b")
                async with trio.open_nursery() as nursery:
                    for owner in ("a", "b"):
                        for client in nodes.clients_of(owner, 3, number.name):
                            nursery.start_soon(nodes.talk_slowly, client)
                    while nodes.heard("b") < before + 3:
                        await trio.testing.wait_all_tasks_blocked(0.02)
                    nodes.running["b"].process.send_signal(number)
                    await nodes.wait_without("b")
                if number == signal.SIGSTOP:
                    nodes.running["b"].process.send_signal(signal.SIGCONT)
                if number == signal.SIGTERM:
                    assert await nodes.finish("b") == 0
                    await trio.to_thread.run_sync(nodes.begin, "b")
        assert nodes.rows("SELECT DISTINCT state FROM inbox") == [("replied",)]
        said = "SELECT count(*), count(DISTINCT correlation_id) FROM outbox"
        assert nodes.rows(said) == [(18, 18)]
        assert "Traceback" not in (tmp_path / "a.log").read_text()
    finally:
        nodes.end()


@pytest.mark.live
@pytest.mark.timeout(0)
async def test_a_fail_over_to_the_synchronous_standby_loses_nothing(
    tmp_path: Path,
) -> None:
    nodes = NodesOfTwoServers(tmp_path)
    try:
        for name in NAMES[:2]:
            await trio.to_thread.run_sync(nodes.begin, name)
        kinds = itertools.islice(itertools.cycle(("cancel", "return")), FAIL_OVERS)
        await under_load(nodes, tuple(kinds))
        for name in NAMES[:2]:
            assert await nodes.finish(name, signal.SIGTERM) == 0
        check(nodes, FAIL_OVERS)
        assert "Traceback" not in nodes.log()
    finally:
        nodes.end()


@pytest.mark.live
@pytest.mark.timeout(0)
async def test_the_script_to_try_three_nodes_goes_on_after_a_kill() -> None:
    script = ROOT / "config" / "deploy" / "nodes" / "three_nodes.sh"
    variables = environment({"PORT": str(free_port())})
    variables["PATH"] += f":{Path(sys.executable).parent}"
    del variables["CALLBOARD_ADMIN__IS_ON"]
    done = await trio.run_process(
        ["bash", script],
        env=variables,
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    said = done.stdout.decode()
    before, _, after = said.partition("kill -9 of ")
    owner = after[0]
    for node in NAMES:
        assert f"{node}: what is 6 * 7? 6 * 7 = 42\n" in before
        assert (f"{node}: what is 2 ** 10? 2 ** 10 = 1024\n" in after) == (
            node != owner
        )
    assert re.search(rf"^{owner} +runs the company", before, re.MULTILINE)
    assert re.search(rf"^{owner} +is gone", after, re.MULTILINE)
    assert re.search(rf"^[^{owner}] +runs the company", after, re.MULTILINE)


TABLES = FORMATS.tables.version
VERSION = "runtime/__init__.py"
MIGRATIONS = "runtime/postgresql/migrations.py"

Changes = tuple[tuple[str, str, str], ...]
"""Of each its file, what stands there, and what is to stand there."""

COLUMN = "\"ALTER TABLE inbox ADD COLUMN colour text NOT NULL DEFAULT 'red'\""
HINT = "RowsWritten(node, tuple(sorted(kinds)))"

ADDS: Changes = (
    (VERSION, f'"{__version__}"', '"7.1.0"'),
    (MIGRATIONS, "    STEP_BESIDE,\n", f"    STEP_BESIDE,\n    {COLUMN},\n"),
    (MIGRATIONS, "protocol=Format(version=1,", "protocol=Format(version=2,"),
    (
        "runtime/postgresql/nodes.py",
        "    host: str",
        "    mood: int = 1\n    host: str",
    ),
    ("runtime/nodes/hints.py", HINT, "('rows', node, sorted(kinds), 'more')"),
    ("actors/messages/inbound.py", "    is_bot:", "    mood: int = 1\n    is_bot:"),
    ("actors/config/limits.py", "    max_hops:", "    mood: int = 1\n    max_hops:"),
)
"""The next release: a column, a field of a message, of a card and of a hint, a setting,
and a protocol that it reads, and others need not know yet."""

NEEDS: Changes = (
    *ADDS[1:],
    (VERSION, f'"{__version__}"', '"7.2.0"'),
    (MIGRATIONS, "version=2, oldest=1", "version=2, oldest=2"),
)
"""The one after that: it writes what only that protocol knows."""


def make(folder: Path, changes: Changes) -> Path:
    """Make another release: a copy of this source with a few lines changed."""
    for package in ("runtime", "actors", "connectors", "config"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    for name, before, after in changes:
        path = folder / name
        text = path.read_text()
        assert text.count(before) == 1, (name, before)
        path.write_text(text.replace(before, after))
    return folder


class NodesOfReleases(Nodes):
    """Three nodes, each of a release of its own."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "company")
        self.next = make(folder / "next", ADDS)
        self.later = make(folder / "later", NEEDS)
        self.sources: dict[str, Path] = dict.fromkeys(NAMES, ROOT)

    def variables(self, name: str) -> dict[str, Any]:
        """Give what a node's settings differ by, and where its source is."""
        return super().variables(name) | {"PYTHONPATH": str(self.sources[name])}

    async def install(self, name: str, source: Path) -> None:
        """Have a node end and begin again with a release, and be given work."""
        if name in self.running:
            assert await self.finish(name, signal.SIGTERM) == 0
        self.sources[name] = source
        await trio.to_thread.run_sync(self.begin, name)
        while {*self.running} != {
            *(await trio.to_thread.run_sync(self.parts)).values()
        }:
            await trio.testing.wait_all_tasks_blocked(PAUSE)
        await self.wait_answers(2 * BETWEEN)
        await self.wait_everybody()

    async def refused(self, name: str, source: Path) -> str:
        """Start a node that is not let in; gives what it says."""
        self.sources[name] = source
        command = partial(run, "serve", folder=self.folder, **self.variables(name))
        done = await trio.to_thread.run_sync(command)
        assert done.code
        return done.said

    def releases(self) -> dict[str, str]:
        """Say which release each node runs, as operators see it."""
        done = run("nodes", "list", folder=self.folder, **self.variables("a"))
        lines = [line.split() for line in done.out.splitlines()[1:]]
        return {words[0]: words[-1] for words in lines}

    def version(self) -> int:
        """Give the version of the tables."""
        return int(self.rows("SELECT version FROM callboard_schema")[0][0])


async def upgrade(nodes: NodesOfReleases) -> None:
    """Go to the next release while people write, one step back, and on."""
    old, new = ROOT, nodes.next
    await nodes.install("a", old)
    await nodes.install("b", old)
    assert nodes.version() == TABLES
    await nodes.install("c", new)
    assert nodes.version() == TABLES + 1
    listed = await trio.to_thread.run_sync(nodes.releases)
    assert listed == {"a": __version__, "b": __version__, "c": "7.1.0"}
    await nodes.install("a", new)
    await nodes.install("c", old)
    assert nodes.version() == TABLES + 1
    assert await nodes.finish("a", signal.SIGTERM) == 0
    said = await nodes.refused("a", nodes.later)
    assert f"runs release {__version__} and this is 7.2.0" in said
    assert "cannot work side by side" in said
    for name in NAMES:
        await nodes.install(name, new)
    assert "" not in {*nodes.parts().values()}
    await nodes.install("b", nodes.later)
    nodes.is_over = True


@pytest.mark.live
@pytest.mark.timeout(0)
async def test_a_company_goes_to_the_next_release_node_by_node(tmp_path: Path) -> None:
    nodes = NodesOfReleases(tmp_path)
    try:
        with trio.fail_after(20 * PATIENCE):
            async with trio.open_nursery() as nursery:
                for chat in range(CHATS):
                    nursery.start_soon(nodes.talk, chat)
                await upgrade(nodes)
            for name in NAMES:
                assert await nodes.finish(name, signal.SIGTERM) == 0
        check(nodes, 9)
        assert {x for (x,) in nodes.rows("SELECT colour FROM inbox")} == {"red"}
        assert "Traceback" not in nodes.log()
    finally:
        nodes.end()
