"""One run: nodes, network, the server's bad days, people, and what strikes them.

All dice come from the seed. Each class of faults is on or off per seed, because faults
that always come together hide what one of them does alone.
"""

from __future__ import annotations

import random  # noqa: TID251  seeded
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from runtime.nodes import statements as sql
from runtime.nodes.rows import Fence
from tests.nodes_simulation import work
from tests.nodes_simulation.checks import Breach, Checks
from tests.nodes_simulation.loop import Host, Loop, Promise, Steps
from tests.nodes_simulation.node import TTL, Holding, Node
from tests.nodes_simulation.server import (
    RefusedError,
    Row,
    Run,
    Server,
    Session,
    Transaction,
    Work,
)
from tests.nodes_simulation.statements import modelled, node_key

PARTS = 4
CHATS = 6
MESSAGES = 20
POLLED = 6
SLOTS = 3
FAULTS_END = 40.0
REST = TTL + 60.0
"""Seconds after the last fault within which all is settled."""

FOR_EVER = 1000.0
"""Seconds of a pause that is longer than a run: the node does not come back."""

KINDS = (
    "crash",
    "pause",
    "stop",
    "cut",
    "lost_ack",
    "lost_request",
    "late",
    "slow",
    "replica",
    "restart",
    "jump",
    "join",
    "leave",
    "drain",
    "upgrade",
)


class Result(msgspec.Struct, frozen=True):
    """What became of one run."""

    seed: int
    events: int
    seconds: float
    """Virtual ones."""

    faults: tuple[str, ...]
    happened: dict[str, int]
    breaches: tuple[Breach, ...]


