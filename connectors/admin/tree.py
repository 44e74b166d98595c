"""The actor tree: who supervises whom, and how each actor is doing.

It is made from the kernel's statistics in one pass; no actor is asked, so one that
hangs is shown with the message it handles. `find_name` finds an actor by the end of
its name: names are paths down the tree, `callboard/agents/anna`; people type `anna`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from heapq import nsmallest

import msgspec

from actors import names
from actors.operations import warden as killing
from actors.rules.text.similarity import LONGEST_WORD, did_you_mean
from connectors.admin.display import make_safe
from runtime.actor.statistics import ActorStatistics
from runtime.errors import MisuseError

MOST_CHILDREN = 50
"""Children of one supervisor that are shown at once."""

MOST = 1_000
"""Actors that are shown at once, in all."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One actor, and those that it supervises."""

    name: str
    label: str
    """Its name among its siblings."""

    kind: str
    state: str
    restarts: int
    depth: int
    """Messages that wait."""

    limit: int
    """Messages that may wait."""

    handled: int
    handling: str
    """Kind of the message that it has been at for `busy_for` seconds; empty: none."""

    busy_for: float
    age: float
    """Seconds since it was started last."""

    last_end: str
    """Why it was started anew; empty: it was not, or in order. Secrets are masked."""

    refusal: str
    """Why the operator may not kill it; empty: they may."""

    children: tuple[Node, ...] = ()
    hidden: int = 0
    """Children that are not shown here."""

    next: str = ""
    """Name of the last child shown, if more follow; of the one looked at only."""


class Forest(msgspec.Struct, frozen=True):
    """All actor trees: the company's, and actors that nobody supervises."""

    roots: tuple[Node, ...]
    actors: int
    """How many there are in all."""


def read_tree(
    actors: Iterable[ActorStatistics],
    redact: Callable[[str], str] = str,
    *,
    top: str = "",
    past: str = "",
) -> Forest:
    """Put the actors into their tree.

    Args:
        top: only this one and those below, in the order of their names; empty, or not
            there any more: all. `find_name` says whom people mean.
        past: of its children, only those whose names come after this one.
    """
    return Planter(actors, redact).forest(top, past)


class Planter:
    """Puts actors into their tree."""

    def __init__(
        self, actors: Iterable[ActorStatistics], redact: Callable[[str], str]
    ) -> None:
        self._redact = redact
        self._by_name = {each.name: each for each in actors}
        self._below: dict[str, list[ActorStatistics]] = {}
        self._left = MOST
        for each in self._by_name.values():
            # One whose supervisor has ended stands alone until it ends, too.
            above = each.supervisor if each.supervisor in self._by_name else ""
            self._below.setdefault(above, []).append(each)

    def forest(self, top: str, past: str) -> Forest:
        """Give the trees, or one branch with the page of its children behind `past`."""
        it = self._by_name.get(top)
        if it is not None:
            below = self._below.get(top, [])
            shown, more = by_name(below, past)
            root = self._node(it, shown, more)
            return Forest((root,), len(self._by_name))
        tops = self._below.get("", [])
        kept = sorted(tops, key=lambda each: each.name != names.ROOT)[:MOST_CHILDREN]
        return Forest(tuple([self._whole(each) for each in kept]), len(self._by_name))

    def _whole(self, it: ActorStatistics) -> Node:
        below = self._below.get(it.name, [])
        return self._node(
            it, most_urgent(below, min(MOST_CHILDREN, max(self._left, 0)))
        )

    def _node(
        self, it: ActorStatistics, shown: list[ActorStatistics], more: str = ""
    ) -> Node:
        self._left -= 1
        children = tuple([self._whole(each) for each in shown])
        return Node(
            name=it.name,
            label=it.name.removeprefix(f"{it.supervisor}/"),
            kind=it.kind,
            state=it.state,
            restarts=it.restarts,
            depth=it.depth,
            limit=it.limit,
            handled=it.handled,
            handling=it.handling,
            busy_for=it.busy_for,
            age=it.age,
            last_end=self._redact(it.last_end),
            refusal=killing.refusal(it.name, names.ROOT),
            children=children,
            hidden=len(self._below.get(it.name, [])) - len(children),
            next=more,
        )


def by_name(
    below: list[ActorStatistics], past: str
) -> tuple[list[ActorStatistics], str]:
    """Give a page of children in the order of their names, and its last name.

    Args:
        past: only those whose names come after this one.

    Returns:
        The children; and the name behind which the next page begins, or nothing.
    """
    # Why not sorted as a whole: that would hold up all other threads with very many.
    behind = (each for each in below if each.name > past)
    found = nsmallest(MOST_CHILDREN + 1, behind, key=lambda each: each.name)
    shown = found[:MOST_CHILDREN]
    return shown, shown[-1].name if len(found) > len(shown) else ""


def most_urgent(below: list[ActorStatistics], most: int) -> list[ActorStatistics]:
    """Give the children that are shown in their tree.

    Few stand in the order in which they were started; of many those that somebody
    would look for.
    """
    return below if len(below) <= most else nsmallest(most, below, key=urgency)


def urgency(it: ActorStatistics) -> tuple[float, int, int, str]:
    """Sort key: actors that hang, then full mailboxes, then restarted actors."""
    return -it.busy_for, -it.depth, -it.restarts, it.name


MOST_NAMED = 5
"""Names that an error tells."""

# Chosen: those nearest to the root, so that each agent is among them; to compare a
# word with 2,000 names takes a tenth of a second.
MOST_COMPARED = 2_000


def find_name(actors: Iterable[str], wanted: str) -> str:
    """Give the whole name of the one actor that is meant.

    Args:
        wanted: a whole name, or the last parts of one; of several an agent counts.

    Raises:
        MisuseError: nobody has this name, or more than one has it as an end.
    """
    known = list(actors)
    if wanted in known:
        return wanted
    end = f"/{wanted}"
    found = [name for name in known if name.endswith(end)]
    if len(found) == 1:
        return found[0]
    branch = f"{names.AGENTS}/{wanted}"
    if branch in found:  # who says "anna" means the agent
        return branch
    if not found:
        near = did_you_mean(nearest(known, wanted))
        raise MisuseError(
            f"no actor has the name {shown(wanted)}, or one that ends so;"
            f" callboard tree shows all.{near}"
        )
    first = nsmallest(MOST_NAMED, found, key=depth)
    more = f" and {len(found) - len(first):,} more" if len(found) > len(first) else ""
    raise MisuseError(
        f"{len(found):,} actors have a name that ends in {shown(wanted)}:"
        f" {', '.join(first)}{more}; give more of it"
    )


def nearest(known: list[str], wanted: str) -> tuple[str, ...]:
    """Give at most three names that are like this one, or whose ends are."""
    word, parts = wanted[-LONGEST_WORD:].casefold(), wanted.count("/") + 1
    by_end: dict[str, str] = {}
    for name in nsmallest(MOST_COMPARED, known, key=depth):
        by_end.setdefault("/".join(name.casefold().split("/")[-parts:]), name)
    return tuple([by_end[end] for end in get_close_matches(word, by_end)])


def depth(name: str) -> tuple[int, str]:
    """Sort by how far below the root it stands."""
    return name.count("/"), name


def shown(wanted: str) -> str:
    """Write a name from outside, bounded and harmless on a terminal."""
    return repr(make_safe(wanted[:LONGEST_WORD]))
