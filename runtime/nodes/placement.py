"""Which node is to own which lease: rendezvous hashing, with as much for each node.

All nodes decide alike from the same rows. When a node joins, only what it gets moves;
when one leaves, only what it had.

Source: Thaler and Ravishankar, "Using name-based mappings to increase hit rates",
1998.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from hashlib import sha256

from runtime.nodes.rows import LeaseRow


def score(name: str, node: str) -> bytes:
    """Say how well a lease suits a node; the highest wins."""
    return sha256(f"{name}@{node}".encode()).digest()


def kind_of(name: str) -> str:
    """Give what a lease is of: `part`, `account`; each kind is spread by itself."""
    return name.partition("/")[0]


def homes(
    names: Iterable[str], leases: Collection[LeaseRow], nodes: Collection[str]
) -> dict[str, str]:
    """Find an owner for each of these leases.

    Args:
        names: leases that need one.
        leases: all leases; those of nodes that are not in `nodes` do not count.
        nodes: who may own; empty: nobody gets anything.
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
        least = min(held[kind, node] for node in nodes)
        room = [node for node in nodes if held[kind, node] == least]
        found[name] = max(room, key=lambda node: score(name, node))
        held[kind, found[name]] += 1
    return found


def moves(
    leases: Collection[LeaseRow], nodes: Collection[str], most: int
) -> dict[str, str]:
    """Choose leases to be given to another node, until no node has two too many.

    Args:
        leases: all leases.
        nodes: who may own.
        most: moves under way at once; those that are wanted already count.

    Returns:
        By lease the node that is to have it; fewest moves, and none between two nodes
        that may keep what they have.
    """
    goal = {row.name: row.wanted or row.owner for row in leases}
    left = most - sum(goal[row.name] != row.owner for row in leases)
    chosen: dict[str, str] = {}
    for kind in sorted({kind_of(row.name) for row in leases}):
        names = [row.name for row in leases if kind_of(row.name) == kind]
        while left > 0 and (move := _next_move(names, goal, nodes)):
            chosen.update([move])
            goal.update([move])
            left -= 1
    return chosen


def _next_move(
    names: Collection[str], goal: dict[str, str], nodes: Collection[str]
) -> tuple[str, str] | None:
    counts = Counter(dict.fromkeys(nodes, 0))
    counts.update(goal[name] for name in names if goal[name] in nodes)
    if not counts:
        return None
    fewest, most = min(counts.values()), max(counts.values())
    if most - fewest < 2:
        return None
    to = min(node for node in nodes if counts[node] == fewest)
    from_those = [name for name in names if counts[goal[name]] == most]
    return max(from_those, key=lambda name: score(name, to)), to
