"""What one node does about the others, and about itself: the rules of membership.

Pure: the caller reads the rows, hands them in with its own monotonic time, and carries
out the plan. Nothing here makes two owners impossible: that is the fence's work
(`statements.py`). These rules only decide how soon a lease moves, and to whom.

Time is never compared between machines: a node is suspected when its row stood still
for `ttl` seconds of the *observer's* monotonic clock.

Leases are spread by rendezvous hashing (Thaler and Ravishankar, 1998), with as many for
each node. All nodes decide alike from the same rows. When a node joins, only what it
gets moves; when one leaves, only what it had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from types import MappingProxyType

import msgspec

from runtime.nodes.rows import LeaseRow, Member, NodeRow

READS = 4
"""How often a row must have been read unchanged before its node is suspected."""

MOVES = 8
"""Planned moves under way at once."""

Barred = Mapping[str, Collection[str]]
"""By node, the leases that it cannot act for."""

NOTHING_BARRED: Barred = MappingProxyType({})


def score(name: str, node: str) -> bytes:
    """Say how well a lease suits a node; the highest wins."""
    return sha256(f"{name}@{node}".encode()).digest()


def kind_of(name: str) -> str:
    """Give what a lease is of: `part`, `account`; each kind is spread by itself."""
    return name.partition("/")[0]


def homes(
    names: Iterable[str],
    leases: Collection[LeaseRow],
    nodes: Collection[str],
    barred: Barred = NOTHING_BARRED,
) -> dict[str, str]:
    """Find an owner for each of these leases; empty: no node can act for it.

    Args:
        leases: all leases; those of nodes that are not in `nodes` do not count.
        nodes: who may own; empty: nobody gets anything.
        barred: what some of them cannot act for.
    """
    if not nodes:
        return {}
    wanting = set(names)
    held = Counter(
        (kind_of(row.name), row.owner)
        for row in leases
        if row.owner in nodes and row.name not in wanting
    )
    found: dict[str, str] = {}
    for name in sorted(wanting):
        kind = kind_of(name)
        able = [node for node in nodes if name not in barred.get(node, ())]
        least = min((held[kind, node] for node in able), default=0)
        room = [node for node in able if held[kind, node] == least]
        found[name] = max(room, key=lambda node: score(name, node), default="")
        held[kind, found[name]] += 1
    return found


def moves(
    leases: Collection[LeaseRow],
    nodes: Collection[str],
    most: int,
    barred: Barred = NOTHING_BARRED,
) -> dict[str, str]:
    """Choose leases to be given to another node, until no node has two too many.

    Args:
        nodes: who may own.
        most: moves under way at once; those that are wanted already count.
        barred: what some nodes cannot act for.

    Returns:
        By lease the node that is to have it; fewest moves, and none between two nodes
        that may keep what they have.
    """
    goal = {row.name: row.wanted or row.owner for row in leases}
    left = most - sum(goal[row.name] != row.owner for row in leases)
    chosen: dict[str, str] = {}
    for kind in sorted({kind_of(row.name) for row in leases}):
        names = [row.name for row in leases if kind_of(row.name) == kind]
        while left > 0 and (move := _next_move(names, goal, nodes, barred)):
            chosen.update([move])
            goal.update([move])
            left -= 1
    return chosen


def _next_move(
    names: Collection[str], goal: dict[str, str], nodes: Collection[str], barred: Barred
) -> tuple[str, str] | None:
    """From the node that has most to the one that has fewest, if it can."""
    counts = Counter(dict.fromkeys(nodes, 0))
    counts.update(goal[name] for name in names if goal[name] in nodes)
    for to in sorted(nodes, key=lambda node: (counts[node], node)):
        able = [x for x in names if x not in barred.get(to, ()) and goal[x] in nodes]
        most = max((counts[goal[name]] for name in able), default=0)
        if most - counts[to] >= 2:
            from_those = [name for name in able if counts[goal[name]] == most]
            return max(from_those, key=lambda name: score(name, to)), to
    return None


class TakeOver(msgspec.Struct, frozen=True):
    """Fence a node and give its leases to others; in one transaction."""

    dead: NodeRow
    """As it was read: if it has changed by then, it lives, and nothing is done."""

    owners: dict[str, str]
    """By lease its next owner; empty: nobody's, until a node can act for it."""


class MembershipPlan(msgspec.Struct, frozen=True):
    """What a node is to do next."""

    start: dict[str, int]
    """Leases that became this node's, with their epochs: begin from their rows."""

    end: tuple[str, ...]
    """Leases that it has lost: end what acts for them at once."""

    drain: dict[str, str]
    """Leases to be given away, by whom to: finish, flush, then give."""

    take_over: TakeOver | None
    adopt: dict[str, str]
    """Leases that nobody owned yet, which this node may take for itself."""

    want: dict[str, str]
    """Leases whose owner is to give them to another node."""


class Suspicion:
    """Which nodes have stood still for too long.

    Args:
        me: id of the observer, who never suspects itself.
        ttl: seconds.
    """

    def __init__(self, me: str, ttl: float) -> None:
        self._me = me
        self._ttl = ttl
        self._seen: dict[str, tuple[NodeRow, float, int]] = {}
        self._last = float("-inf")

    def read(self, now: float, nodes: Collection[NodeRow]) -> tuple[NodeRow, ...]:
        """Take in what was just read; give those that are suspected.

        Args:
            now: seconds on this machine's monotonic clock, when the read was *sent*.
        """
        # Why: who was paused itself, or cut off, has not watched anybody meanwhile.
        if now - self._last > self._ttl / 2:
            self._seen.clear()
        self._last = now
        before, self._seen = self._seen, {}
        for row in nodes:
            seen, since, reads = before.get(row.id, (row, now, 0))
            if seen != row:
                since, reads = now, 0
            self._seen[row.id] = (row, since, reads + 1)
        return tuple(
            row
            for row, since, reads in self._seen.values()
            if row.state == "up" and row.id != self._me
            if reads >= READS and now - since >= self._ttl
        )


