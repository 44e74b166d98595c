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

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from types import MappingProxyType

import msgspec

from runtime.nodes.rows import LeaseRow, Member, NodeRow

LOOKS = 6
"""How often a node shows life, and looks at the others, in `ttl` seconds."""

LOOK_WITHIN = 1.0
"""Seconds between two looks at most: so much later than after `ttl` a death may be
noticed, however long that is."""

SOON = 0.1
"""Seconds until a node looks again that is about to be given a lease."""

ROUNDING = 0.001
"""Seconds of tolerance, so that a look at the exact time is not too early."""

READS = 4
"""How often a row must have been read unchanged before its node is suspected."""

MOVES = 16
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
    """Leases to be given away, by whom to (empty: to nobody, and who can takes them):
    finish, flush, then give."""

    take_over: TakeOver | None
    adopt: dict[str, str]
    """Leases that nobody owned yet, which this node may take for itself."""

    want: dict[str, str]
    """Leases whose owner is to give them to another node."""


def is_still(seen: NodeRow, row: NodeRow) -> bool:
    """Whether a node has shown no life since it was seen.

    That operators drained or resumed it is no sign of life.
    """
    return msgspec.structs.replace(seen, is_drained=row.is_drained) == row


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

    def due(self, now: float) -> float:
        """Give the seconds until some node may be suspected; infinite: none may."""
        ends = (
            since + self._ttl - now
            for row, since, _ in self._seen.values()
            if row.state == "up" and row.id != self._me
        )
        return min((each for each in ends if each > 0), default=math.inf)

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
            if not is_still(seen, row):
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
        self._is_drained = False
        self._barred = NOTHING_BARRED
        self._is_next = False
        self._free_since: dict[str, float] = {}
        self._wanted_since: dict[tuple[str, int, str], float] = {}

    @property
    def look_every(self) -> float:
        """Seconds between two looks, if nothing is due sooner."""
        return min(self._ttl / LOOKS, LOOK_WITHIN)

    def next_look(self, now: float) -> float:
        """Give the seconds until it is to look again; by the last plan.

        Who was last seen alive just after a look is suspected at the end of `ttl`, not
        at the first look after it: else conversations would be silent for that long.
        """
        if self._is_next:
            return SOON
        return min(self.look_every, self._suspicion.due(now) + ROUNDING)

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

    @property
    def is_leaving(self) -> bool:
        """Whether it gives all away."""
        return self._is_leaving

    @property
    def is_drained(self) -> bool:
        """Whether it gives all away, and goes on until it has nothing."""
        return self._is_drained

    @property
    def gives_all(self) -> bool:
        """Whether it gives all away: it leaves, or is drained while others work."""
        return self._is_leaving or self._is_drained

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
        begun: Collection[str] = (),
    ) -> MembershipPlan:
        """Decide from rows that were just read.

        While some nodes have begun, others are given nothing, and give up what they
        have: a process that was killed and is started again shows life long before it
        can answer. Those that operators have drained are given nothing either, as long
        as there are others, and have others want all that they have.

        Args:
            now: seconds on this machine's monotonic clock, when the read was sent.
            begun: the nodes that answer already; empty: nobody says so.
        """
        self._barred = barred
        suspected = self._suspicion.read(now, nodes)
        up = {row.id for row in nodes if row.state == "up"}
        alive = up - {row.id for row in suspected}
        if self._is_leaving:
            alive.discard(self._me)
        able = alive.intersection(begun) or alive
        drained = {row.id for row in nodes if row.is_drained}
        # All of them: somebody has to do the work.
        able = able - drained or able
        self._is_next = any(
            row.wanted == self._me and row.owner != self._me for row in leases
        )
        mine = {
            row.name: row.epoch
            for row in leases
            if row.owner == self._me and row.epoch > self._given.get(row.name, 0)
        }
        self._is_drained = self._me in drained and self._me not in able
        want = self._wanted(now, nodes, leases, able)
        self._is_next = self._is_next or self._me in want.values()
        end = tuple(
            name for name, epoch in self._held.items() if mine.get(name) != epoch
        )
        start = {n: epoch for n, epoch in mine.items() if self._held.get(n) != epoch}
        self._held = mine
        return MembershipPlan(
            start=start,
            end=end,
            drain=self._drained(now, leases, alive - drained or alive, able),
            take_over=self._take_over(nodes, suspected, leases, able),
            adopt=self._adopted(now, leases, able),
            want=want,
        )

    def _drained(
        self,
        now: float,
        leases: Collection[LeaseRow],
        alive: Collection[str],
        able: Collection[str],
    ) -> dict[str, str]:
        mine = [row.name for row in leases if row.owner == self._me]
        if self._is_leaving:
            # What others were told of stays so: who is to have it looks often.
            told = {
                row.name: row.wanted
                for row in leases
                if row.owner == self._me and row.wanted in able
                if row.name not in self._barred.get(row.wanted, ())
            }
            rest = [name for name in mine if name not in told]
            return told | homes(rest, leases, able, self._barred)
        if able and not (self._me in able or self._is_drained):
            # An heir named here is alive; a node that had begun may have died since.
            return dict.fromkeys(mine, "")
        going = {
            (row.name, row.epoch, row.wanted)
            for row in leases
            if row.owner == self._me and row.wanted not in {"", self._me}
            if row.wanted in alive
            if row.name not in self._barred.get(row.wanted, ())
        }
        before = self._wanted_since
        self._wanted_since = {each: before.get(each, now) for each in going}
        # Why not at once: until then, who is to have it has seen that, and looks often.
        # Else nobody would work on it until that node looks the next time.
        return {
            name: to
            for (name, _, to), since in self._wanted_since.items()
            if now - since >= self.look_every
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
        self, now: float, leases: Collection[LeaseRow], able: Collection[str]
    ) -> dict[str, str]:
        free = [row.name for row in leases if not row.owner]
        before = self._free_since
        self._free_since = {name: before.get(name, now) for name in free}
        found = homes(free, leases, able, self._barred)
        # Who is to have it by these rows may see it otherwise, and wait for others.
        barred = self._barred.get(self._me, ()) if self._me in able else free
        left = {x for x in free if now - self._free_since[x] >= self._ttl / 2}
        found |= dict.fromkeys(left.difference(barred), self._me)
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
        if self._is_drained:
            return self._all_wanted(leases, alive)
        # Chosen: the first of all nodes decides; two that differ would only move twice.
        if not is_calm or self._me != min(alive, default=""):
            return {}
        return moves(leases, alive, MOVES, self._barred)

    def _all_wanted(
        self, leases: Collection[LeaseRow], able: Collection[str]
    ) -> dict[str, str]:
        """Choose for each lease of a drained node who is to have it, once."""
        mine = [row for row in leases if row.owner == self._me]
        left = [
            row.name
            for row in mine
            if row.wanted not in able or row.name in self._barred.get(row.wanted, ())
        ]
        found = homes(left, leases, able, self._barred)
        return {name: node for name, node in found.items() if node}
