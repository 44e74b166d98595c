"""Proves that PostgreSQL does what the model of it does, and what the fence needs.

Two or three transactions of nodes are interleaved statement by statement, on the model
and on a real server; each answer, each wait for a lock and the rows in the end must be
the same.
"""

from __future__ import annotations

import os
import pwd
import random  # noqa: TID251  seeded
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Protocol

import psycopg
import pytest
from psycopg.rows import dict_row

from runtime.nodes import statements as sql
from runtime.nodes.membership import TakeOver
from runtime.nodes.rows import Fence, NodeRow
from runtime.nodes.statements import Statement
from tests.nodes_simulation.server import Answer, RefusedError, Server
from tests.nodes_simulation.statements import modelled

pytestmark = pytest.mark.deep

SCHEDULES = 80
TABLES = ("node", "writer", "lease")
FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)

Step = Statement | str
"""`begin`, `commit`, `rollback`, or a statement."""

WAITS = "waits"


def program(name: str) -> str | None:
    path = os.pathsep.join((os.environ.get("PATH", ""), *map(str, FOLDERS)))
    return shutil.which(name, path=path)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Start a server that syncs nothing, on a socket in a folder of its own."""
    initdb, postgres = program("initdb"), program("postgres")
    if initdb is None or postgres is None:
        pytest.skip("no PostgreSQL server is installed here")
    folder = Path(tempfile.mkdtemp(prefix="cb-nodes-"))
    user: tuple[str, ...] = ()
    if not os.getuid():  # The server refuses to be root's.
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        user = ("setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}")
        user += ("--clear-groups",)
    data = str(folder / "data")
    flags = ("--no-sync", "-U", "callboard", "-A", "trust", "-E", "UTF8", "--locale=C")
    subprocess.run(
        [*user, initdb, *flags, "-D", data], check=True, capture_output=True, cwd=folder
    )
    options = ("fsync=off", "listen_addresses=", f"unix_socket_directories={folder}")
    given = [part for each in options for part in ("-c", each)]
    process = subprocess.Popen(
        [*user, postgres, "-D", data, *given],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    found = f"host={folder} user=callboard dbname=postgres"
    for _ in range(1200):
        try:
            with psycopg.connect(found, autocommit=True) as db:
                db.execute(sql.WRITER.encode())
                db.execute(sql.TABLES.encode())
                db.execute(sql.DRAINED.encode())
            break
        except psycopg.OperationalError:
            threading.Event().wait(0.05)
    yield found
    process.send_signal(3)  # SIGQUIT: at once, and its children, too
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)


def claim(node: str, *leases: tuple[str, int], fence: int = 1) -> Statement:
    return sql.fence(Fence(node, fence, 5, leases))


def of_life(text: str, node: str = "a", incarnation: int = 1) -> Statement:
    return Statement(text, {"node": node, "incarnation": incarnation})


def want(to: str, epoch: int = 1) -> Statement:
    return sql.want({"part/0": to}, {"part/0": epoch})


def take_over(beat: int = 0) -> list[Step]:
    owners = {"part/0": "b", "part/1": "c"}
    _, *steps = sql.take_over(TakeOver(NodeRow("a", 1, beat), owners))
    return ["begin", *steps, "commit"]


RESOLVE = Statement(sql.RESOLVE, {"node": "a", "fence": 1})

SCRIPTS: tuple[list[Step], ...] = (
    ["begin", claim("a", ("part/0", 1)), want("c"), "commit"],
    ["begin", claim("a", ("part/0", 1), ("part/1", 1)), "commit"],
    ["begin", claim("a", ("part/0", 2)), want("c"), "commit"],
    ["begin", claim("a", fence=2), "commit"],
    ["begin", claim("a", ("part/1", 1)), sql.give("a", {"part/1": "b"}), "commit"],
    ["begin", claim("b"), sql.give("", {"part/2": "b"}), "commit"],
    ["begin", claim("c"), sql.give("", {"part/2": "c"}), "rollback"],
    ["begin", *sql.give_own("a", {"part/0": "b"}), "commit"],
    ["begin", *sql.adopt("a", 1, ["part/2"]), "commit"],
    ["begin", *sql.join("a"), "commit"],
    ["begin", *sql.join("d"), "commit"],
    [of_life(sql.BEAT), of_life(sql.BEAT), Statement(sql.READ_NODES, {})],
    [of_life(sql.BEAT, incarnation=2), want("b"), Statement(sql.READ_LEASES, {})],
    ["begin", of_life(sql.LEAVE), "commit"],
    ["begin", RESOLVE, "commit"],
    [RESOLVE],
    take_over(),
    take_over(),
    take_over(beat=1),
)


class Side(Protocol):
    """Where steps are carried out: the model, or the server."""

    def send(self, session: int, step: Step) -> None:
        """Begin a step."""
        ...

    def outcome(self, session: int) -> object:
        """Give its answer, the code of its error, or `WAITS`."""
        ...


def normal(answer: Answer | RefusedError, step: Step) -> object:
    """Give what both sides must say alike."""
    if isinstance(answer, RefusedError):
        return answer.code
    if isinstance(step, str) or step.text == sql.FENCE:
        return "done"
    wanted = {"RETURNING", "SELECT"} & {*step.text.split()}
    names = ("id", "name", "incarnation", "fence", "epoch", "beat", "last_group")
    text = step.text.partition("RETURNING")[2] or step.text.partition("FROM")[0]
    shown = [
        name for name in names if wanted and name in text.replace(",", " ").split()
    ]
    if text.strip() == "lease.name":
        shown = ["name"]
    return sorted(tuple(row[name] for name in shown) for row in answer)


class OnModel:
    """The model."""

    def __init__(self) -> None:
        self.server = Server()
        for name in "abc":
            tables = self.server.tables
            node = {"id": name, "incarnation": 1, "beat": 0, "state": "up"}
            node |= {"is_drained": False}
            tables["node"]["node", name] = node
            writer = {"node": name, "fence": 1, "last_group": 0}
            tables["writer"]["writer", name] = writer
        for number, owner in enumerate(("a", "a", "")):
            name, epoch = f"part/{number}", int(bool(owner))
            lease = {"name": name, "owner": owner, "wanted": "", "epoch": epoch}
            self.server.tables["lease"]["lease", name] = lease
        self._sessions = [self.server.connect(f"s{n}") for n in range(3)]
        self._answers: dict[int, Answer | RefusedError] = {}
        self._steps: dict[int, Step] = {}

    def send(self, session: int, step: Step) -> None:
        """Begin a step."""
        self._answers.pop(session, None)
        self._steps[session] = step
        what = step if isinstance(step, str) else modelled(step)
        self._sessions[session].send(
            what, lambda answer: self._answers.update({session: answer})
        )

    def outcome(self, session: int) -> object:
        """Give its answer, the code of its error, or `WAITS`."""
        if session not in self._answers:
            return WAITS
        return normal(self._answers[session], self._steps[session])

    def rows(self) -> list[object]:
        tables = self.server.tables
        return [sorted(map(str, map(sorted_row, tables[n].values()))) for n in TABLES]


def sorted_row(row: dict[str, Any]) -> list[tuple[str, Any]]:
    return sorted(row.items())


def connect(address: str) -> psycopg.Connection[dict[str, Any]]:
    return psycopg.Connection[dict[str, Any]].connect(
        address, autocommit=True, row_factory=dict_row
    )


class OnServer:
    """The real one; each session has a thread, because its answers may take time."""

    def __init__(self, address: str, model: OnModel) -> None:
        self._own = connect(address)
        for name in TABLES:
            self._own.execute(f"TRUNCATE {name}")
            for row in model.server.tables[name].values():
                marks = ", ".join(f"%({column})s" for column in row)
                text = f"INSERT INTO {name}({', '.join(row)}) VALUES ({marks})"  # noqa: S608
                self._own.execute(text.encode(), row)
        self._sessions = [connect(address) for _ in range(3)]
        self._threads = [ThreadPoolExecutor(1) for _ in self._sessions]
        self._futures: dict[int, Future[object]] = {}

    def send(self, session: int, step: Step) -> None:
        """Begin a step."""
        self._futures[session] = self._threads[session].submit(
            self._carry_out, session, step
        )

    def _carry_out(self, session: int, step: Step) -> object:
        db = self._sessions[session]
        text, values = (step, {}) if isinstance(step, str) else (step.text, step.values)
        try:
            cursor = db.execute(text.encode(), values)
        except psycopg.Error as error:
            return error.sqlstate
        if step == "commit" and cursor.statusmessage == "ROLLBACK":
            return "rollback"
        return normal(cursor.fetchall() if cursor.description else [], step)

    def outcome(self, session: int) -> object:
        """Give its answer, the code of its error, or `WAITS`."""
        future = self._futures[session]
        pid = self._sessions[session].info.backend_pid
        while not future.done():
            wait([future], timeout=0.002)
            query = "SELECT cardinality(pg_blocking_pids(%s)) AS n"
            row = self._own.execute(query, (pid,)).fetchone()
            if row is not None and row["n"] and not future.done():
                return WAITS
        return future.result()

    def answer(self, session: int) -> object:
        """Wait for what another session's end lets go on."""
        return self._futures[session].result(timeout=60.0)

    def rows(self) -> list[object]:
        found: list[object] = []
        for name in TABLES:
            rows = self._own.execute(f"SELECT * FROM {name}".encode())  # noqa: S608
            found.append(sorted(map(str, map(sorted_row, rows.fetchall()))))
        return found

    def close(self) -> None:
        for db in (*self._sessions, self._own):
            db.cancel()
        for threads in self._threads:
            threads.shutdown()
        for db in (*self._sessions, self._own):
            db.close()


