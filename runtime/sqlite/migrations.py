"""How a database file becomes one of this release: numbered steps, never changed.

Step N takes a file from version N - 1 to N (`PRAGMA user_version`). A step that
has been released is never edited; a new need is a new step. All steps of one start
run in one transaction, and an older file is copied next to itself before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import apsw

from runtime.errors import CorruptError, StoreRefusedError, StoreTooNewError
from runtime.sqlite.copying import copy_whole, unfinished_beside
from runtime.telemetry.logs import EventLog

LOG = EventLog("store")

Migration = Callable[[apsw.Connection], None]

APPLICATION_ID = 0x43414C42
"""`CALB`: what `file` and every later start know the database by."""


def step_1_inbox_journal_outbox(db: apsw.Connection) -> None:
    """Make the first tables.

    Numbers are never given twice (AUTOINCREMENT), so that a reader's cursor stays
    right when the newest rows are pruned.
    """
    db.execute("""
        CREATE TABLE inbox(
            number      INTEGER PRIMARY KEY AUTOINCREMENT,
            id          TEXT NOT NULL UNIQUE,
            connector   TEXT NOT NULL,
            platform_id TEXT NOT NULL,
            part        INTEGER NOT NULL CHECK(part BETWEEN 0 AND 255),
            epoch       INTEGER NOT NULL,
            stream      TEXT NOT NULL,
            body        BLOB NOT NULL,
            accepted_at REAL NOT NULL,
            state       TEXT NOT NULL DEFAULT 'accepted' CHECK(state IN
                        ('accepted', 'replied', 'dropped', 'cancelled', 'dead')),
            reason      TEXT NOT NULL DEFAULT '',
            settled_at  REAL,
            UNIQUE(connector, platform_id),
            CHECK((state = 'accepted') = (settled_at IS NULL))
        ) STRICT;
        CREATE INDEX inbox_accepted ON inbox(number) WHERE settled_at IS NULL;
        CREATE INDEX inbox_settled ON inbox(settled_at, state)
            WHERE settled_at IS NOT NULL;

        CREATE TABLE journal(
            number   INTEGER PRIMARY KEY,
            stream   TEXT NOT NULL,
            sequence INTEGER NOT NULL CHECK(sequence > 0),
            part     INTEGER NOT NULL CHECK(part BETWEEN 0 AND 255),
            epoch    INTEGER NOT NULL,
            kind     TEXT NOT NULL,
            body     BLOB NOT NULL,
            at       REAL NOT NULL,
            UNIQUE(stream, sequence)
        ) STRICT;

        CREATE TABLE outbox(
            number         INTEGER PRIMARY KEY AUTOINCREMENT,
            id             TEXT NOT NULL UNIQUE,
            connector      TEXT NOT NULL,
            chat           TEXT NOT NULL,
            correlation_id TEXT NOT NULL,
            part           INTEGER NOT NULL CHECK(part BETWEEN 0 AND 255),
            epoch          INTEGER NOT NULL,
            body           BLOB NOT NULL,
            enqueued_at    REAL NOT NULL,
            state          TEXT NOT NULL DEFAULT 'pending' CHECK(state IN
                           ('pending', 'sent', 'unknown', 'dead')),
            receipt        TEXT NOT NULL DEFAULT '',
            attempts       INTEGER NOT NULL DEFAULT 0 CHECK(attempts >= 0),
            settled_at     REAL,
            CHECK((state = 'pending') = (settled_at IS NULL))
        ) STRICT;
        CREATE INDEX outbox_pending ON outbox(connector, number)
            WHERE settled_at IS NULL;
        CREATE INDEX outbox_settled ON outbox(settled_at, state)
            WHERE settled_at IS NOT NULL;

        CREATE TABLE probe(id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
    """)


def step_2_attempts_snapshots_records(db: apsw.Connection) -> None:
    """Let work and deliveries be under way; add snapshots, records and `jobs`.

    A CHECK cannot be changed, so both tables are made anew. Their numbers go on
    where they stood, also when the newest rows have been pruned.
    """
    db.execute("""
        CREATE TABLE inbox_2(
            number      INTEGER PRIMARY KEY AUTOINCREMENT,
            id          TEXT NOT NULL UNIQUE,
            connector   TEXT NOT NULL,
            platform_id TEXT NOT NULL,
            part        INTEGER NOT NULL CHECK(part BETWEEN 0 AND 255),
            epoch       INTEGER NOT NULL,
            stream      TEXT NOT NULL,
            body        BLOB NOT NULL,
            accepted_at REAL NOT NULL,
            priority    INTEGER NOT NULL DEFAULT 5 CHECK(priority BETWEEN 1 AND 10),
            state       TEXT NOT NULL DEFAULT 'accepted' CHECK(state IN
                        ('accepted', 'running', 'replied', 'dropped', 'cancelled',
                         'dead')),
            attempts    INTEGER NOT NULL DEFAULT 0 CHECK(attempts >= 0),
            started_at  REAL,
            due_at      REAL NOT NULL DEFAULT 0.0,
            reason      TEXT NOT NULL DEFAULT '',
            settled_at  REAL,
            UNIQUE(connector, platform_id),
            CHECK((state IN ('accepted', 'running')) = (settled_at IS NULL))
        ) STRICT;
        INSERT INTO inbox_2(number, id, connector, platform_id, part, epoch, stream,
                body, accepted_at, state, reason, settled_at)
            SELECT number, id, connector, platform_id, part, epoch, stream, body,
                accepted_at, state, reason, settled_at FROM inbox;

        CREATE TABLE outbox_2(
            number         INTEGER PRIMARY KEY AUTOINCREMENT,
            id             TEXT NOT NULL UNIQUE,
            connector      TEXT NOT NULL,
            chat           TEXT NOT NULL,
            correlation_id TEXT NOT NULL,
            part           INTEGER NOT NULL CHECK(part BETWEEN 0 AND 255),
            epoch          INTEGER NOT NULL,
            body           BLOB NOT NULL,
            enqueued_at    REAL NOT NULL,
            state          TEXT NOT NULL DEFAULT 'pending' CHECK(state IN
                           ('pending', 'sending', 'sent', 'unknown', 'dead')),
            attempts       INTEGER NOT NULL DEFAULT 0 CHECK(attempts >= 0),
            receipt        TEXT NOT NULL DEFAULT '',
            settled_at     REAL,
            CHECK((state IN ('pending', 'sending')) = (settled_at IS NULL))
        ) STRICT;
        INSERT INTO outbox_2(number, id, connector, chat, correlation_id, part, epoch,
                body, enqueued_at, state, attempts, receipt, settled_at)
            SELECT number, id, connector, chat, correlation_id, part, epoch, body,
                enqueued_at, state, attempts, receipt, settled_at FROM outbox;

        DELETE FROM sqlite_sequence WHERE name IN ('inbox_2', 'outbox_2');
        INSERT INTO sqlite_sequence(name, seq)
            SELECT name || '_2', seq FROM sqlite_sequence
            WHERE name IN ('inbox', 'outbox');
        DROP TABLE inbox;
        DROP TABLE outbox;
        ALTER TABLE inbox_2 RENAME TO inbox;
        ALTER TABLE outbox_2 RENAME TO outbox;

        -- With `state` in them, what is open is counted without touching a row.
        CREATE INDEX inbox_open ON inbox(number, state) WHERE settled_at IS NULL;
        CREATE INDEX inbox_settled ON inbox(settled_at, state)
            WHERE settled_at IS NOT NULL;
        CREATE INDEX outbox_open ON outbox(connector, number, state)
            WHERE settled_at IS NULL;
        CREATE INDEX outbox_settled ON outbox(settled_at, state)
            WHERE settled_at IS NOT NULL;
        CREATE INDEX outbox_correlation ON outbox(correlation_id);

        CREATE TABLE snapshot(
            stream   TEXT NOT NULL PRIMARY KEY,
            sequence INTEGER NOT NULL,
            schema   INTEGER NOT NULL,
            part     INTEGER NOT NULL CHECK(part BETWEEN 0 AND 255),
            epoch    INTEGER NOT NULL,
            body     BLOB NOT NULL,
            at       REAL NOT NULL
        ) STRICT;

        CREATE TABLE record(
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            kind   TEXT NOT NULL,
            id     TEXT NOT NULL,
            owner  TEXT NOT NULL,
            part   INTEGER NOT NULL CHECK(part BETWEEN 0 AND 255),
            epoch  INTEGER NOT NULL,
            body   BLOB NOT NULL,
            at     REAL NOT NULL,
            UNIQUE(kind, id)
        ) STRICT;
        -- Every index ends with the number: a listing needs no sorting.
        CREATE INDEX record_kind ON record(kind);
        CREATE INDEX record_owner ON record(kind, owner);
        CREATE INDEX record_at ON record(kind, at);

        -- For people who open the file with `sqlite3`.
        CREATE VIEW jobs AS SELECT
            id,
            CASE state
                WHEN 'accepted' THEN 'pending'
                WHEN 'running' THEN 'running'
                WHEN 'replied' THEN 'completed'
                WHEN 'dead' THEN 'failed'
                ELSE 'cancelled'
            END AS status,
            priority, attempts, accepted_at AS created_at, started_at, due_at,
            settled_at AS completed_at, reason, connector
            FROM inbox;
    """)


def step_3_events_of_messages(db: apsw.Connection) -> None:
    """Let events belong to a message, and be forgotten with it.

    Until now the steps of a turn had streams named after a conversation and a
    message, `<conversation>/<message>`, and were kept for ever.
    """
    db.execute("""
        ALTER TABLE journal ADD COLUMN inbox_id TEXT;
        UPDATE journal SET inbox_id =
            substr(stream, length(rtrim(stream, replace(stream, '/', ''))) + 1)
            WHERE kind IN ('round', 'tool');
        DELETE FROM journal WHERE inbox_id IS NOT NULL
            AND inbox_id NOT IN (SELECT id FROM inbox);
        CREATE INDEX journal_inbox ON journal(inbox_id) WHERE inbox_id IS NOT NULL;
    """)


def step_4_entries(db: apsw.Connection) -> None:
    """Add rows that are changed in place: people, for one."""
    db.execute("""
        CREATE TABLE entry(
            kind    TEXT NOT NULL,
            id      TEXT NOT NULL,
            owner   TEXT NOT NULL,
            part    INTEGER NOT NULL CHECK(part BETWEEN 0 AND 255),
            epoch   INTEGER NOT NULL,
            version INTEGER NOT NULL CHECK(version > 0),
            body    BLOB NOT NULL,
            at      REAL NOT NULL,
            PRIMARY KEY(kind, id)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX entry_owner ON entry(kind, owner, id);
    """)


def step_5_facts(db: apsw.Connection) -> None:
    """Add what agents remember, found by words and by vectors.

    `runtime/sql/facts.py` says why words carry the number of their scope.
    """
    db.execute("""
        CREATE TABLE fact_scope(
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            agent  TEXT NOT NULL,
            scope  TEXT NOT NULL,
            UNIQUE(agent, scope)
        ) STRICT;

        CREATE TABLE fact(
            number     INTEGER PRIMARY KEY AUTOINCREMENT,
            id         TEXT NOT NULL UNIQUE,
            scope      INTEGER NOT NULL,
            kind       TEXT NOT NULL,
            category   TEXT NOT NULL,
            key        TEXT NOT NULL,
            text       TEXT NOT NULL,
            words      TEXT NOT NULL,
            provenance TEXT NOT NULL,
            part       INTEGER NOT NULL CHECK(part BETWEEN 0 AND 255),
            epoch      INTEGER NOT NULL,
            created_at REAL NOT NULL,
            used_at    REAL NOT NULL,
            expires_at REAL,
            -- Whose vector it has; empty: none yet; NULL: it wants none.
            space      TEXT
        ) STRICT;
        CREATE INDEX fact_place ON fact(scope, kind, category);
        CREATE UNIQUE INDEX fact_key ON fact(scope, kind, key) WHERE key <> '';
        CREATE INDEX fact_expiring ON fact(expires_at) WHERE expires_at IS NOT NULL;
        CREATE INDEX fact_space ON fact(space, number) WHERE space IS NOT NULL;

        CREATE TABLE fact_vector(
            scope  INTEGER NOT NULL,
            number INTEGER NOT NULL,
            space  TEXT NOT NULL,
            vector BLOB NOT NULL,
            PRIMARY KEY(scope, number)
        ) STRICT, WITHOUT ROWID;

        CREATE VIRTUAL TABLE fact_words USING fts5(
            words, content='fact', content_rowid='number', detail='none',
            columnsize=0, tokenize='ascii'
        );
        -- What is forgotten leaves the index at once, not when it is next tidied.
        INSERT INTO fact_words(fact_words, rank) VALUES ('secure-delete', 1);

        CREATE TRIGGER fact_saved AFTER INSERT ON fact BEGIN
            INSERT INTO fact_words(rowid, words) VALUES (new.number, new.words);
        END;
        CREATE TRIGGER fact_forgotten AFTER DELETE ON fact BEGIN
            INSERT INTO fact_words(fact_words, rowid, words)
                VALUES ('delete', old.number, old.words);
            DELETE FROM fact_vector WHERE scope = old.scope AND number = old.number;
        END;

        -- For people who open the file with `sqlite3`.
        CREATE VIEW remembered AS SELECT
            fact.id, home.agent, home.scope, fact.kind, fact.category, fact.key,
            fact.text, fact.provenance, fact.created_at, fact.used_at,
            fact.expires_at
            FROM fact JOIN fact_scope AS home ON home.number = fact.scope;
    """)


def step_6_streams(db: apsw.Connection) -> None:
    """Have the messages of one stream found."""
    db.execute("CREATE INDEX inbox_stream ON inbox(stream)")


MIGRATIONS: Sequence[Migration] = (
    step_1_inbox_journal_outbox,
    step_2_attempts_snapshots_records,
    step_3_events_of_messages,
    step_4_entries,
    step_5_facts,
    step_6_streams,
)


NEEDED = frozenset({"inbox", "journal", "outbox", "record", "snapshot", "entry"})
"""Tables without which nothing works."""


def migrate(
    db: apsw.Connection, path: Path, steps: Sequence[Migration] = MIGRATIONS
) -> None:
    """Bring a database to the newest version, or leave it exactly as it is.

    Args:
        db: the open file; nothing may be under way on it.
        path: where it lies; the copy of an older one goes next to it.
        steps: all migrations, the first from an empty file.

    Raises:
        StoreRefusedError: the file belongs to another program.
        StoreTooNewError: a newer release wrote it.
        CorruptError: an older one is damaged, or this one lacks a table; nothing has
            been changed.
        apsw.Error: the disk; nothing has been changed.
    """
    version = int(db.pragma("user_version"))
    refuse_foreign(db, path)
    if version > len(steps):
        raise StoreTooNewError(
            f"{path} was written by a newer release of Callboard (its version is"
            f" {version}, this release knows {len(steps)}); install that release"
            " again, or restore the copy it made beside the file before it changed it"
        )
    if version == len(steps):
        refuse_incomplete(db, path)
        return
    if version:
        back_up(db, path, path.with_name(f"{path.name}.backup-v{version}"))
    with db:
        for step in steps[version:]:
            step(db)
        db.pragma("application_id", APPLICATION_ID)
        db.pragma("user_version", len(steps))
    if version:
        LOG.info(
            "database upgraded", path=str(path), version=len(steps), before=version
        )


def refuse_foreign(db: apsw.Connection, path: Path) -> None:
    """Check that the file is empty or ours.

    Raises:
        StoreRefusedError: it is neither.
    """
    if db.pragma("application_id") == APPLICATION_ID:
        return
    known = db.pragma("application_id") or db.pragma("user_version")
    if known or db.execute("SELECT count(*) FROM sqlite_schema").get:
        raise StoreRefusedError(
            f"{path} is a database of another program; nothing in it was touched."
            " Give Callboard a path of its own"
        )


def refuse_incomplete(db: apsw.Connection, path: Path) -> None:
    """Check that a file of this release has the tables that all others need.

    Raises:
        CorruptError: it lacks one.
    """
    there = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    if missing := sorted(NEEDED.difference(name for (name,) in there)):
        raise CorruptError(
            f"{path} has no table {' and no table '.join(missing)}: another program"
            " must have changed it; stop Callboard and restore a copy"
        )


def back_up(db: apsw.Connection, path: Path, copy: Path) -> None:
    """Copy a whole database; the copy has its name when it is checked and on the disk.

    An earlier copy of the same version is replaced: it is the older of the two.

    Raises:
        CorruptError: the database is damaged; there is no copy of it.
        apsw.Error: the disk.
    """
    with unfinished_beside(copy) as unfinished:
        copy_whole(db, path, unfinished)
        unfinished.replace(copy)