class World:
    """All of one run.

    Args:
        seed: of its dice.
        mistakes: what is done wrong on purpose.
    """

    def __init__(self, seed: int, mistakes: frozenset[str] = frozenset()) -> None:
        self.seed = seed
        self.dice = random.Random(seed)  # noqa: S311
        self.loop = Loop()
        self.server = Server()
        self.checks = Checks(self)
        self._mistakes = mistakes
        # Longer than a request may lie in a node that is paused.
        self.keep = 45.0
        self.beaten: dict[str, float] = {}
        self._ident = 0
        self._walls: defaultdict[str, float] = defaultdict(float)
        self._cut: dict[str, float] = {}
        self._stops: dict[str, float] = {}
        self._stopped: set[str] = set()
        self._fates: defaultdict[str, list[str]] = defaultdict(list)
        self._troubled: defaultdict[str, float] = defaultdict(float)
        self._down_until = 0.0
        self._slow_until = 0.0
        self._replica_back = 0.0
        self._waiting: list[Session] = []
        self._unreplicated: list[tuple[Any, Row | None]] = []
        self.faults: list[str] = []
        self._begin()

    def wrong(self, mistake: str) -> bool:
        """Whether this is done wrong."""
        return mistake in self._mistakes

    def ident(self) -> int:
        """Give an id that nobody else has."""
        self._ident += 1
        return self._ident

    def _begin(self) -> None:
        server, dice = self.server, self.dice
        server.flush = self._flush
        server.on_wait = self._on_wait
        server.on_idle = self._on_idle
        server.on_publish = self.checks.published
        server.cache = 32 if self.wrong("cache") else 1
        names = [f"part/{part}" for part in range(PARTS)]
        names += [f"account/{number}" for number in range(work.ACCOUNTS)]
        for name in (*names, "scheduler", "keeper"):
            row = {"name": name, "owner": "", "wanted": "", "epoch": 0}
            server.tables["lease"]["lease", name] = row
        server.tables["budget"][("budget",)] = {"spent": 0}
        server.tables["tables"][("tables",)] = {"version": 1, "oldest": 1}
        for number in range(SLOTS):
            due = dice.uniform(1.0, FAULTS_END)
            slot = {"lease": "scheduler", "number": number, "due": due}
            server.tables["slot"]["slot", number] = slot | {"is_fired": False}
        count = dice.choice((2, 2, 3, 4))
        self.names = "abcde"
        self.nodes = {name: Node(self, name) for name in self.names[:count]}
        self._walls.update({n: dice.choice((0.0, -2.6e6, 900.0)) for n in "abcde"})
        self.drops_hints = dice.choice((0.0, 0.3, 1.0))
        # Nothing but speed may hang on it: the role may lack the right.
        self.ends_sessions = dice.random() < 0.5
        self.kinds = [kind for kind in KINDS if dice.random() < 0.35]
        self._plan_people()

    # ------------------------------------------------------------------ one's time

    def begin_within(self) -> float:
        """Give the seconds from a node's first sign of life until it answers."""
        return self.dice.choice((0.2, 1.0, self.dice.uniform(2.0, 10.0)))

    def wall(self, node: str) -> float:
        """Give the time of day on a node's clock."""
        return self.loop.now + self._walls[node]

    def calm(self, node: str) -> float:
        """Give for how long nothing has been wrong with a node or the server."""
        last = max(self._troubled[node], self._troubled[""])
        return self.loop.now - last

    def _trouble(self, node: str, seconds: float) -> None:
        self._troubled[node] = max(self._troubled[node], self.loop.now + seconds)

    # --------------------------------------------------------------------- network

    def latency(self) -> float:
        return self.dice.uniform(0.0005, 0.003)

    def can_reach(self, node: str) -> bool:
        """Whether a node's packets reach the server."""
        now = self.loop.now
        return now >= self._down_until and now >= self._cut.get(node, 0.0)

    def fate(self, node: str, count: int) -> str:
        """Say what becomes of the next call of a node; only of a whole group."""
        if count >= 4 and self._fates[node]:
            return self._fates[node].pop()
        return "right"

    def stop_in(self, node: str, count: int) -> int:
        """Say after how many of these statements a node stops; 0: it does not.

        It stops in the middle of them, or after one of a transaction that it sends
        one by one.
        """
        if (
            node not in self._stops
            or count == 2
            or (count == 1 and self.dice.random() < 0.9)
        ):
            return 0
        seconds = self._stops.pop(node)
        if seconds == FOR_EVER:
            self._stopped.add(node)
        self.nodes[node].host.pause(seconds)
        self.checks.struck(node)
        self._trouble(node, seconds)
        return self.dice.randrange(1, count) if count > 1 else 0

    def back(self, node: str, call: Callable[[], object]) -> None:
        """Have an answer of the server arrive."""
        if self.can_reach(node):
            self.loop.after(self.latency(), call)

    def hint(self, sender: str) -> None:
        """Tell all nodes that there may be something new."""
        for name, node in self.nodes.items():
            if name == sender:
                node.hinted()
            elif self.dice.random() >= self.drops_hints:
                self.loop.after(self.dice.uniform(0.001, 0.1), node.hinted)

    # ---------------------------------------------------------------------- server

    def fence(self, claim: Fence) -> Run:
        """Give the fence of a transaction, as right as the mistakes leave it."""
        right = modelled(sql.fence(claim))

        def run(txn: Transaction) -> Work:
            if self.wrong("no lock"):
                row = txn.get(("writer", claim.node))
                if row is None or row["fence"] != claim.fence:
                    raise RefusedError(sql.FENCED)
                yield from ()
                return [{}]
            try:
                return (yield from right(txn))
            except RefusedError as error:
                if error.code == sql.FENCED:
                    self.checks.refused(claim.node, claim.fence)
                    if self.wrong("no row"):
                        return []
                raise

        return run

    def _on_wait(self, session: Session) -> None:
        waits = session.waits

        def give_up() -> None:
            if session.waits_for is not None and session.waits == waits:
                session.time_out()

        self.loop.after(2.0, give_up)

    def _on_idle(self, session: Session) -> None:
        transaction = session.transaction

        def time_out() -> None:
            if session.transaction is transaction and session.is_idle:
                session.end()

        self.loop.after(TTL / 3, time_out)

    def _flush(self, session: Session) -> None:
        transaction = session.transaction
        assert transaction is not None
        if not transaction.writes:
            session.committed()
            return
        if self.loop.now < self._replica_back:
            self._waiting.append(session)
            return
        is_slow = self.loop.now < self._slow_until
        seconds = self.dice.uniform(0.2, 2.5) if is_slow else 0.002

        def done() -> None:
            if session.transaction is transaction and session.is_committing:
                session.committed()

        self.loop.after(seconds, done)

    def cancel(self, session: Session) -> None:
        """Make a commit seen that no replica has: the mistake to cancel it."""
        transaction = session.transaction
        if session in self._waiting and transaction is not None:
            self._waiting.remove(session)
            for key in transaction.writes:
                self._unreplicated.append((key, self.server.tables[key[0]].get(key)))
            session.committed()

    def _replica_returns(self, *, fails_over: bool) -> None:
        waiting, self._waiting = self._waiting, []
        if not fails_over:
            self._unreplicated.clear()
            for session in waiting:
                if session.is_committing:
                    session.committed()
            return
        for key, row in reversed(self._unreplicated):
            table = self.server.tables[key[0]]
            if row is None:
                table.pop(key, None)
            else:
                table[key] = row
        self._unreplicated.clear()
        for session in waiting:
            session.is_committing = False
        self._all_connections_end()

    def _all_connections_end(self) -> None:
        seconds = self.dice.uniform(0.5, 5.0)
        self._down_until = self.loop.now + seconds
        self._trouble("", seconds + 1.0)
        self.server.crash()

    # ---------------------------------------------------------------------- people

    def _plan_people(self) -> None:
        self.wanted: set[str] = set()
        self.known: set[str] = set()
        self.notes: set[str] = set()
        self.acknowledged: dict[str, float] = {}
        self._first_sent: dict[str, float] = {}
        self._chat_of: dict[str, str] = {}
        self._polled: defaultdict[str, list[Row]] = defaultdict(list)
        self._people = Host(self.loop)
        for number in range(CHATS):
            count = self.dice.randint(1, MESSAGES // CHATS * 2)
            rows = [self._message(f"{number}-{n}", number) for n in range(count)]
            self._people.spawn(self._writing(rows))
        for n in range(POLLED):
            chat = CHATS + n % work.ACCOUNTS
            row = self._message(f"p{n}", chat)
            self._polled[work.account_of(row["part"])].append(
                row | {"at": self.dice.uniform(0.0, FAULTS_END)}
            )
        for rows in self._polled.values():
            rows.sort(key=lambda row: row["at"])

    def _message(self, name: str, chat: int) -> Row:
        part = chat % PARTS
        note = self.dice.randrange(PARTS) if self.dice.random() < 0.3 else None
        if note is not None:
            self.notes.add(name)
        self.wanted.add(name)
        self._chat_of[name] = f"chat{chat}"
        costs = self.dice.random() < 0.6
        row = {"part": part, "name": name, "chat": f"chat{chat}", "costs": costs}
        return row | {"note_for": note}

    def slot_message(self, slot: Row) -> Row:
        """Give the message that an appointment becomes."""
        name = f"slot{slot['number']}"
        self._chat_of[name] = name
        row = {"part": slot["number"] % PARTS, "name": name, "chat": name}
        return row | {"costs": False, "note_for": None}

    def _writing(self, rows: list[Row]) -> Steps:
        """Write in one chat; mostly one message after the other."""
        yield self.dice.uniform(0.0, 15.0)
        for row in rows:
            promise = Promise()
            self._people.spawn(self._sending(row, promise))
            if self.dice.random() < 0.8:
                yield promise
                pause = self.dice.choice((0.0, 0.01, self.dice.uniform(0.1, 6.0)))
                yield pause

    def _sending(self, row: Row, promise: Promise) -> Steps:
        """Send a message until some node acknowledges it, perhaps once more."""
        name = row["name"]
        self._first_sent.setdefault(name, self.loop.now)

        def acknowledge() -> None:
            self.acknowledged.setdefault(name, self.loop.now)
            promise.keep()

        while not promise.is_kept:
            node = self.dice.choice([*self.nodes.values()])
            node.receive(row, acknowledge)
            waited = Promise()
            promise.then(waited.keep)
            self.loop.after(2.0, waited.keep)
            yield waited
        if self.dice.random() < 0.3:
            yield self.dice.uniform(0.1, 8.0)
            self.dice.choice([*self.nodes.values()]).receive(row, acknowledge)

    def heard_of(self, name: str) -> None:
        """Take note that a message is stored."""
        self.known.add(name)

    def answered(self, name: str) -> None:
        """Take note that a message is answered."""

    def before(self, name: str) -> list[str]:
        """Name the messages that were acknowledged before this one was first sent."""
        sent = self._first_sent.get(name, 0.0)
        chat = self._chat_of[name]
        return [
            other
            for other, at in self.acknowledged.items()
            if at < sent and self._chat_of[other] == chat
        ]

    # -------------------------------------------------------------------- platform

    def poll(self, node: Node, holding: Holding, offset: int) -> list[Row]:
        """Give what people wrote since that offset."""
        self.checks.acts(node.name, holding.name, holding.epoch, "polled")
        rows = self._polled[holding.name][offset:]
        return [
            {name: value for name, value in row.items() if name != "at"}
            for row in rows
            if row["at"] <= self.loop.now
        ]

    def send(self, node: Node, holding: Holding, name: str, number: int) -> None:
        """Show an answer to people."""
        self.checks.acts(node.name, holding.name, holding.epoch, "sent")
        self.checks.sends(node.name, holding.epoch, name, number)

    # ---------------------------------------------------------------------- faults

    def _plan_faults(self) -> None:
        for kind in self.kinds:
            is_once = kind in {"join", "leave", "drain"}
            for _ in range(1 if is_once else self.dice.randint(1, 3)):
                at = self.dice.uniform(3.0, FAULTS_END)
                self.loop.after(at, partial(self._strike, kind))

    def _strike(self, kind: str) -> None:
        self.faults.append(f"{self.loop.now:.1f} {kind}")
        up = [node for node in self.nodes.values() if node.is_up]
        if kind == "join":
            node = self.nodes["e"] = Node(self, "e")
            node.start()
        elif kind == "slow":
            self._slow_until = self.loop.now + 5.0
            self._trouble("", 10.0)
        elif kind == "restart":
            self._all_connections_end()
        elif kind == "replica":
            self._lose_replica()
        elif up:
            node = self.dice.choice(up)
            if kind in {"crash", "pause", "cut", "upgrade"}:
                self.checks.struck(node.name)
            by_kind = {"drain": self._drain, "upgrade": self._upgrade}
            by_kind.get(kind, partial(self._strike_node, kind))(node)

    def _lose_replica(self) -> None:
        if self._waiting or self.loop.now < self._replica_back:
            return
        seconds = self.dice.uniform(2.0, 15.0)
        self._replica_back = self.loop.now + seconds
        self._trouble("", seconds + 6.0)
        fails_over = self.dice.random() < 0.5
        self.loop.after(seconds, lambda: self._replica_returns(fails_over=fails_over))

    def _strike_node(self, kind: str, node: Node) -> None:
        name, dice = node.name, self.dice
        if kind == "crash":
            seconds = dice.uniform(0.2, 15.0)
            node.crash()
            self._trouble(name, seconds + 1.0)
            self.loop.after(seconds, node.start)
        elif kind == "pause":
            seconds = dice.choice((1.0, 5.0, 10.0, 25.0)) * dice.uniform(0.5, 1.0)
            node.host.pause(seconds)
            self._trouble(name, seconds)
        elif kind == "stop":
            for_ever = dice.random() < 0.3 and self.ends_sessions
            for_ever = for_ever and self._can_lose_one()
            self._stops[name] = FOR_EVER if for_ever else dice.uniform(1.0, 25.0)
        elif kind == "cut":
            seconds = dice.uniform(1.0, 20.0)
            self._cut[name] = self.loop.now + seconds
            self._trouble(name, seconds + 6.0)
        elif kind == "jump":
            self._walls[name] += dice.choice((-1.0, 1.0)) * dice.uniform(10.0, 1e6)
        elif kind == "leave":
            if self._can_lose_one():
                node.leave()
        else:
            self._fates[name].append(kind)
            self._trouble(name, 30.0)

    def _can_lose_one(self) -> bool:
        """Whether two nodes would go on without one of those that are up.

        Who leaves, or has stopped for ever or is about to, does not go on.
        """
        lost = {name for name, seconds in self._stops.items() if seconds == FOR_EVER}
        lost |= self._stopped
        lost |= {n for n, node in self.nodes.items() if node.rules.is_leaving}
        up = {name for name, node in self.nodes.items() if node.is_up}
        return len(up - lost) > 2

    def _upgrade(self, node: Node) -> None:
        """Have a node begin again with another release; killed, or told to leave."""
        release = max(1, node.release + self.dice.choice((-1, 1, 1, 2)))
        seconds = self.dice.uniform(0.2, 10.0)
        if self.dice.random() < 0.5:
            node.leave()
        else:
            node.crash()

        def start() -> None:
            if node.is_up:
                node.crash()
            node.release = release
            node.start()

        self._trouble(node.name, seconds + 1.0)
        self.loop.after(seconds, start)

    def allowed_release(self, release: int) -> int:
        """Say which release an operator installs in place of one that was refused.

        Mostly none, for a while.
        """
        if self.dice.random() < 0.7:
            return release
        version: int = self.server.tables["tables"]["tables",]["version"]
        return version

    def _drain(self, node: Node) -> None:
        """Have a node give all away, and later take work again, as an operator does."""

        def order(*, is_drained: bool) -> None:
            self.server.connect("operator").send(
                lambda txn: txn.update(
                    [node_key(node.name)], lambda _: True, is_drained=is_drained
                ),
                lambda _: None,
            )

        order(is_drained=True)
        seconds = self.dice.choice((5.0, 20.0))
        self.loop.after(seconds, partial(order, is_drained=False))

    # ------------------------------------------------------------------------ run

    def run(self) -> Result:
        """Play it to its end."""
        self._plan_faults()
        for node in self.nodes.values():
            self.loop.after(self.dice.uniform(0.0, 1.0), node.start)
        next_look = FAULTS_END
        while self.loop.step():
            if self.checks.breaches:
                break
            if self.loop.now >= next_look:
                next_look = self.loop.now + 1.0
                missing = self.checks.missing()
                if not missing:
                    self.checks.at_rest()
                    break
                if self.loop.now > FAULTS_END + REST:
                    self.checks.breach("at rest", "; ".join(missing[:5]))
        return Result(
            seed=self.seed,
            events=self.loop.count,
            seconds=self.loop.now,
            faults=tuple(self.faults),
            happened=dict(self.checks.happened),
            breaches=tuple(self.checks.breaches),
        )


def play(seed: int, mistakes: frozenset[str] = frozenset()) -> Result:
    """Play one seed."""
    return World(seed, mistakes).run()
