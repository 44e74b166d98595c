"""One node's way to the rows of all nodes and leases; `runtime.nodes` has the rules.

Plain functions that block, on a connection of their own: a beat must not wait behind a
large commit. Who calls them from trio does so in a thread.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec
import psycopg

from runtime.errors import FencedError, StoreRefusedError, StoreUnavailableError
from runtime.nodes import statements
from runtime.nodes.hints import LEASES, encode
from runtime.nodes.membership import MembershipPlan
from runtime.nodes.rows import (
    ACCOUNT,
    Formats,
    LeaseRow,
    Member,
    NodeRow,
    why_apart,
)
from runtime.nodes.statements import Statement
from runtime.postgresql.migrations import FORMATS, HAS_CARDS, migrate, version_of
from runtime.postgresql.server import NOTIFY, Db, PostgresqlServer, rows_of
from runtime.postgresql.threads import LET_GO_WITHIN, PAUSE, claim

T = TypeVar("T")

SESSIONS = """SELECT pid FROM pg_stat_activity
    WHERE starts_with(application_name, %s) AND pid <> pg_backend_pid()
    AND datname = current_database()"""
# Why not one that waits for a replica: see `END_SESSIONS`.
END_OWN = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE starts_with(application_name, %s) AND pid <> pg_backend_pid()
    AND datname = current_database() AND wait_event = 'ClientRead'"""
# In tables of an earlier release, which are read before they change, nobody is drained.
CARDS = """SELECT node.id, node.state, node.beat,
    coalesce((to_jsonb(node.*)->>'is_drained')::boolean, false), card.card, EXISTS (
        SELECT FROM pg_stat_activity AS session
        WHERE session.datname = current_database()
        AND starts_with(session.application_name, 'callboard/' || node.id || '/'))
    FROM node LEFT JOIN node_card AS card ON card.node = node.id ORDER BY node.id"""
PUT_CARD = """INSERT INTO node_card(node, card, settings) VALUES (%s, %s, %s)
    ON CONFLICT(node) DO UPDATE
    SET card = excluded.card, settings = excluded.settings"""
READ_CARDS = "SELECT node, card FROM node_card"
SETTINGS = "SELECT settings FROM node_card WHERE node = %s"
SET_DRAINED = "UPDATE node SET is_drained = %s WHERE id = %s RETURNING id"
REMOVE_NODE = """DELETE FROM node WHERE id = %s AND NOT EXISTS
    (SELECT FROM lease WHERE owner = node.id) RETURNING id"""
REMOVE_WRITER = "DELETE FROM writer WHERE node = %s"
REMOVE_CARD = "DELETE FROM node_card WHERE node = %s"
REMOVE_CHANGES = "DELETE FROM change WHERE node = %s"


class NodeCard(msgspec.Struct, frozen=True):
    """How a node presents itself; one of another release may leave some of it out."""

    release: str = ""
    formats: Formats | None = None
    """Says beside which others it can work; None: it does not say."""

    host: str = ""
    """Name of its machine."""

    process: int = 0
    address: str = ""
    """Where the other nodes reach it; empty: nowhere."""

    doors: dict[str, int] = {}
    """By connector, the TCP port on which it listens there."""

    mark: str = ""
    """By which to tell the folder beside the database: see `[store] path`."""

    accounts: tuple[str, ...] | None = None
    """Leases of connectors of its own that it can act for; None: it does not say."""

    has_begun: bool | None = None
    """Whether it answers, and does not only show life; None: it does not say."""

    shares_work: bool | None = None
    """Whether it works beside the one that runs the company; None: it does not say."""

    admin: tuple[str, int] | None = None
    """Host and port at which it means to be asked by operators; None: nowhere."""


class KnownNode(msgspec.Struct, frozen=True):
    """One node, as operators and other nodes see it."""

    id: str
    state: str
    """`up`, `fenced`, `left`; see `runtime.nodes.rows`."""

    beat: int
    card: NodeCard
    is_connected: bool
    """Whether it has a session with the database."""

    is_drained: bool = False
    """Whether it was told to give all away, and to take nothing meanwhile."""


