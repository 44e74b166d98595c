"""The transactions of membership as SQL for PostgreSQL 13 or later, READ COMMITTED.

Every writing transaction of a node begins with `FENCE`. It updates the node's writer
row, so that a take-over, which updates it too, waits for what is under way and has
all that comes later refused. It raises rather than give no row, because in a pipeline
COMMIT is sent before anybody has read its answer. Rows are always locked in the order
node, writer, lease.

Values are named as psycopg does it: `%(node)s`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from runtime.nodes.membership import TakeOver
from runtime.nodes.rows import Fence

FENCED = "CB001"
"""SQLSTATE of a transaction whose node or lease has another owner by now."""

WRITER = """
CREATE TABLE writer (
    node text PRIMARY KEY,
    fence bigint NOT NULL,
    last_group bigint NOT NULL
) WITH (fillfactor = 25, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_threshold = 200);
"""
TABLES = """
CREATE TABLE node (
    id text PRIMARY KEY,
    incarnation bigint NOT NULL,
    beat bigint NOT NULL,
    state text NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE lease (
    name text PRIMARY KEY,
    wanted text NOT NULL DEFAULT '',
    owner text NOT NULL DEFAULT '',
    epoch bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_threshold = 200);
CREATE FUNCTION fence(
    node_ text, fence_ bigint, group_ bigint, names text[], epochs bigint[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE writer SET last_group = group_ WHERE node = node_ AND fence = fence_;
    IF NOT FOUND THEN
        RAISE SQLSTATE 'CB001' USING MESSAGE = 'fenced: another node took over';
    END IF;
    IF EXISTS (
        SELECT FROM unnest(names, epochs) AS claimed(name, epoch)
        WHERE NOT EXISTS (
            SELECT FROM lease WHERE lease.name = claimed.name
            AND lease.owner = node_ AND lease.epoch = claimed.epoch)
    ) THEN
        RAISE SQLSTATE 'CB001' USING MESSAGE = 'fenced: a lease has another owner';
    END IF;
END $$;
"""

FENCE = "SELECT fence(%(node)s, %(fence)s, %(group)s, %(names)s, %(epochs)s)"

DRAINED = """
ALTER TABLE node ADD COLUMN is_drained boolean NOT NULL DEFAULT false;
"""

JOIN_NODE = """INSERT INTO node(id, incarnation, beat, state)
    VALUES (%(node)s, 1, 0, 'up') ON CONFLICT (id) DO UPDATE
    SET incarnation = node.incarnation + 1, beat = 0, state = 'up',
        is_drained = node.is_drained AND %(is_again)s
    RETURNING incarnation"""
"""Another process of this name takes work again; a new life of the same does not."""

JOIN_WRITER = """INSERT INTO writer(node, fence, last_group)
    VALUES (%(node)s, 1, 0) ON CONFLICT (node) DO UPDATE
    SET fence = writer.fence + 1, last_group = 0
    RETURNING fence"""
JOIN_LEASES = """UPDATE lease SET epoch = epoch + 1 WHERE owner = %(node)s
    RETURNING name, epoch"""

ADD_LEASES = """INSERT INTO lease(name) SELECT unnest(%(names)s::text[])
    ON CONFLICT (name) DO NOTHING"""
REMOVE_LEASES = """DELETE FROM lease WHERE starts_with(name, %(kind)s)
    AND name <> ALL(%(names)s::text[])
    AND NOT EXISTS (SELECT FROM node WHERE state = 'up' AND id <> %(node)s)"""
"""Not beside other nodes: their settings may still name what these do not."""

BEAT = """UPDATE node SET beat = beat + 1
    WHERE id = %(node)s AND incarnation = %(incarnation)s AND state = 'up'
    RETURNING beat"""
READ_NODES = "SELECT id, incarnation, beat, state, is_drained FROM node"
READ_LEASES = "SELECT name, owner, epoch, wanted FROM lease"

DECLARE_FENCED = """UPDATE node SET state = 'fenced'
    WHERE id = %(node)s AND incarnation = %(incarnation)s AND beat = %(beat)s
    AND state = %(state)s RETURNING id"""
DECLARE_GONE = """UPDATE node SET state = 'fenced'
    WHERE id = %(node)s AND state = 'up' RETURNING id"""
# Why: a session that stopped in the middle of a pipeline waits for its client, holds
# its locks, be it on the node's own row, and no time-out of the server ends it. For one
# whose hints are not read, the server keeps all hints. Those that wait for a replica
# (`SyncRep`) stay: their commit would be seen, and lost with this server.
END_SESSIONS = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity, node
    WHERE datname = current_database()
    AND starts_with(application_name, %(sessions)s)
    AND wait_event IN ('ClientRead', 'ClientWrite')
    AND node.id = %(node)s AND node.incarnation = %(incarnation)s
    AND node.beat = %(beat)s"""
RAISE_FENCE = (
    "UPDATE writer SET fence = fence + 1 WHERE node = %(node)s RETURNING fence"
)
AWAIT_WRITER = "SELECT fence FROM writer WHERE node = %(node)s FOR UPDATE"
"""Waits for what the node has under way, and has what comes later see what changes."""

GIVE_LEASES = """UPDATE lease SET owner = next.owner, wanted = '', epoch = epoch + 1
    FROM unnest(%(names)s::text[], %(owners)s::text[]) AS next(name, owner)
    WHERE lease.name = next.name AND lease.owner = %(node)s RETURNING lease.name"""
"""Needs `RAISE_FENCE`, `AWAIT_WRITER`, or `FENCE` of the node that gives its own,
before it."""

LIVES = """SELECT id FROM node
    WHERE id = %(node)s AND incarnation = %(incarnation)s AND state = 'up' FOR UPDATE"""
"""Locks the row of a node that is about to take free leases: until its commit no other
node can declare it dead and take over from it."""

WANT = """UPDATE lease SET wanted = next.wanted
    FROM unnest(%(names)s::text[], %(wanted)s::text[], %(epochs)s::bigint[])
    AS next(name, wanted, epoch)
    WHERE lease.name = next.name AND lease.epoch = next.epoch RETURNING lease.name"""
LEAVE = """UPDATE node SET state = 'left'
    WHERE id = %(node)s AND incarnation = %(incarnation)s AND state = 'up'
    RETURNING id"""

RESOLVE = """UPDATE writer SET fence = fence + 1
    WHERE node = %(node)s AND fence = %(fence)s RETURNING fence, last_group"""
"""After a connection was lost: waits for the transaction that was under way on it, so
that its answer is final, and has one that is still on its way refused. No row: the
node was fenced."""


class Statement(msgspec.Struct, frozen=True):
    """One statement and its values."""

    text: str
    values: dict[str, Any]


def fence(claim: Fence) -> Statement:
    """Give the first statement of a transaction that writes."""
    names, epochs = [n for n, _ in claim.leases], [e for _, e in claim.leases]
    values = {"node": claim.node, "fence": claim.fence, "group": claim.group}
    return Statement(FENCE, values | {"names": names, "epochs": epochs})


def join(node: str, *, is_again: bool = False) -> tuple[Statement, ...]:
    """Begin a new life: what an earlier one still sends is refused from here on.

    Args:
        is_again: whether this process was the node before.
    """
    values = {"node": node, "is_again": is_again}
    return tuple(Statement(x, values) for x in (JOIN_NODE, JOIN_WRITER, JOIN_LEASES))


def set_leases(node: str, kind: str, names: Iterable[str]) -> tuple[Statement, ...]:
    """Have these leases of a kind, and no others if no other node lives.

    For a node that begins a new life: who holds a lease is killed when it is gone.
    """
    values = {"node": node, "kind": kind, "names": sorted(names)}
    return Statement(REMOVE_LEASES, values), add_leases(names)


def add_leases(names: Iterable[str]) -> Statement:
    """Have these leases besides those that there are."""
    return Statement(ADD_LEASES, {"names": sorted(names)})


def take_over(plan: TakeOver) -> tuple[Statement, ...]:
    """Fence a node and give its leases to others.

    The first statement stands alone, the others are one transaction. When the second
    gives no row, the node is alive: roll back. A lease that the node got after the rows
    were read stays with it; the next plan, of whichever node, finds it.
    """
    dead = plan.dead
    node = {"node": dead.id}
    seen = node | {"incarnation": dead.incarnation, "beat": dead.beat}
    return (
        Statement(END_SESSIONS, seen | {"sessions": application_name(dead.id, "")}),
        Statement(DECLARE_FENCED, seen | {"state": dead.state}),
        Statement(RAISE_FENCE, node),
        give(dead.id, plan.owners),
    )


def shut_out(node: str) -> tuple[Statement, ...]:
    """Fence a node that has no session; others take over what it has."""
    own = {"node": node}
    return Statement(DECLARE_GONE, own), Statement(RAISE_FENCE, own)


def give(node: str, owners: dict[str, str]) -> Statement:
    """Give leases of a node, empty for nobody's, to these owners."""
    values = {"names": [*owners], "owners": [*owners.values()]}
    return Statement(GIVE_LEASES, {"node": node} | values)


def adopt(node: str, incarnation: int, names: Iterable[str]) -> tuple[Statement, ...]:
    """Take leases that nobody has; when the first gives no row, another took over."""
    own = {"node": node, "incarnation": incarnation}
    return Statement(LIVES, own), give("", dict.fromkeys(names, node))


def want(moves: Mapping[str, str], epochs: Mapping[str, int]) -> Statement:
    """Have leases given by their owners to these nodes, if they are as they were read.

    Args:
        moves: by lease the node that is to have it.
        epochs: the epoch of each.
    """
    names = sorted(moves)  # two that want the same lock it in the same order
    values = {"names": names, "wanted": [moves[name] for name in names]}
    return Statement(WANT, values | {"epochs": [epochs[name] for name in names]})


def give_own(node: str, owners: dict[str, str]) -> tuple[Statement, ...]:
    """Give leases of a node whose writer goes on with others."""
    return Statement(AWAIT_WRITER, {"node": node}), give(node, owners)


def application_name(node: str, session: int | str) -> str:
    """Give the name under which a node's sessions stand in `pg_stat_activity`.

    Args:
        session: what the session is for, or the node's life (0 while it joins); empty:
            how all its names begin.
    """
    return f"callboard/{node}/{session}"