class Membership:
    """A node's own part: what it holds, whether it may act, what it does next.

    Args:
        ttl: seconds after which a node that shows no life is taken over from.
    """

    def __init__(self, me: str, ttl: float) -> None:
        self._me = me
        self._ttl = ttl
        self._suspicion = Suspicion(me, ttl)
        self._member: Member | None = None
        self._renewed = float("-inf")
        self._held: dict[str, int] = {}
        self._given: dict[str, int] = {}
        self._members: frozenset[tuple[str, int]] = frozenset()
        self._changed = float("-inf")
        self._is_leaving = False
        self._barred = NOTHING_BARRED

    @property
    def member(self) -> Member | None:
        """What the node was given when it joined; None: it is to join anew."""
        return self._member

    @property
    def held(self) -> dict[str, int]:
        """The leases that it acts for, and their epochs."""
        return self._held

    def joined(self, now: float, member: Member) -> None:
        """Take note of a new life; leases start with the next plan."""
        self._member = member
        self._renewed = now
        self._held = {}

    def renewed(self, now: float) -> None:
        """Take note that a beat was stored; `now` is when it was sent."""
        self._renewed = max(self._renewed, now)

    def ended(self) -> tuple[str, ...]:
        """Forget all: it was fenced, or was alone too long. Give what is to end."""
        lost = tuple(self._held)
        self._held = {}
        self._member = None
        return lost

    def may_begin(self, now: float) -> bool:
        """Whether it may begin a step, a model call or a platform call."""
        return self._member is not None and now - self._renewed < self._ttl * 2 / 3

    def is_lost(self, now: float) -> bool:
        """Whether it could not renew its row for so long that others take over."""
        return self._member is not None and now - self._renewed >= self._ttl

    def leave(self) -> None:
        """Give all away from now on, and take nothing."""
        self._is_leaving = True

    def gave(self, name: str) -> None:
        """Take note that a lease was given away: rows read before that are old."""
        self._given[name] = self._held.pop(name)

    def plan(
        self,
        now: float,
        nodes: Collection[NodeRow],
        leases: Collection[LeaseRow],
        barred: Barred = NOTHING_BARRED,
    ) -> MembershipPlan:
        """Decide from rows that were just read.

        Args:
            now: seconds on this machine's monotonic clock, when the read was sent.
        """
        self._barred = barred
        suspected = self._suspicion.read(now, nodes)
        up = {row.id for row in nodes if row.state == "up"}
        alive = up - {row.id for row in suspected}
        if self._is_leaving:
            alive.discard(self._me)
        mine = {
            row.name: row.epoch
            for row in leases
            if row.owner == self._me and row.epoch > self._given.get(row.name, 0)
        }
        end = tuple(
            name for name, epoch in self._held.items() if mine.get(name) != epoch
        )
        start = {n: epoch for n, epoch in mine.items() if self._held.get(n) != epoch}
        self._held = mine
        return MembershipPlan(
            start=start,
            end=end,
            drain=self._drained(leases, alive),
            take_over=self._take_over(nodes, suspected, leases, alive),
            adopt=self._adopted(leases, alive),
            want=self._wanted(now, nodes, leases, alive),
        )

    def _drained(
        self, leases: Collection[LeaseRow], alive: Collection[str]
    ) -> dict[str, str]:
        if self._is_leaving:
            mine = [row.name for row in leases if row.owner == self._me]
            return homes(mine, leases, alive, self._barred)
        return {
            row.name: row.wanted
            for row in leases
            if row.owner == self._me and row.wanted not in {"", self._me}
            if row.wanted in alive
            if row.name not in self._barred.get(row.wanted, ())
        }

    def _take_over(
        self,
        nodes: Collection[NodeRow],
        suspected: Collection[NodeRow],
        leases: Collection[LeaseRow],
        alive: Collection[str],
    ) -> TakeOver | None:
        # A node that was fenced, or left, may own what it got in that very moment.
        gone = [row for row in nodes if row.state != "up"]
        for row in (*suspected, *gone):
            lost = [each.name for each in leases if each.owner == row.id]
            if row in suspected or lost:
                return TakeOver(row, homes(lost, leases, alive, self._barred))
        return None

    def _adopted(
        self, leases: Collection[LeaseRow], alive: Collection[str]
    ) -> dict[str, str]:
        free = [row.name for row in leases if not row.owner]
        found = homes(free, leases, alive, self._barred)
        return {name: node for name, node in found.items() if node == self._me}

    def _wanted(
        self,
        now: float,
        nodes: Collection[NodeRow],
        leases: Collection[LeaseRow],
        alive: Collection[str],
    ) -> dict[str, str]:
        members = frozenset(
            (row.id, row.incarnation) for row in nodes if row.id in alive
        )
        if members != self._members:
            self._members, self._changed = members, now
        is_calm = now - self._changed >= 2 * self._ttl
        # Chosen: the first of all nodes decides; two that differ would only move twice.
        if not is_calm or self._me != min(alive, default=""):
            return {}
        return moves(leases, alive, MOVES, self._barred)
