"""Connects to a PostgreSQL server, and translates its errors into the kernel's.

A text may hold the character NUL, which PostgreSQL's `text` cannot: all texts go
through `stored` on their way there and through `given` on their way back. Both keep the
order of texts and what they begin with.
"""

from __future__ import annotations

import contextlib
import math
import re
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format

from runtime.errors import (
    CorruptError,
    FencedError,
    KernelError,
    MisuseError,
    StoreRefusedError,
    StoreUnavailableError,
)
from runtime.nodes.rows import Fence
from runtime.store.jobs import ThreadOptions
from runtime.store.rows import Commit

T = TypeVar("T")

NOTIFY = "SELECT pg_notify(%s, %s)"
"""Tells all who listen on a channel; in a transaction, with its COMMIT."""

TICK = 0.1
"""Seconds between two looks at the time while an answer is waited for."""


class TimedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that does not wait for ever for what a server answers.

    No setting of the server's ends a COMMIT's wait for a standby, nor may anybody
    cancel it: see `threads.py`.
    """

    answer_within = math.inf
    """Seconds that an answer may take; after that the connection is closed, and nobody
    knows whether the statement was carried out."""

    @contextlib.contextmanager
    def patience(self, seconds: float) -> Generator[None]:
        """Wait that many seconds for each answer in the block."""
        before, self.answer_within = self.answer_within, seconds
        try:
            yield
        finally:
            self.answer_within = before

    def wait(
        self,
        gen: Generator[Any, Any, T],
        interval: float = TICK,
        timeout: float | None = None,
    ) -> T:
        """Wait for what psycopg does on the connection.

        Raises:
            psycopg.OperationalError: the answer did not come in time.
        """
        if self.answer_within < math.inf:
            gen = self._timed(gen)
        if timeout is None:  # psycopg 3.2 knows of none
            return super().wait(gen, interval)
        return super().wait(gen, interval, timeout)

    def _timed(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        end = time.monotonic() + self.answer_within
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > end:
                    self.close()
                    raise psycopg.OperationalError("its answer did not come in time")
                wanted = gen.send(ready)
        except StopIteration as ended:
            result: T = ended.value
            return result


Db: TypeAlias = TimedConnection
"""An open connection; it begins no transaction by itself."""

OLDEST_SERVER = 130000
"""PostgreSQL 13, as `server_version` writes it."""

NUL, ESCAPE = "\x00", "\x01"
# Order is kept: NUL is below ESCAPE, and so are the pairs that stand for them.
FOR_NUL, FOR_ESCAPE = "\x01\x01", "\x01\x02"
PAIR = re.compile("\x01[\x01\x02]")

DAMAGED = frozenset({"XX001", "XX002"})
"""PostgreSQL's codes for damage: data, index."""

FENCED = "CB001"
"""Our own code; `migrations.py` raises it."""

AWAY = (
    "08",  # connection
    "57P",  # the server is stopped, or starts
    "25P",  # a session that was ended for being idle
)
"""How codes begin that say that the server is away, or goes away."""

CAUSES: tuple[tuple[str, str, str], ...] = (
    ("53100", "found no more room on its disk", "Make room there"),
    ("53200", "found no more memory", "Give its machine more"),
    ("53300", "takes no more connections", "Raise max_connections, or end others"),
    ("58", "could not read or write its disk", "Look at its log"),
    (
        "25006",
        "takes no writes: it is a standby, or read-only",
        "Name the primary in [store] dsn, or wait until the fail-over is done",
    ),
    ("40", "ended the transaction because of another program's", "Try again"),
    ("55P03", "has rows that another program holds", "End that program, or wait"),
    ("57014", "took too long", "Look at its load; try again"),
    (
        "28",
        "refused the user or the password",
        "Mend [store] dsn, or the server's pg_hba.conf",
    ),
    ("3D000", "has no such database", "createdb it, or mend [store] dsn"),
    (
        "42501",
        "does not let this user do that",
        "Make the user the owner of the database",
    ),
)
"""Beginnings of codes, what each says of the server, and what to do about it."""

SAFE = "nothing was written, and what was acknowledged is safe"

STORABLE = ("22", "54", "23")
"""How codes begin that blame what is to be stored: data, limits, constraints."""

TIMELINE = """SELECT system_identifier::text, CASE WHEN pg_is_in_recovery() THEN 0
    ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer END
    FROM pg_control_system()"""
"""The server with its standbys, and the number of the primary, which each fail-over
raises; 0: it is a standby."""

ENDED = 5000
"""Milliseconds after which data that nobody confirms ends the connection."""


