"""One node: the shell around `runtime/nodes/membership.py`, on the model's server.

What it decides about nodes and leases is the product's; what it does for a part, an
account or a singleton is the least that shows whether that is right.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from runtime.nodes import statements as sql
from runtime.nodes.membership import Membership, MembershipPlan, Suspicion, TakeOver
from runtime.nodes.rows import (
    Fence,
    Format,
    Formats,
    LeaseRow,
    Member,
    NodeRow,
    why_apart,
)
from tests.nodes_simulation import work
from tests.nodes_simulation.client import Connection, LostError
from tests.nodes_simulation.loop import FencedError, Host, Promise, Steps, Task
from tests.nodes_simulation.server import RefusedError, Row, Run, Transaction, Work
from tests.nodes_simulation.statements import modelled, node_key

if TYPE_CHECKING:
    from tests.nodes_simulation.world import World

TTL = 6.0
POLL = 1.0
GROUP = 8
DRAIN = 1.0
APART = "apart"
"""In place of an SQLSTATE: nodes of two releases cannot work side by side."""


class Unit:
    """What one commit is to do, and who waits for it."""

    def __init__(self, ident: int, run: Run, leases: Iterable[tuple[str, int]]) -> None:
        self.ident = ident
        self.run = run
        self.leases = tuple(leases)
        self.promise = Promise()

    def noted(self, txn: Transaction) -> Work:
        """Do it, and note for the checks that it was done."""
        answer = yield from self.run(txn)
        txn.units[self.ident] = bool(answer and answer[0].get("is_done", True))
        return answer


class Holding:
    """A lease that this node acts for, with all that is in hand for it."""

    def __init__(self, name: str, epoch: int) -> None:
        self.name = name
        self.epoch = epoch
        self.tasks: list[Task] = []
        self.hand: set[Any] = set()
        self.chats: defaultdict[str, deque[Row]] = defaultdict(deque)
        self.is_draining = False
        self.seen = 0

    @property
    def part(self) -> int:
        return int(self.name.partition("/")[2])

    @property
    def lease(self) -> tuple[tuple[str, int], ...]:
        return ((self.name, self.epoch),)


class WallSuspicion(Suspicion):
    """The mistake to compare the times of day of two machines."""

    def __init__(self, world: World, me: str) -> None:
        super().__init__(me, TTL)
        self._world = world

    def read(self, now: float, nodes: Collection[NodeRow]) -> tuple[NodeRow, ...]:
        """Suspect whose beat has an old time of day."""
        del now
        wall, beaten = self._world.wall(self._me), self._world.beaten
        return tuple(
            row
            for row in nodes
            if row.state == "up" and wall - beaten.get(row.id, wall) > TTL
        )


class Node:
    """One node, over all its lives.

    Args:
        world: where it is.
        name: its id.
    """

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.host = Host(world.loop)
        self.is_up = False
        self.holdings: dict[str, Holding] = {}
        self.group = 0
        self.release = 1
        self._begin()

    def _begin(self) -> None:
        self.has_begun = False
        self._has_joined = False
        self.announced = 0.0
        self.rules = Membership(self.name, TTL)
        if self.world.wrong("wall clock"):
            self.rules._suspicion = WallSuspicion(self.world, self.name)
        self._fence = 0
        self._incarnation = 0
        self._queue: deque[Unit] = deque()
        self._news = Promise()
        self._look = Promise()
        self._tasks: list[Task] = []
        self._connections: list[Connection] = []

    # ------------------------------------------------------------------ its lives

    def start(self) -> None:
        """Begin as a new process, if there is none."""
        if self.is_up:
            return
        self._begin()
        self.holdings = {}
        self.is_up = True
        self.host.spawn(self._live())

    def crash(self) -> None:
        """End at once (`kill -9`)."""
        self.is_up = False
        self.host.crash()
        self._reset()

    def _reset(self) -> None:
        for connection in self._connections:
            connection.reset()
        self._connections.clear()

    def now(self) -> float:
        """Give this machine's monotonic time."""
        return self.world.loop.now + 1000.0 * len(self.name)

    def connect(self) -> Connection:
        application = sql.application_name(self.name, self._incarnation)
        connection = Connection(self.world, self.host, (self.name, application))
        self._connections.append(connection)
        return connection

    def _live(self) -> Steps:
        while self.is_up:
            yield from self._join()
            self._tasks = [
                self.host.spawn(self._starting()),
                self.host.spawn(self._writing()),
                self.host.spawn(self._reading()),
            ]
            yield from self._beating()
            self._end()

    def _join(self) -> Steps:
        while True:
            steps = sql.join(self.name, is_again=self._has_joined)
            runs = [modelled(each) for each in steps]
            sent = self.now()
            try:
                connection = self.connect()
                yield from self._migrate(connection)
                together: list[Run | str] = ["begin", *runs, self._put_card()]
                answers = yield from connection.call([*together, "commit"])
                self._incarnation = answers[1][0]["incarnation"]
                yield from self._migrate(connection)
                alone: list[Run | str] = ["begin", self._shut_out_strangers, "commit"]
                yield from connection.call(alone)
            except (LostError, RefusedError) as error:
                yield from self._give_up_joining(error)
                continue
            self._fence = answers[2][0]["fence"]
            leases = tuple((row["name"], row["epoch"]) for row in answers[3])
            self._has_joined = True
            self._reset()
            self.rules.joined(sent, Member(self._incarnation, self._fence, leases))
            return

    def _give_up_joining(self, error: Exception) -> Steps:
        """Try later, perhaps with another release, if others cannot work beside it."""
        self._reset()
        if error.args == (APART,):
            self.release = self.world.allowed_release(self.release)
            with suppress(LostError, RefusedError):
                yield from self.connect().call([self._statement(sql.LEAVE)])
            self._reset()
        yield 0.5

    def _migrate(self, connection: Connection) -> Steps:
        """Bring the tables up to date, if nobody is there who needs them as they are.

        Not at once: so a session that stops meanwhile ends.
        """
        ((tables,),) = yield from connection.call([_rows_of("tables", None)])
        mine = formats_of(self.release).tables
        if tables["oldest"] > mine.version:
            raise RefusedError(APART)
        if tables["version"] >= mine.version:
            return
        steps: list[Run | str] = ["begin", self._lock_cards, self._shut_out_strangers]
        for step in (*steps, _migrating(mine), "commit"):
            yield from connection.call([step])

    def _lock_cards(self, txn: Transaction) -> Work:
        """Wait for all who are joining, and have others wait."""
        del txn
        yield ("tables",)
        for name in sorted(self.world.names):
            yield ("card", name)
        return [{}]

    def _shut_out_strangers(self, txn: Transaction) -> Work:
        """Shut out who is gone and must not come back beside this node.

        Raises:
            RefusedError: such a node is there.
        """
        yield from ()
        for card in txn.rows("card"):
            theirs, row = formats_of(card["release"]), txn.get(node_key(card["node"]))
            is_apart = why_apart(formats_of(self.release), theirs)
            if card["node"] == self.name or not is_apart or row is None:
                continue
            if row["state"] != "up":
                continue
            begin = sql.application_name(card["node"], "")
            if any(x.name.startswith(begin) for x in txn.server.sessions):
                raise RefusedError(APART)
            if not self.world.wrong("comes back"):
                for step in sql.shut_out(card["node"]):
                    yield from modelled(step)(txn)
        return [{}]

    def _put_card(self, *, has_begun: bool = False) -> Run:
        """Say how this node presents itself."""
        row = {"node": self.name, "has_begun": has_begun, "release": self.release}

        def run(txn: Transaction) -> Work:
            yield ("card", self.name)
            txn.put(("card", self.name), row)
            return [{"is_done": True}]

        return run

    def _starting(self) -> Steps:
        """Start what answers, which takes a while; then have it work on what there is.

        As `serve` does: it shows life from the beginning.
        """
        yield self.world.begin_within()
        self.has_begun = True
        for holding in self.holdings.values():
            self._start_work(holding)
        self._look.keep()
        yield self.submit(self._put_card(has_begun=True), ())

    def _end(self) -> None:
        """End all that acts for a lease, at once: its memory is of another life."""
        self.rules.ended()
        self.has_begun = False
        for unit in self._queue:
            unit.promise.keep(FencedError())
        self._queue.clear()
        for task in self._tasks:
            task.kill()
        if not self.world.wrong("goes on"):
            for name in [*self.holdings]:
                self._drop(name)
        self._reset()

    def _beating(self) -> Steps:
        connection = self.connect()
        runs = [self._statement(sql.BEAT), modelled(sql.Statement(sql.READ_NODES, {}))]
        runs += [modelled(sql.Statement(sql.READ_LEASES, {})), _rows_of("card", None)]
        while self.rules.member is not None and self.is_up:
            sent = self.now()
            try:
                beaten, nodes, leases, cards = yield from connection.call(runs)
            except (LostError, RefusedError):
                connection = self.connect()
                if self.rules.is_lost(self.now()):
                    return
                yield 0.3
                continue
            if not beaten:
                return
            self.rules.renewed(sent)
            self.world.beaten[self.name] = self.world.wall(self.name)
            rows = [NodeRow(**row) for row in nodes]
            begun: set[str] = {card["node"] for card in cards if card["has_begun"]}
            begun.discard(self.name)
            if self.has_begun:
                begun.add(self.name)
            if self.world.wrong("keeps all"):
                begun.clear()
            owned = [LeaseRow(**row) for row in leases]
            plan = self.rules.plan(sent, rows, owned, begun=begun)
            yield from self._carry_out(plan, {row["name"]: row for row in leases})
            if plan.take_over is None and not plan.adopt:
                yield self.rules.next_look(self.now())

    def _statement(self, text: str, **values: Any) -> Run:
        own = {"node": self.name, "incarnation": self._incarnation}
        return modelled(sql.Statement(text, own | values))

    # ------------------------------------------------------------- what it decided

    def _carry_out(self, plan: MembershipPlan, leases: dict[str, Row]) -> Steps:
        for name in plan.end:
            self._drop(name)
        for name, epoch in plan.start.items():
            self._hold(name, epoch)
        yield from self._begin_to_drain(plan, leases)
        if plan.take_over is not None:
            yield from self._take_over(plan.take_over, leases)
        if plan.adopt:
            yield self.submit(modelled(sql.give("", plan.adopt)), ())
        yield from self._want(plan.want, leases)

    def _begin_to_drain(self, plan: MembershipPlan, leases: dict[str, Row]) -> Steps:
        """Give leases away; who leaves says so first, and waits until it is seen."""
        if self.rules.is_leaving:
            if not self.announced:
                yield from self._want(plan.drain, leases)
                self.announced = self.now()
            if self.now() - self.announced < self.rules.look_every:
                return
        for name, to in plan.drain.items():
            if name in self.holdings and not self.holdings[name].is_draining:
                self.holdings[name].is_draining = True
                self.host.spawn(self._drain(self.holdings[name], to))

    def _want(self, moves: dict[str, str], leases: dict[str, Row]) -> Steps:
        if not moves:
            return
        epochs = {name: leases[name]["epoch"] for name in moves}
        with suppress(LostError, RefusedError):
            yield from self.connect().call([modelled(sql.want(moves, epochs))])

    def _take_over(self, plan: TakeOver, leases: dict[str, Row]) -> Steps:
        if self.world.wrong("starts first"):
            for name, to in plan.owners.items():
                if to == self.name:
                    self._hold(name, leases[name]["epoch"] + 1)
        connection = self.connect()
        ending, first, *others = sql.take_over(plan)
        try:
            if self.world.ends_sessions and not self.world.wrong("ends nobody"):
                yield from connection.call([modelled(ending)])
            _, found = yield from connection.call(["begin", modelled(first)])
            if found:
                for each in others:
                    yield from connection.call([modelled(each)])
                yield from connection.call(["commit"])
        except (LostError, RefusedError):
            pass
        connection.close()

    def _drain(self, holding: Holding, to: str) -> Steps:
        """Give a lease away: at rest, or when this node leaves and waited long enough.

        A node that stays goes on with what is under way, and tries again later.
        """
        waited = 0.0
        if holding.hand and not (self.rules.is_leaving or self.world.wrong("drain")):
            holding.is_draining = False
            return
        while holding.hand and waited < DRAIN and not self.world.wrong("drain"):
            waited += 0.1
            yield 0.1
        if self.holdings.get(holding.name) is not holding:
            return
        give = modelled(sql.give(self.name, {holding.name: to}))
        if (yield from self._give(holding, give)) is False:
            return
        if self.holdings.get(holding.name) is holding:
            self._drop(holding.name)
            if holding.name in self.rules.held:
                self.rules.gave(holding.name)
        self.world.hint(self.name)

    def _give(self, holding: Holding, give: Run) -> Steps:
        if self.world.wrong("drain"):
            claim = Fence(self.name, self._fence, self.group, holding.lease)
            fence = modelled(sql.fence(claim))
            runs: list[Run | str] = ["begin", fence, give, "commit"]
            try:
                yield from self.connect().call(runs)
            except (LostError, RefusedError):
                return False
            return True
        for task in holding.tasks:
            task.kill()
        return (yield self.submit(give, holding.lease))

    def leave(self) -> None:
        """Give all away, then end; the others are told to give it nothing."""
        self.rules.leave()
        self.submit(self._put_card(), ())
        self.host.spawn(self._leaving())

    def _leaving(self) -> Steps:
        while self.holdings or self.rules.member is None:
            yield 0.5
        try:
            yield from self.connect().call([self._statement(sql.LEAVE)])
        except (LostError, RefusedError):
            return
        self.crash()

    def _hold(self, name: str, epoch: int) -> None:
        old = self.holdings.get(name)
        if old is not None and self.world.wrong("goes on"):
            old.epoch = epoch
            return
        self._drop(name)
        holding = self.holdings[name] = Holding(name, epoch)
        if self.has_begun:
            self._start_work(holding)
        self._look.keep()

    def _start_work(self, holding: Holding) -> None:
        kind = holding.name.partition("/")[0]
        steps: list[Steps] = []
        if kind == "account":
            steps = [self._delivering(holding), self._polling(holding)]
        elif kind == "scheduler":
            steps = [self._scheduling(holding)]
        elif kind == "keeper":
            steps = [self._keeping(holding)]
        holding.tasks = [self.host.spawn(each) for each in steps]

    def _drop(self, name: str) -> None:
        holding = self.holdings.pop(name, None)
        if holding is not None:
            for task in holding.tasks:
                task.kill()

    # -------------------------------------------------------------- its one writer

    def submit(self, run: Run, leases: Iterable[tuple[str, int]]) -> Promise:
        """Have something committed; the promise tells whether it did what it should."""
        unit = Unit(self.world.ident(), run, leases)
        self.world.checks.submitted(unit.ident)
        if self.rules.member is None:
            unit.promise.keep(FencedError())
        else:
            self._queue.append(unit)
            self._news.keep()
        return unit.promise

    def _writing(self) -> Steps:
        connection = self.connect()
        while True:
            if not self._queue:
                self._news = Promise()
                yield self._news
            units = [self._queue.popleft() for _ in range(min(GROUP, len(self._queue)))]
            self.group += 1
            leases = tuple(sorted({each for unit in units for each in unit.leases}))
            claim = Fence(self.name, self._fence, self.group, leases)
            try:
                answers = yield from self._commit(connection, claim, units)
            except RefusedError as error:
                if error.code == sql.FENCED:
                    self._fenced(units)
                    return
                self._queue.extendleft(reversed(units))
                yield 0.1
            except LostError:
                connection = yield from self._resolve(claim, units)
            else:
                for unit, answer in zip(units, answers, strict=False):
                    self._tell(unit, bool(answer and answer[0].get("is_done", True)))
                self.world.hint(self.name)

    def _commit(self, connection: Connection, claim: Fence, units: list[Unit]) -> Steps:
        world = self.world
        fence = world.fence(claim)
        if world.wrong("outside"):
            yield from connection.call([fence])
        fenced: list[Run | str] = [_believing(claim, fence)]
        if world.wrong("outside") or world.wrong("in memory"):
            fenced = [_believing(claim, None)]
        runs = ["begin", *fenced, *(unit.noted for unit in units), "commit"]
        answers = yield from connection.call(runs, is_group=True)
        if not answers[1]:
            raise RefusedError(sql.FENCED)
        return answers[2:-1]

    def _tell(self, unit: Unit, is_done: bool | None) -> None:  # noqa: FBT001
        self.world.checks.told(unit.ident, is_done)
        unit.promise.keep(is_done)

    def _fenced(self, units: list[Unit]) -> None:
        self._end()
        for unit in units:
            unit.promise.keep(FencedError())

    def _resolve(self, claim: Fence, units: list[Unit]) -> Steps:
        """Find out whether a group whose answer was lost is committed."""
        statement = sql.Statement(
            sql.RESOLVE, {"node": self.name, "fence": claim.fence}
        )
        run = modelled(statement)
        if self.world.wrong("plain look"):
            run = _plain_look(self.name, claim.fence)
        connection = self.connect()
        found: list[Row] | None = None
        while found is None:
            try:
                (found,) = yield from connection.call([run])
            except (LostError, RefusedError):
                connection = self.connect()
                yield 0.3
        if not found:
            self._fenced(units)
            return connection
        self._fence = found[0]["fence"]
        if found[0]["last_group"] == claim.group and not self.world.wrong("new ids"):
            for unit in units:
                self._tell(unit, None)
        else:
            self._queue.extendleft(reversed(units))
        return connection

    # -------------------------------------------------------------- its own parts

    def hinted(self) -> None:
        """Look at once."""
        self._look.keep()

    def _waited(self) -> Promise:
        self._look = promise = Promise()
        if not self.world.wrong("no poll"):
            self.world.loop.after(POLL, promise.keep)
        return promise

    def _reading(self) -> Steps:
        connection = self.connect()
        while True:
            waited = self._waited()  # first: it is told meanwhile, too
            mine = self.holdings.values() if self.has_begun else ()
            holdings = [x for x in mine if x.name.startswith("part")]
            parts = {holding.part: holding for holding in holdings}
            if parts:
                runs = [_rows_of(table, {*parts}) for table in work.READ]
                try:
                    inbox, out, brought = yield from connection.call(runs)
                except (LostError, RefusedError):
                    connection = self.connect()
                    yield 0.3
                    continue
                for holding in holdings:
                    if self.holdings.get(holding.name) is holding:
                        self._take_up(holding, inbox, out, brought)
            yield waited

    def _take_up(
        self, holding: Holding, inbox: list[Row], out: list[Row], brought: list[Row]
    ) -> None:
        if holding.is_draining:
            return
        mine = [row for row in inbox if row["part"] == holding.part]
        mine = [row for row in mine if row["number"] > holding.seen]
        for row in sorted(mine, key=lambda row: (row["place"] or 1e9, row["number"])):
            if self.world.wrong("cursor"):
                holding.seen = max(holding.seen, row["number"])
            self._hear(holding, row)
        part = holding.part
        notes = [("out", note["cause"], note) for note in out if note["part"] == part]
        notes += [("in", note["key"], note) for note in brought if note["part"] == part]
        for way, key, note in notes:
            if (way, key) not in holding.hand:
                holding.hand.add((way, key))
                carry = self._bring if way == "out" else self._apply
                holding.tasks.append(self.host.spawn(carry(holding, note)))

    def _hear(self, holding: Holding, message: Row) -> None:
        if message["name"] in holding.hand:
            return
        holding.hand.add(message["name"])
        queue = holding.chats[message["chat"]]
        queue.append(message)
        if len(queue) == 1:
            task = self._conversing(holding, message["chat"])
            holding.tasks.append(self.host.spawn(task))

    def _conversing(self, holding: Holding, chat: str) -> Steps:
        queue = holding.chats[chat]
        while queue:
            yield from self._turn(holding, queue[0])
            holding.hand.discard(queue.popleft()["name"])

    def _turn(self, holding: Holding, message: Row) -> Steps:
        world = self.world
        if holding.is_draining:
            return
        epoch = holding.epoch
        begun = yield self.submit(
            lambda txn: work.claim(txn, message, epoch), holding.lease
        )
        if begun is False:
            return
        yield from self._politely()
        if message["costs"]:
            yield from self._spend(message["name"])
        yield world.dice.uniform(0.05, 2.0)
        epoch = holding.epoch
        at = world.loop.now
        yield self.submit(
            lambda txn: work.answer(txn, message, epoch, at), holding.lease
        )

    def _politely(self) -> Steps:
        while not self.rules.may_begin(self.now()):
            yield 0.2

    def _spend(self, name: str) -> Steps:
        if self.world.wrong("read then write"):
            try:
                (rows,) = yield from self.connect().call([_rows_of("budget", None)])
            except (LostError, RefusedError):
                return
            spent = rows[0]["spent"]
            yield self.submit(lambda txn: work.spend_unguarded(txn, name, spent), ())
        else:
            own = name if not self.world.wrong("new ids") else None
            yield self.submit(
                lambda txn: work.spend(txn, name, own or self.world.ident()), ()
            )

    def _bring(self, holding: Holding, note: Row) -> Steps:
        key = self.world.ident() if self.world.wrong("new key") else note["cause"]
        yield self.submit(lambda txn: work.bring(txn, note, key), ())
        yield self.submit(lambda txn: work.forget(txn, note), holding.lease)
        holding.hand.discard(("out", note["cause"]))

    def _apply(self, holding: Holding, note: Row) -> Steps:
        yield self.submit(lambda txn: work.apply(txn, note), holding.lease)
        holding.hand.discard(("in", note["key"]))

    # ---------------------------------------------------- accounts and singletons

    def _delivering(self, holding: Holding) -> Steps:
        connection = self.connect()
        while not holding.is_draining:
            try:
                (rows,) = yield from connection.call([_pending(holding.name)])
            except (LostError, RefusedError):
                connection = self.connect()
                yield 0.3
                continue
            for row in sorted(rows, key=lambda row: row["number"]):
                if not holding.is_draining:
                    holding.hand.add(row["name"])
                    yield from self._deliver(holding, row)
                    holding.hand.discard(row["name"])
            yield POLL

    def _deliver(self, holding: Holding, row: Row) -> Steps:
        number = row["attempts"] + 1
        lease = holding.lease
        part = self.holdings.get(f"part/{row['part']}")
        if self.world.wrong("part's lease") and part is not None:
            lease = part.lease
        if self.world.wrong("no attempt"):
            self.world.send(self, holding, row["name"], number)
        begun = yield self.submit(lambda txn: work.attempt(txn, row, number), lease)
        if begun is False:
            return
        yield from self._politely()
        if not self.world.wrong("no attempt"):
            self.world.send(self, holding, row["name"], number)
        yield self.world.dice.uniform(0.01, 0.5)
        yield self.submit(lambda txn: work.receive(txn, row), lease)

    def _polling(self, holding: Holding) -> Steps:
        connection = self.connect()
        while not holding.is_draining:
            yield from self._politely()
            try:
                (places,) = yield from connection.call([_place(holding.name)])
            except (LostError, RefusedError):
                connection = self.connect()
                yield 0.3
                continue
            offset = places[0]["offset"] if places else 0
            messages = self.world.poll(self, holding, offset)
            if messages:
                end = offset + len(messages)
                name = holding.name
                run = _taking_in(messages, name, end)
                yield self.submit(run, holding.lease)
            yield 2.0

    def _scheduling(self, holding: Holding) -> Steps:
        connection = self.connect()
        while not holding.is_draining:
            try:
                (slots,) = yield from connection.call([_rows_of("slot", None)])
            except (LostError, RefusedError):
                connection = self.connect()
                yield 0.3
                continue
            for slot in slots:
                if not slot["is_fired"] and slot["due"] <= self.world.loop.now:
                    yield self.submit(_firing(self.world, slot), holding.lease)
            yield 2 * POLL

    def _keeping(self, holding: Holding) -> Steps:
        while not holding.is_draining:
            now = self.world.loop.now
            if self.world.wrong("keeps by own clock"):
                now = self.world.wall(self.name)
            yield self.submit(_pruning(now - self.world.keep), holding.lease)
            yield 5.0

    # -------------------------------------------------------------------- people

    def receive(self, message: Row, acknowledge: Callable[[], object]) -> None:
        """Accept a message of a part that any node may own."""
        if self.is_up:
            self.host.spawn(self._accepting(message, acknowledge))

    def _accepting(self, message: Row, acknowledge: Callable[[], object]) -> Steps:
        yield self.submit(lambda txn: work.accept(txn, message), ())
        acknowledge()
        self.world.hint(self.name)
        holding = self.holdings.get(f"part/{message['part']}")
        if self.world.wrong("short cut") and holding is not None:
            self._hear(holding, message | {"place": 0, "number": 1e9})