class NodesLook(msgspec.Struct, frozen=True):
    """All that is known of nodes at one moment."""

    nodes: tuple[NodeRow, ...]
    leases: tuple[LeaseRow, ...]
    barred: dict[str, frozenset[str]] = {}
    """By node, the leases of connectors that its settings do not name: it has refused
    those that do, or has not read them yet."""

    begun: frozenset[str] = frozenset()
    """The nodes that said that they answer, in this life or in their last one."""


class NodeDesk:
    """One node's connection; not for two threads at once.

    Args:
        within: seconds that one statement may take; its answer, twice as many.
    """

    def __init__(self, server: PostgresqlServer, node: str, within: float) -> None:
        self._server = server
        self._node = node
        self._within = within
        self._db: Db | None = None
        self._incarnation = 0
        self._has_joined = False

    def join(
        self, card: NodeCard, settings: bytes, accounts: Collection[str] = ()
    ) -> Member:
        """Begin a new life, under which what an earlier one still sends is refused.

        Args:
            settings: what must agree on all nodes.
            accounts: names of the leases of connectors that there are to be.

        Raises:
            StoreRefusedError: another process has this name, or another node's release
                cannot work beside this one's.
            StoreTooNewError: a newer release changed the tables, and this one cannot
                use them.
            StoreUnavailableError: the server is away, or a process that is no node has
                the database.
        """
        self.drop()
        name = statements.application_name(self._node, 0)
        db = self._db = self._server.connect(name, self._within, 2 * self._within)
        with contextlib.ExitStack() as undo, self._server.told():
            undo.callback(self.drop)
            self._refuse_namesake(db)
            self._await_strangers(db, card)
            claim(db, self._server.name, is_node=True)
            alone = partial(self._shut_out_strangers, db, card)
            migrate(db, self._server.name, check=alone)
            with db.transaction():
                steps = statements.join(self._node, is_again=self._has_joined)
                joined = [self._run(db, each) for each in steps]
                for step in statements.set_leases(self._node, ACCOUNT, accounts):
                    self._run(db, step)
                db.execute(PUT_CARD, (self._node, msgspec.json.encode(card), settings))
            self._incarnation = int(joined[0][0][0])
            undo.callback(self._leave, db)
            # Why again: who joins meanwhile saw this node as little as it saw that one.
            migrate(db, self._server.name, check=alone)
            with db.transaction():
                alone()
            name = statements.application_name(self._node, self._incarnation)
            db.execute("SELECT set_config('application_name', %s, false)", (name,))
            undo.pop_all()
        self._has_joined, fence = True, int(joined[1][0][0])
        leases = tuple((str(row[0]), int(row[1])) for row in joined[2])
        return Member(self._incarnation, fence, leases)

    def _refuse_namesake(self, db: Db) -> None:
        """End sessions of an earlier life of ours; refuse to share a name."""
        mine = statements.application_name(self._node, "")
        if self._has_joined:
            rows_of(db, END_OWN, (mine,))
            return
        end = time.monotonic() + LET_GO_WITHIN
        while rows_of(db, SESSIONS, (mine,)):
            if time.monotonic() > end:
                raise StoreRefusedError(
                    f"another process runs as node {self._node!r} on"
                    f" {self._server.name}: give each its own [nodes] name"
                    " (CALLBOARD_NODES__NAME), or end that one"
                )
            threading.Event().wait(PAUSE)

    def _await_strangers(self, db: Db, card: NodeCard) -> None:
        """Give nodes that this one cannot work beside the time to connect again."""
        end = time.monotonic() + LET_GO_WITHIN
        while self._strangers(db, card) and time.monotonic() < end:
            threading.Event().wait(PAUSE)

    def _shut_out_strangers(self, db: Db, card: NodeCard) -> None:
        """Have no node come back beside this one that it cannot work beside.

        Raises:
            StoreRefusedError: such a node is there.
        """
        for gone in self._strangers(db, card):
            for step in statements.shut_out(gone):
                self._run(db, step)

    def _strangers(self, db: Db, card: NodeCard) -> list[str]:
        """Name nodes that this one cannot work beside, and that do not answer.

        Those that have ended or were fenced see this one when they join again.

        Raises:
            StoreRefusedError: one does answer.
        """
        gone: list[str] = []
        for each in _known(db):
            why = why_apart(card.formats or FORMATS, each.card.formats)
            if not why or each.id == self._node or each.state != "up":
                continue
            if each.is_connected:
                theirs = each.card.release or "(unknown)"
                raise StoreRefusedError(
                    f"node {each.id!r} runs release {theirs} and this is"
                    f" {card.release}: they cannot work side by side, because {why}."
                    " Go by the releases in between, one after the other, or stop all"
                    " nodes, then start one release on each"
                )
            gone.append(each.id)
        return gone

    def beat(self) -> NodesLook:
        """Show life, and look at the others.

        Raises:
            FencedError: another node took over from this one.
            StoreError: the server.
        """
        with self._server.told():
            db = self._connected()
            own = {"node": self._node, "incarnation": self._incarnation}
            # At once: a beat that was stored is one that others see.
            if not rows_of_named(db, statements.BEAT, own):
                raise self._fenced()
            nodes = tuple(NodeRow(*row) for row in rows_of(db, statements.READ_NODES))
            leases = tuple(
                LeaseRow(*row) for row in rows_of(db, statements.READ_LEASES)
            )
            found = rows_of(db, READ_CARDS)
            cards = {node: read_card(card) for node, card in found}
            begun = frozenset(name for name, card in cards.items() if card.has_begun)
            return NodesLook(nodes, leases, barred_by(cards, leases), begun)

    def carry_out(self, plan: MembershipPlan, look: NodesLook) -> bool:
        """Do what a plan says of others and of what nobody has.

        Returns:
            Whether leases may have changed hands: look again at once.
        """
        has_moved = False
        with self._server.told():
            db = self._connected()
            if plan.take_over is not None:
                self._take_over(db, statements.take_over(plan.take_over))
                has_moved = True  # or another node took over just before
            if plan.adopt:
                lives, take = statements.adopt(
                    self._node, self._incarnation, plan.adopt
                )
                with db.transaction():
                    if not self._run(db, lives):
                        raise self._fenced()
                    self._run(db, take)
                    self._tell_moved(db)
                has_moved = True
            if plan.want:
                epochs = {row.name: row.epoch for row in look.leases}
                self._run(db, statements.want(plan.want, epochs))
        return has_moved

    def _fenced(self) -> FencedError:
        return FencedError(f"another node took over from node {self._node!r}")

    def _take_over(self, db: Db, steps: tuple[Statement, ...]) -> None:
        end_sessions, *rest = steps
        self._run(db, end_sessions)
        with db.transaction():
            for number, step in enumerate(rest):
                if not self._run(db, step) and number == 0:
                    return  # it lives, or has been fenced
            self._tell_moved(db)

    def give(self, owners: dict[str, str]) -> None:
        """Give leases away; what this node still sends under them is refused."""
        with self._server.told():
            db = self._connected()
            with db.transaction():
                for step in statements.give_own(self._node, owners):
                    self._run(db, step)
                self._tell_moved(db)

    def _tell_moved(self, db: Db) -> None:
        """Have the others look as soon as this is committed: they need not wait."""
        hint = encode(self._node, (LEASES,))
        db.execute(NOTIFY, (self._server.options.channel, hint))

    def set_drained(self, is_drained: bool) -> None:  # noqa: FBT001  called in a thread
        """Have this node give all away, or not; see `NodesFromOutside.set_drained`."""
        with self._server.told():
            rows_of(self._connected(), SET_DRAINED, (is_drained, self._node))

    def announce(self, owners: dict[str, str], look: NodesLook) -> None:
        """Say to whom leases will be given, so that they look more often."""
        epochs = {row.name: row.epoch for row in look.leases if row.owner == self._node}
        moves = {name: to for name, to in owners.items() if name in epochs}
        with self._server.told():
            self._run(self._connected(), statements.want(moves, epochs))

    def leave(self) -> None:
        """Say that this node has ended, so that nobody waits for a sign of life."""
        if not self._has_joined:
            return
        with self._server.told():
            self._leave(self._connected())

    def _leave(self, db: Db) -> None:
        own = {"node": self._node, "incarnation": self._incarnation}
        with contextlib.suppress(psycopg.Error):
            rows_of_named(db, statements.LEAVE, own)

    def publish(
        self, card: NodeCard, settings: bytes, accounts: Collection[str] = ()
    ) -> None:
        """Store what this node says of itself in place of what it said; see `join`.

        Leases that are not named any more stay until a node joins.
        """
        with self._server.told():
            db = self._connected()
            with db.transaction():
                given = (self._node, msgspec.json.encode(card), settings)
                db.execute(PUT_CARD, given)
                self._run(db, statements.add_leases(accounts))

    def known(self) -> dict[str, KnownNode]:
        """Read all nodes, by id."""
        with self._server.told():
            return {each.id: each for each in _known(self._connected())}

    def settings_of(self, node: str) -> bytes:
        """Read the settings that a node published; empty if it has none."""
        with self._server.told():
            rows = rows_of(self._connected(), SETTINGS, (node,))
            return bytes(rows[0][0]) if rows else b""

    def drop(self) -> None:
        """Close the connection."""
        if self._db is not None:
            self._db.close()
        self._db = None

    def _connected(self) -> Db:
        if self._db is None or self._db.closed:
            name = statements.application_name(self._node, self._incarnation)
            db = self._server.connect(name, self._within, 2 * self._within)
            with contextlib.ExitStack() as undo:
                undo.callback(db.close)
                claim(db, self._server.name, is_node=True)
                undo.pop_all()
            self._db = db
        return self._db

    def _run(self, db: Db, step: Statement) -> list[tuple[Any, ...]]:
        return rows_of_named(db, step.text, step.values)


