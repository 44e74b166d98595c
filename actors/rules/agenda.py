"""Which appointments there are, and which is to be looked at next; pure.

Holds a few words of each, never its text: of a hundred thousand, too.
"""

from __future__ import annotations

import heapq
from collections import Counter

import msgspec

from actors.rules.appointing import Counts


class Known(msgspec.Struct, frozen=True):
    """What is known of an appointment without reading it."""

    wakes: float
    """Unix seconds at which to look at it; 0: never."""

    agent: str
    person: str


class Agenda:
    """The appointments by their times."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}
        self._heap: list[tuple[float, str]] = []

    def __len__(self) -> int:
        """How many appointments there are."""
        return len(self._known)

    def put(self, name: str, known: Known) -> None:
        """Note an appointment, or how it has changed."""
        self._known[name] = known
        if known.wakes:
            heapq.heappush(self._heap, (known.wakes, name))
        if len(self._heap) > 2 * len(self._known) + 64:
            self._sweep()

    def drop(self, name: str) -> None:
        """Forget an appointment."""
        self._known.pop(name, None)

    def replace(self, known: dict[str, Known]) -> None:
        """Forget all, and note these."""
        self._known = dict(known)
        self._sweep()

    def take_due(self, now: float, most: int) -> list[str]:
        """Take what is to be looked at, the longest due first.

        What is taken does not come again until it is put again.
        """
        found: list[str] = []
        while len(found) < most and (at := self.next_at()) is not None and at <= now:
            _, name = heapq.heappop(self._heap)
            known = self._known[name]
            self._known[name] = msgspec.structs.replace(known, wakes=0.0)
            found.append(name)
        return found

    def next_at(self) -> float | None:
        """Give when to look next, in Unix seconds; None: there is nothing."""
        while self._heap:
            at, name = self._heap[0]
            known = self._known.get(name)
            if known is not None and known.wakes == at:
                return at
            heapq.heappop(self._heap)  # it was changed, or is gone
        return None

    def count(self, person: str) -> Counts:
        """Count a person's, and each agent's."""
        known = self._known.values()
        mine = sum(each.person == person for each in known)
        return Counts(mine, dict(Counter(each.agent for each in known)))

    def _sweep(self) -> None:
        found = self._known.items()
        self._heap = [(each.wakes, name) for name, each in found if each.wakes]
        heapq.heapify(self._heap)