def _believing(claim: Fence, fence: Run | None) -> Run:
    """Note for the checks what the client believes, and have the fence check it."""

    def run(txn: Transaction) -> Work:
        txn.claim = {"node": claim.node, "leases": dict(claim.leases)}
        if fence is None:
            yield from ()
            return [{}]
        return (yield from fence(txn))

    return run


def formats_of(release: int) -> Formats:
    """Give the formats of a release: each removes what the one before did without."""
    each = Format(release, oldest=release - 1)
    return Formats(tables=each, protocol=each)


def _migrating(tables: Format) -> Run:
    """Change the tables, unless another node has done so meanwhile."""

    def run(txn: Transaction) -> Work:
        yield ("tables",)
        row = txn.get(("tables",))
        assert row is not None
        if row["oldest"] > tables.version:
            raise RefusedError(APART)
        if row["version"] < tables.version:
            txn.put(("tables",), {"version": tables.version, "oldest": tables.oldest})
        return [{}]

    return run


def _plain_look(node: str, fence: int) -> Run:
    def run(txn: Transaction) -> Work:
        yield from ()
        row = txn.get(("writer", node))
        return [row] if row is not None and row["fence"] == fence else []

    return run


def _rows_of(table: str, parts: set[int] | None) -> Run:
    def run(txn: Transaction) -> Work:
        yield from ()
        rows = txn.rows(table)
        if parts is not None:
            rows = [row for row in rows if row["part"] in parts]
        return [row for row in rows if table != "inbox" or work.is_open(row)]

    return run


def _pending(account: str) -> Run:
    def run(txn: Transaction) -> Work:
        yield from ()
        rows = [row for row in txn.rows("outbox") if row["state"] != "sent"]
        return [row for row in rows if work.account_of(row["part"]) == account]

    return run


def _place(lease: str) -> Run:
    def run(txn: Transaction) -> Work:
        yield from ()
        row = txn.get(("place", lease))
        return [row] if row is not None else []

    return run


def _taking_in(messages: list[Row], lease: str, offset: int) -> Run:
    return lambda txn: work.take_in(txn, messages, lease, offset)


def _firing(world: World, slot: Row) -> Run:
    message = world.slot_message(slot)
    return lambda txn: work.fire(txn, slot, message)


def _pruning(before: float) -> Run:
    return lambda txn: work.prune(txn, before)