def play(scripts: list[list[Step]], seed: int, model: OnModel, real: OnServer) -> int:
    """Carry out a schedule on both; give how many waits there were."""
    dice = random.Random(seed)  # noqa: S311
    left = {session: [*script] for session, script in enumerate(scripts)}
    waiting: set[int] = set()
    said: list[str] = []
    waits = 0
    while ready := [n for n in left if left[n] and n not in waiting]:
        session = dice.choice(ready)
        step = left[session].pop(0)
        model.send(session, step)
        real.send(session, step)
        for each in (session, *sorted(waiting - {session})):
            ours, theirs = model.outcome(each), real.outcome(each)
            name = step if isinstance(step, str) else step.text.split("\n")[0]
            said.append(f"{session} {name}: {each} {ours}")
            assert ours == theirs, (theirs, said)
            waiting -= {each}
            waiting |= {each} if ours == WAITS else set()
            waits += ours == WAITS
    assert not waiting, said
    assert model.rows() == real.rows(), said
    return waits


def test_every_schedule_goes_as_on_the_model(address: str) -> None:
    waits = 0
    for seed in range(SCHEDULES):
        dice = random.Random(seed)  # noqa: S311
        scripts = [dice.choice(SCRIPTS) for _ in range(dice.choice((2, 2, 3)))]
        model = OnModel()
        real = OnServer(address, model)
        try:
            waits += play(scripts, seed, model, real)
        finally:
            real.close()
    assert waits > SCHEDULES / 4


