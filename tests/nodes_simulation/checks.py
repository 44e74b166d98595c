"""What must hold, after every transaction and at rest, whatever failed.

The checks know which lease a row needs, and who was given which lease in which epoch,
without asking the nodes or the fence.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import msgspec

from runtime.nodes.rows import why_apart
from tests.nodes_simulation import work
from tests.nodes_simulation.node import formats_of
from tests.nodes_simulation.server import Key, Row, Transaction

if TYPE_CHECKING:
    from tests.nodes_simulation.world import World


class Breach(msgspec.Struct, frozen=True):
    """One thing that must not happen, and did."""

    at: float
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.at:8.3f} {self.rule}: {self.text}"


class Wait(msgspec.Struct, frozen=True):
    """For how long nobody worked on a message."""

    name: str
    begun: float
    """When somebody did; virtual seconds."""

    seconds: float


class Checks:
    """Watches what becomes seen, what is sent, and what callers are told.

    Args:
        world: what is watched.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.breaches: list[Breach] = []
        self.granted: dict[tuple[str, int], str] = {}
        self.places: dict[str, int] = {}
        self.answers: Counter[str] = Counter()
        self.sent: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self.happened: Counter[str] = Counter()
        self._last_sent: dict[str, int] = {}
        self._attempts: set[tuple[str, int, str]] = set()
        self._done: dict[int, bool] = {}
        self.waits: list[Wait] = []

        self._waiting: dict[str, float] = {}
        """By message since when nobody works on it."""

        self._worked_on: dict[str, int] = {}
        """By message that somebody works on, its part."""
        self._effects: Counter[str] = Counter()

        self._wrote: dict[str, int] = {}
        """By node, in which life it wrote last."""

    def struck(self, node: str) -> None:
        """Take note that nobody works on what a node had under way."""
        leases = self._world.server.tables["lease"]
        for name, part in self._worked_on.items():
            if leases["lease", f"part/{part}"]["owner"] == node:
                self._waiting.setdefault(name, self._world.loop.now)

    def _is_worked_on(self, name: str) -> None:
        now = self._world.loop.now
        since = self._waiting.pop(name, now)
        self.waits.append(Wait(name, now, now - since))

    def breach(self, rule: str, text: str) -> None:
        self.breaches.append(Breach(self._world.loop.now, rule, text))

    # ------------------------------------------------------------- what is stored

    def published(self, txn: Transaction) -> None:
        """Check a transaction at the moment in which it becomes seen."""
        self._done.update(txn.units)
        self._check_release(txn)
        for key, row in txn.writes.items():
            before = self._world.server.tables[key[0]].get(key)
            lease = work.lease_of(before, key, row)
            if lease:
                self._check_owner(txn, key, lease)
            check = getattr(self, f"_{key[0]}", None)
            if check is not None and row is not None:
                check(txn, row, before)

    def _check_owner(self, txn: Transaction, key: Key, lease: str) -> None:
        owned = self._world.server.tables["lease"]["lease", lease]
        believed = txn.claim.get("leases", {}).get(lease)
        if (owned["owner"], owned["epoch"]) != (txn.claim.get("node"), believed):
            self.breach(
                "one owner",
                f"{txn.claim.get('node')} wrote {key} under {lease} {believed};"
                f" it is {owned['owner']}'s in epoch {owned['epoch']}",
            )

    def _check_release(self, txn: Transaction) -> None:
        """Check that who writes knows what is there, and suits all others who write."""
        name, cards = str(txn.claim.get("node")), txn.rows("card")
        mine, tables = txn.get(("card", name)), txn.get(("tables",))
        row = txn.get(("node", name))
        if mine is None or tables is None or row is None:
            return
        self._wrote[name] = row["incarnation"]
        if mine["release"] < tables["oldest"]:
            self.breach("releases", f"{mine} wrote beside {tables}")
        for other in cards:
            row = txn.get(("node", other["node"]))
            if row is None or row["state"] != "up":
                continue
            has_written = self._wrote.get(other["node"]) == row["incarnation"]
            apart = why_apart(formats_of(mine["release"]), formats_of(other["release"]))
            if has_written and apart:
                self.breach("releases", f"{mine} wrote beside {other}")

    def _card(self, txn: Transaction, row: Row, before: Row | None) -> None:
        del txn
        if before is not None and row["release"] != before["release"]:
            self.happened["upgraded"] += 1

    def _lease(self, txn: Transaction, row: Row, before: Row | None) -> None:
        if before is None or before["epoch"] == row["epoch"]:
            return
        name, old = row["name"], before["owner"]
        for message, part in self._worked_on.items():
            if name == f"part/{part}":
                self._waiting.setdefault(message, self._world.loop.now)
        if row["epoch"] < before["epoch"]:
            self.breach("epochs grow", f"{name}: {before['epoch']} to {row['epoch']}")
        claims = txn.claim.get("leases", {}).get(name)
        has_fenced = ("writer", old) in txn.writes and txn.claim.get("node") != old
        if old and not has_fenced and claims != before["epoch"]:
            self.breach("one owner", f"{name} was given away without a fence for {old}")
        self.granted[name, row["epoch"]] = row["owner"]
        self.happened["given" if claims is not None else "taken"] += bool(old)

    def _node(self, txn: Transaction, row: Row, before: Row | None) -> None:
        del txn
        if before is None or (before["state"], row["state"]) != ("up", "fenced"):
            return
        self.happened["fenced"] += 1
        calm = self._world.calm(row["id"])
        if calm > 12.0:
            self.breach("no clock", f"{row['id']} was fenced, calm for {calm:.1f} s")

    def _inbox(self, txn: Transaction, row: Row, before: Row | None) -> None:
        name = row["name"]
        if before is None:
            self._world.heard_of(name)
            self._waiting[name] = self._world.loop.now
        elif row["state"] == "running":
            self._is_worked_on(name)
            self._worked_on[name] = row["part"]
        if not row["place"] or (before is not None and before["place"]):
            return
        del txn
        self.places.setdefault(name, row["place"])
        for other in self._world.before(name):
            if other not in self.places:
                self.breach("order", f"{name} was claimed before {other}")

    def _journal(self, txn: Transaction, row: Row, before: Row | None) -> None:
        del txn
        self.answers[row["name"]] += 1
        self._is_worked_on(row["name"])
        self._worked_on.pop(row["name"], None)
        self._world.answered(row["name"])
        if before is not None or self.answers[row["name"]] > 1:
            self.breach("once", f"{row['name']} was answered twice")
        if row["claimed"] != row["epoch"]:
            self.breach(
                "one life",
                f"{row['name']}: begun in epoch {row['claimed']}, answered in"
                f" {row['epoch']}",
            )

    def _outbox(self, txn: Transaction, row: Row, before: Row | None) -> None:
        del before
        if row["state"] == "sending":
            who = txn.claim.get("node", "")
            self._attempts.add((row["name"], row["attempts"], who))

    def _effect(self, txn: Transaction, row: Row, before: Row | None) -> None:
        del txn, before
        self._effects[row["cause"]] += 1
        if self._effects[row["cause"]] > 1:
            self.breach("hand-over", f"{row['cause']} had its effect twice")

    def _ledger(self, txn: Transaction, row: Row, before: Row | None) -> None:
        del row, before
        rows = txn.rows("ledger")
        causes = Counter(each["cause"] for each in rows)
        spent = txn.get(("budget",))
        assert spent is not None
        if len(rows) > work.LIMIT or max(causes.values()) > 1:
            self.breach("budget", f"spent {dict(causes)}, of at most {work.LIMIT}")
        if spent["spent"] != len(rows):
            self.breach("budget", f"{spent['spent']} in sum, {len(rows)} in the ledger")

    # ---------------------------------------------------- what is told, what is sent

    def submitted(self, unit: int) -> None:
        """Take note of a unit."""
        del unit

    def told(self, unit: int, is_done: bool | None) -> None:  # noqa: FBT001
        """Check what a caller is told; None: what was sent is committed."""
        if is_done is not False and unit not in self._done:
            self.breach("truth", f"unit {unit} was told of, and is not committed")
        if is_done is False and self._done.get(unit):
            self.breach("truth", f"unit {unit} was told to have failed, and has not")

    def refused(self, node: str, fence: int) -> None:
        """Check that nobody is fenced but by a take-over."""
        row = self._world.server.tables["writer"].get(("writer", node))
        if row is not None and row["fence"] == fence:
            self.breach("moves", f"{node} was refused its own lease in a planned move")

    def acts(self, node: str, lease: str, epoch: int, what: str) -> None:
        """Check that whoever polls or sends was given the account before."""
        if self.granted.get((lease, epoch)) != node:
            self.breach("singleton", f"{node} {what} for {lease}, epoch {epoch}")

    def sends(self, node: str, epoch: int, name: str, number: int) -> None:
        """Check one call of a platform."""
        sent = self.sent[name]
        if (name, number, node) not in self._attempts:
            self.breach(
                "attempt", f"{node} sent {name} with no attempt {number} stored"
            )
        if any(each == number or of == epoch for each, of in sent):
            self.breach("attempt", f"{node} sent {name} twice in epoch {epoch}")
        sent.append((number, epoch))
        row = next(
            (
                row
                for row in self._world.server.tables["journal"].values()
                if row["name"] == name
            ),
            None,
        )
        if row is not None and len(sent) == 1:
            if row["sequence"] != self._last_sent.get(row["chat"], 0) + 1:
                self.breach("order", f"{name} was sent before what was said earlier")
            self._last_sent[row["chat"]] = row["sequence"]

    # --------------------------------------------------------------------- at rest

    def missing(self) -> list[str]:
        """Say what is not at rest yet."""
        tables, world = self._world.server.tables, self._world
        found = [f"{name} not accepted" for name in world.wanted - world.known]
        found += [f"{n} not answered" for n in world.known if not self.answers[n]]
        found += [f"{n} not sent" for n in self.answers if not self.sent[n]]
        found += [f"{row['name']} without receipt" for row in unsent(tables["outbox"])]
        found += [f"slot {x['number']}" for x in tables["slot"].values() if due(x)]
        found += [f"hand-over {key}" for key in (*tables["handout"], *tables["handin"])]
        up = {row["id"] for row in tables["node"].values() if row["state"] == "up"}
        for row in tables["lease"].values():
            if row["owner"] not in up or not world.nodes[row["owner"]].is_up:
                found.append(f"{row['name']} is {row['owner'] or 'nobody'}'s")
        return found

    def at_rest(self) -> None:
        """Check what must hold in the end."""
        for name, count in self.answers.items():
            if count != 1:
                self.breach("once", f"{name} was answered {count} times")
        for name in self._world.acknowledged:
            if not self.answers[name]:
                self.breach("kept", f"{name} was acknowledged and never answered")
        notes = self._world.notes
        if any(self._effects[name] != 1 for name in notes if self.answers[name]):
            self.breach("hand-over", "one had no effect, or two")


def unsent(rows: dict[Key, Row]) -> list[Row]:
    return [row for row in rows.values() if row["state"] != "sent"]


def due(slot: dict[str, Any]) -> bool:
    return not slot["is_fired"]