class PostgresqlOptions(ThreadOptions, frozen=True, forbid_unknown_fields=True):
    """How a server is used."""

    seat: Fence | None = None
    """As which node it writes, and for which leases; None: it is no node, and keeps all
    other processes out."""

    leases: Callable[[Commit], Mapping[str, int]] | None = None
    """Gives further leases that a commit needs, with the epochs under which this node
    has them; raises `FencedError` for one that it has not. Called in the thread that
    writes. None: there are none."""

    concerns_others: Callable[[Commit], Collection[str]] | None = None
    """Gives the kinds of rows of a commit at which other nodes are to look again
    (`Store.changes_outside`); called like `leases`."""

    channel: str = "callboard"
    """By which nodes hear hints (LISTEN, NOTIFY). Each role that may connect to the
    database may use any channel whose name it knows."""

    unhurried: frozenset[str] = frozenset()
    """Kinds of these of which other nodes are not told at once: they look by
    themselves."""

    connect_within: int = 5
    """Seconds that connecting may take."""

    away_for: float = 5.0
    """Seconds that commits wait for a server that went away, before they fail."""


class PostgresqlServer:
    """A database on a server.

    Args:
        dsn: its address, as libpq takes it: a URL, or `key=value` pairs. It may hold a
            password, which is never shown.
        options: how it is used.

    Raises:
        StoreRefusedError: the address cannot be read.
    """

    def __init__(self, dsn: str, options: PostgresqlOptions | None = None) -> None:
        self.options = options or PostgresqlOptions()
        self._dsn = dsn
        try:
            parts = conninfo_to_dict(dsn)
        except psycopg.Error:
            parts = None  # and not its text: that repeats the address
        if parts is None:
            raise StoreRefusedError(
                "the address of the PostgreSQL database cannot be read; it looks like"
                " postgresql://user:password@host:5432/database"
            )
        if "://" in dsn and holds_password(parts):
            raise StoreRefusedError(
                "the address of the PostgreSQL database cannot be read: in a user or"
                " password write %40 for @, %2F for /, %3A for :, %25 for %"
            )
        self.name = name_of(parts)
        """How texts for people name it: without user and password."""

        self._newest: dict[str, int] = {}
        """The highest number of a primary that we were connected to, by server."""

    def connect(
        self,
        role: str,
        statement_within: float = 0.0,
        answer_within: float = math.inf,
    ) -> Db:
        """Open a connection.

        Args:
            role: what `pg_stat_activity` shows it as.
            statement_within: seconds that one statement may take; 0: as many as it
                likes.
            answer_within: seconds that its answer may take; see `TimedConnection`.

        Raises:
            StoreUnavailableError: the server is away, does not let us in, or is a
                primary whose standby has taken its place.
            StoreRefusedError: it is too old, or stores no Unicode, or something stands
                between that changes sessions.
        """
        with self.told():
            db = TimedConnection.connect(
                self._dsn,
                autocommit=True,
                application_name=role,
                connect_timeout=self.options.connect_within,
                keepalives=1,
                keepalives_idle=5,
                keepalives_interval=2,
                keepalives_count=3,
                tcp_user_timeout=ENDED,
            )
            with contextlib.ExitStack() as stack:
                stack.callback(db.close)
                self._prepare(db, statement_within)
                self._refuse_replaced(db)
                db.answer_within = answer_within
                stack.pop_all()
        return db

    def _prepare(self, db: Db, statement_within: float) -> None:
        """Check the server, and set the session up."""
        info = db.info
        if info.server_version < OLDEST_SERVER:
            raise StoreRefusedError(
                f"{self.name} is PostgreSQL {info.server_version // 10000}; Callboard"
                " needs 13 or later"
            )
        sync = "on" if self.options.synchronous == "full" else "off"
        row = db.execute(
            """SELECT pg_backend_pid(), current_setting('server_encoding'),
            set_config('statement_timeout', %s, false),
            set_config('lock_timeout', '5s', false),
            set_config('idle_in_transaction_session_timeout', '60s', false),
            set_config('client_encoding', 'UTF8', false),
            set_config('jit', 'off', false),
            set_config('synchronous_commit', CASE WHEN %s = 'off' THEN 'off'
                WHEN current_setting('synchronous_commit') = 'off' THEN 'on'
                ELSE current_setting('synchronous_commit') END, false)""",
            (str(int(statement_within * 1000)), sync),
        ).fetchone()
        process, encoding = (0, "") if row is None else row[:2]
        if encoding != "UTF8":
            raise StoreRefusedError(
                f"{self.name} has the encoding {encoding}; Callboard needs a database"
                " made with ENCODING 'UTF8'"
            )
        if process != info.backend_pid:
            raise StoreRefusedError(
                f"between {self.name} and Callboard stands a pooler, such as"
                " PgBouncer: what a session keeps would be lost. Name the server"
                " itself in [store] dsn"
            )
        adapters = db.adapters
        adapters.register_dumper(str, TextDumper)
        for loader in (TextLoader, BinaryTextLoader):
            adapters.register_loader("text", loader)
        db.prepare_threshold = 2

    def _refuse_replaced(self, db: Db) -> None:
        try:
            rows = rows_of(db, TIMELINE)
        except psycopg.Error:
            return  # not PostgreSQL's own server, or it does not let us see that
        server, number = rows[0]
        if 0 < number < self._newest.get(server, 0):
            raise StoreUnavailableError(
                f"{self.name} is an old primary, beside the one that has taken its"
                f" place; {SAFE}. End it, or make it a standby of the new one. To go"
                " back to it, and without what only the other one has, restart"
                " Callboard: a process keeps to the newest primary it has seen"
            )
        self._newest[server] = max(number, self._newest.get(server, 0))

    @contextlib.contextmanager
    def told(self) -> Generator[None]:
        """Translate errors of the server that the block raises.

        Raises:
            StoreError: the server could not do it.
            MisuseError: what was given can never be stored, or read.
        """
        try:
            yield
        except psycopg.Error as error:
            raise self.translate(error) from error

    def translate(self, error: psycopg.Error) -> KernelError:
        """Translate an error; a bug of ours comes back as a `StoreError`, too."""
        code = error.sqlstate or ""
        said = plain(error)
        if code == FENCED:
            return FencedError(
                f"another process has taken {self.name} over; nothing was written."
                " Look for a second `callboard serve` with the same settings"
            )
        if code in DAMAGED:
            return CorruptError(
                f"{self.name} is damaged ({said}); stop Callboard and restore a dump"
            )
        if blames_input(error):
            return MisuseError(f"this can never be stored: {said}; see `Store.commit`")
        for begin, what, cure in CAUSES:
            if code.startswith(begin):
                return StoreUnavailableError(
                    f"{self.name} {what} ({said}); {SAFE}. {cure}"
                )
        if is_away(error):
            return StoreUnavailableError(
                f"{self.name} does not answer ({said}); {SAFE}. Look whether the server"
                " runs, and whether [store] dsn is its address"
            )
        return StoreUnavailableError(
            f"{self.name} refused a statement of Callboard's ({code} {said}); {SAFE}."
            " If nobody changed the tables by hand, report it"
        )