def test_a_session_stopped_inside_a_pipeline_does_not_hold_up_a_take_over(
    address: str,
) -> None:
    real = OnServer(address, OnModel())
    name = sql.application_name("a", 1)
    stopped = psycopg.connect(address, application_name=name, autocommit=True)
    try:
        connection = stopped.pgconn
        connection.enter_pipeline_mode()
        connection.send_query_params(b"BEGIN", None)
        connection.send_query_params(b"SELECT fence('a', 1, 5, '{}', '{}')", None)
        connection.send_flush_request()
        while connection.flush():
            pass
        answers = [connection.get_result() for _ in range(3)]  # the second ends one
        assert answers[2] is not None
        ending, *others = sql.take_over(TakeOver(NodeRow("a", 1, 0), {"part/0": "b"}))
        real.send(0, others[1])
        assert real.outcome(0) == WAITS
        real.send(1, ending)
        assert real.outcome(1) != WAITS
        assert real.answer(0) == [(2,)]
    finally:
        real.close()
        stopped.close()


@pytest.mark.parametrize(("beat", "lives"), [(0, False), (1, True)])
def test_sessions_end_only_while_their_node_stands_still(
    address: str, beat: int, *, lives: bool
) -> None:
    real = OnServer(address, OnModel())
    name = sql.application_name("a", 1)
    with psycopg.connect(address, application_name=name, autocommit=True) as idle:
        idle.execute("SELECT 1")
        ending, *_ = sql.take_over(TakeOver(NodeRow("a", 1, beat), {}))
        real.send(0, ending)
        real.outcome(0)
        real.close()
        if lives:
            idle.execute("SELECT 1")
        else:
            with pytest.raises(psycopg.OperationalError):
                idle.execute("SELECT 1")