def rows_of_named(db: Db, text: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Run a statement whose values are named; give its rows."""
    cursor = db.execute(text.encode(), values)
    return cursor.fetchall() if cursor.description else []


def barred_by(
    cards: Mapping[str, NodeCard], leases: Collection[LeaseRow]
) -> dict[str, frozenset[str]]:
    """Find by node the leases of connectors that it cannot act for."""
    accounts = {row.name for row in leases if row.name.startswith(ACCOUNT)}
    return {
        node: frozenset(accounts.difference(card.accounts))
        for node, card in cards.items()
        if card.accounts is not None
    }


def read_card(card: bytes | None) -> NodeCard:
    """Read how a node presents itself; one that cannot be read says nothing."""
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.json.decode(card or b"{}", type=NodeCard)
    return NodeCard()


def _known(db: Db) -> list[KnownNode]:
    if (version_of(db) or 0) < HAS_CARDS:
        return []
    found: list[KnownNode] = []
    for node, state, beat, is_drained, card, is_connected in rows_of(db, CARDS):
        read = read_card(card)
        found.append(KnownNode(node, state, beat, read, is_connected, is_drained))
    return found


class NodesFromOutside:
    """Looks at the nodes of a database, and changes them by hand."""

    def __init__(self, server: PostgresqlServer) -> None:
        self._server = server

    def _call(self, work: Callable[[Db], T]) -> T:
        with (
            self._server.told(),
            contextlib.closing(self._server.connect("callboard nodes", 10.0)) as db,
        ):
            if (version_of(db) or 0) < HAS_CARDS:
                raise StoreUnavailableError(
                    f"{self._server.name} has no nodes yet: start one with a [nodes]"
                    " name"
                )
            return work(db)

    def read(self) -> tuple[list[KnownNode], list[LeaseRow]]:
        """Give all nodes, and all leases."""

        def work(db: Db) -> tuple[list[KnownNode], list[LeaseRow]]:
            rows = rows_of(db, statements.READ_LEASES)
            return _known(db), [LeaseRow(*row) for row in rows]

        return self._call(work)

    def set_drained(self, node: str, *, is_drained: bool) -> bool:
        """Have a node give all away and take nothing, or take work again.

        Returns:
            False: there is no such node.
        """

        def work(db: Db) -> bool:
            return bool(rows_of(db, SET_DRAINED, (is_drained, node)))

        return self._call(work)

    def remove(self, node: str) -> bool:
        """Forget a node that has gone; False: it holds leases, or was removed."""

        def work(db: Db) -> bool:
            with db.transaction():
                if not rows_of(db, REMOVE_NODE, (node,)):
                    return False
                db.execute(REMOVE_WRITER, (node,))
                db.execute(REMOVE_CARD, (node,))
                db.execute(REMOVE_CHANGES, (node,))
            return True

        return self._call(work)