def awaits_standby(name: str) -> StoreUnavailableError:
    """Say that a server waits for its synchronous standby.

    Args:
        name: how the database is named for people.
    """
    return StoreUnavailableError(
        f"{name} waits for its synchronous standby; what was acknowledged is safe, and"
        " nothing more is until then. Look at pg_stat_replication; to go on without a"
        " standby, empty synchronous_standby_names and reload the server's settings"
    )


def rows_of(db: Db, sql: str, given: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    """Run one statement of PostgreSQL's own and give all its rows."""
    return db.execute(sql.encode(), given, binary=True).fetchall()


def holds_password(given: dict[str, Any]) -> bool:
    """Whether a part of a URL that is shown may be what is left of a password.

    libpq takes what stands behind a `/` or `@` in it for the host, port or database.
    """
    named = str(given.get("host", ""))
    if "user" not in given:  # or else what stands before its @ is the user
        named += str(given.get("dbname", ""))
    ports = str(given.get("port", "")).replace(",", "")
    return "@" in named or bool(ports and not ports.isdecimal())


def name_of(given: dict[str, Any]) -> str:
    """Name a database for people, without user and password."""
    host = str(given.get("host") or given.get("hostaddr") or "this machine")
    port = f":{given['port']}" if given.get("port") else ""
    return f"PostgreSQL database {given.get('dbname') or 'of the user'} at {host}{port}"


def plain(error: psycopg.Error) -> str:
    """Give what an error says in one line, without the values of rows."""
    # Its other lines, and `detail`, may repeat what people wrote.
    first = error.diag.message_primary or str(error).partition("\n")[0]
    return first.strip() or type(error).__name__


def is_away(error: psycopg.Error) -> bool:
    """Whether an error says that the connection is gone, or cannot be made."""
    code = error.sqlstate
    if code is None:
        is_echo = isinstance(error, psycopg.errors.PipelineAborted)
        kinds = (psycopg.OperationalError, psycopg.InterfaceError)
        return isinstance(error, kinds) and not is_echo
    return code.startswith(AWAY)


def blames_input(error: psycopg.Error) -> bool:
    """Whether what was to be stored is to blame, whenever it is tried."""
    code = error.sqlstate
    if code is None:
        return isinstance(error, psycopg.DataError)
    return code.startswith(STORABLE)


def stored(text: str) -> str:
    """Write a text so that PostgreSQL can keep it."""
    if ESCAPE in text or NUL in text:
        return text.replace(ESCAPE, FOR_ESCAPE).replace(NUL, FOR_NUL)
    return text


def given(text: str) -> str:
    """Read a text that `stored` wrote."""
    if ESCAPE not in text:
        return text
    return PAIR.sub(lambda pair: NUL if pair[0] == FOR_NUL else ESCAPE, text)


class TextDumper(Dumper):
    """Sends a text to the server."""

    oid = 25
    """PostgreSQL's number of the type `text`."""

    def dump(self, obj: str) -> bytes:
        """Write it down."""
        return stored(obj).encode()


class TextLoader(Loader):
    """Reads a text that the server sends as text."""

    format = Format.TEXT

    def load(self, data: bytes | bytearray | memoryview) -> str:
        """Read it."""
        return given(str(data, "utf-8"))


class BinaryTextLoader(TextLoader):
    """Reads a text that the server sends as bytes."""

    format = Format.BINARY
