"""One company on one, two and four nodes, and how long its conversations take to move.

PostgreSQL is Debian's, on the same machine over a Unix socket, and syncs each commit.
People write to all nodes alike, as behind a proxy that knows nothing of conversations:
of two nodes, each passes half of its requests on. On a machine with fewer cores than
nodes, the nodes share what one has.

At the end, one of two nodes ends in order while people write to the other one, and half
of `size` conversations move there: how long that takes, how long anybody waits
meanwhile, and for the next answer in one of these conversations.

One round is made. At its full size it takes about eight minutes on a quiet machine;
standard error says what it is doing. What one node costs on either database, `engines`
measures.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.arithmetic import percentile
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.machine import ROOT
from benchmarks.stage.programs import module
from benchmarks.stage.provider import ANSWER, provided
from benchmarks.stage.serving import AGENT, SCRIPT, SETTINGS, with_provider
from benchmarks.stage.visitors import Visit, visit
from benchmarks.stopwatch import now

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.support.store.postgresql import ServerProcess

COUNTS = (1, 2, 4)
CHATS = 64
SECONDS = 0.5
"""What the slow model takes."""

PATIENCE = 120.0
"""Seconds after which nodes that have not shared the work count as broken."""

LOOK_EVERY = 0.02
SPREAD = "SELECT owner, count(*) FROM lease WHERE name LIKE 'part/%' GROUP BY owner"
PARTS = 256

NODES = """
[store]
kind = "postgresql"
dsn = {{ env = "DSN" }}
path = "callboard.db"
[nodes]
name = "{name}"
address = "127.0.0.1"
ttl = 6.0
"""


class Nodes:
    """Nodes that have shared the chats.

    Args:
        dsn: address of the database.
        addresses: of each node, as in `http://127.0.0.1:8080`.
        processes: of each node.
    """

    def __init__(
        self,
        dsn: str,
        addresses: list[str],
        processes: list[subprocess.Popen[bytes]],
    ) -> None:
        self._dsn = dsn
        self.addresses = addresses
        self.processes = processes

    def wait_spread(self, most: int) -> None:
        """Wait until as many nodes have as many parts each, but for one.

        Raises:
            RuntimeError: they do not.
        """
        # Why here: only who measures this has the extra.
        import psycopg  # noqa: PLC0415

        begin, pause = now(), threading.Event()
        found: list[tuple[str, int]] = []
        with closing(psycopg.connect(self._dsn, autocommit=True)) as db:
            while now() - begin < PATIENCE:
                with suppress(psycopg.errors.UndefinedTable):  # no node has begun
                    found = db.execute(SPREAD).fetchall()
                parts = [count for owner, count in found if owner]
                is_even = len(parts) == most and max(parts) - min(parts) < 2
                if is_even and sum(parts) == PARTS:
                    return
                pause.wait(LOOK_EVERY)
        raise RuntimeError(f"{most} nodes have not shared the chats: {found}")

    def visit(self, share: int, name: str, expected: str, within: float) -> list[int]:
        """Have people write to all of them; give how long each answer took, in ns."""
        chats = CHATS // len(self.addresses)
        plans = [
            Visit(
                at,
                AGENT,
                chats,
                share,
                f"{name}-{number}",
                expected,
                begin_within=within,
            )
            for number, at in enumerate(self.addresses)
        ]
        with ThreadPoolExecutor(len(plans)) as threads:
            return [each for done in threads.map(visit, plans) for each in done.taken]


def say(what: str) -> None:
    """Say what is being done: a round takes minutes."""
    print(f"nodes: {what}", file=sys.stderr, flush=True)


@contextmanager
def company(dsn: str, count: int, settings: str) -> Generator[Nodes]:
    """Run a company on so many nodes, which are killed after the block."""
    settings = settings.replace('[store]\npath = "callboard.db"\n', "")
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        home = Path(temporary)
        (home / "script.toml").write_text(SCRIPT, encoding="utf-8")
        doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
        ports = [each.getsockname()[1] for each in doors]
        for each in doors:
            each.close()
        processes: list[subprocess.Popen[bytes]] = []
        for number, port in enumerate(ports):
            file = home / f"{number}.toml"
            own = settings.replace("port = 0", f"port = {port}")
            own += NODES.format(name=f"n{number}")
            file.write_text(own, encoding="utf-8")
            process = subprocess.Popen(  # noqa: S603  our own program
                module("connectors", "serve", "--config", str(file)),
                cwd=home,
                env={"PYTHONPATH": str(ROOT), "DSN": dsn},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            processes.append(process)
        addresses = [f"http://127.0.0.1:{port}" for port in ports]
        say(f"{count} started, share the chats")
        nodes = Nodes(dsn, addresses, processes)
        nodes.wait_spread(count)
        yield nodes


def measure(plan: Plan) -> list[Figure]:
    """Let 64 people write to one, two and four nodes; then have conversations move."""
    # Why here: only who measures this has the extra and a server.
    from tests.support.store.postgresql import ServerProcess  # noqa: PLC0415

    figures: list[Figure] = []
    server = ServerProcess("fsync=on", "autovacuum=on")
    try:
        for count in COUNTS if plan.size > QUICK.size else ():
            figures += speed(new(server, f"at_once_{count}"), count, plan)
            with provided(SECONDS) as base_url:
                dsn = new(server, f"slow_{count}")
                figures += speed(dsn, count, plan, base_url)
        with company(new(server, "moving"), 2, SETTINGS) as nodes:
            figures += move(nodes, plan.size)
    finally:
        server.end()
    return figures


def new(server: ServerProcess, name: str) -> str:
    """Make a database; give its address."""
    import psycopg  # noqa: PLC0415  an extra

    with closing(psycopg.connect(server.dsn("postgres"), autocommit=True)) as db:
        db.execute(f"CREATE DATABASE {name}".encode())
    return server.dsn(name)


def speed(dsn: str, count: int, plan: Plan, base_url: str = "") -> list[Figure]:
    """Measure a company on so many nodes."""
    settings = with_provider(base_url) if base_url else SETTINGS
    expected = ANSWER if base_url else "You said"
    what = f"{count} nodes" + (f", {SECONDS:g} s model" if base_url else "")
    share = max(1, plan.size // 8 // CHATS)
    with company(dsn, count, settings) as nodes:
        # Uncounted: a server's first messages load what the others use.
        nodes.visit(1, "warm", expected, 0.0)
        say(f"{what}: {share} messages of each of {CHATS} people")
        begin = now()
        taken = nodes.visit(share, "counted", expected, SECONDS if base_url else 0.0)
        rate = len(taken) / (now() - begin)
    p50, p99 = (percentile(taken, each) / 1e6 for each in (0.5, 0.99))
    return [
        Figure(f"rate, {what}", rate, "messages/s"),
        Figure(f"p50, {what}", p50, "ms"),
        Figure(f"p99, {what}", p99, "ms"),
    ]


def move(nodes: Nodes, size: int) -> list[Figure]:
    """Have one of two nodes end, and so many conversations go on at the other one."""
    staying = nodes.addresses[1]
    each = max(1, size // CHATS)
    say(f"{each * CHATS} conversations, of which half are to move")
    old = Visit(staying, AGENT, CHATS, each, "old", "You said", has_many=True)
    visit(old)
    with ThreadPoolExecutor(1) as thread:
        say("one of two nodes ends")
        some = max(1, each // 4)  # more than are answered until all have moved
        meanwhile = Visit(staying, AGENT, CHATS, some, "meanwhile", "You said")
        visiting = thread.submit(visit, meanwhile)
        threading.Event().wait(1.0)  # they have begun
        begin = now()
        nodes.processes[0].send_signal(signal.SIGTERM)
        nodes.wait_spread(1)
        moved = now() - begin
        silence = max(visiting.result().taken)
    again = Visit(staying, AGENT, CHATS, max(1, each // 10), "old", "", has_many=True)
    taken = visit(again).taken
    p50, p99 = (percentile(taken, part) / 1e6 for part in (0.5, 0.99))
    return [
        Figure("a node ends: all moved within", moved, "s"),
        Figure("a node ends: the longest wait of anybody", silence / 1e9, "s"),
        Figure("first answer in a conversation that has moved, p50", p50, "ms"),
        Figure("first answer in a conversation that has moved, p99", p99, "ms"),
    ]


QUICK = Plan(128, 1)
"""Only conversations that move: to start seven companies takes a minute."""

BENCHMARK = Benchmark(
    name="nodes",
    about="a company on 1, 2 and 4 nodes; half of `size` conversations move",
    full=Plan(20_000, 1),
    quick=QUICK,
    measure=measure,
    most_runs=1,
    warms_up=False,
)
