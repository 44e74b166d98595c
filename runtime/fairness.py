"""Places that several share, so that nobody can take them all.

Nobody holds more than three quarters of the places, rounded down: of two or more, one
is always kept for somebody else, so that a newcomer need not wait until others are
done. A single place is anybody's. Those who wait for a place take turns, however much
each asks for, and the last one who had a place comes after the others: so a newcomer
has the next place that is free. An owner of places is named by a text; the empty one is
nobody in particular, who may hold all. Where owners are behind others, as people are
behind an API key, `PlacesHeld` gives each of them a share of the other's share.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import chain
from typing import Generic, TypeVar

import trio

T = TypeVar("T")


def most_of_one(most: int) -> int:
    """Say how many of `most` places one owner may hold: three quarters, at least 1."""
    # Chosen: an owner alone loses little, and of two places one is kept for others.
    return max(1, most * 3 // 4)


Owner = tuple[str, ...]
"""Who owns a place, the widest name first: a connector, an API key, a person. An empty
name is nobody in particular."""


class PlacesHeld:
    """Counts the places that owners hold; tells who may hold one more. Pure.

    A name holds at most three quarters of what the name before it may hold, so that a
    person who holds all that they may leaves room for others behind the same key. Of a
    single place they all take turns.
    """

    def __init__(self) -> None:
        self._held: Counter[Owner] = Counter()
        """By owner, and by everything that stands before a name of theirs."""

    def __len__(self) -> int:
        """Count all places that are held."""
        return self._held[()]

    def held(self, owner: Owner) -> int:
        """Count what an owner holds, or all behind a name."""
        return self._held[owner]

    def add(self, owner: Owner) -> None:
        """Count a place that an owner takes."""
        for end in range(len(owner) + 1):
            self._held[owner[:end]] += 1

    def remove(self, owner: Owner) -> None:
        """Count a place that an owner gives back."""
        for end in range(len(owner) + 1):
            self._held[owner[:end]] -= 1
            if not self._held[owner[:end]]:
                del self._held[owner[:end]]

    def may_add(self, owner: Owner, most: int, first: int = 0) -> bool:
        """Tell whether an owner may hold one more, if there is one.

        Args:
            owner: who asks; or the names before them, to ask for all behind.
            most: how many places there are.
            first: how many names, from the widest, have no share: they are alone.
        """
        share = most
        for end in range(first + 1, len(owner) + 1):
            if owner[end - 1]:
                share = max(1, share * 3 // 4)  # as `most_of_one`, for each message
                if self._held[owner[:end]] >= share:
                    return False
        return True


class WaitingTurns(Generic[T]):
    """What waits, by owner: the names take turns, each has theirs in order. Pure.

    Behind a name may be further names, as people are behind an API key.
    """

    __slots__ = ("_items", "_lines")

    def __init__(self) -> None:
        self._lines: OrderedDict[str, WaitingTurns[T]] = OrderedDict()
        """The name whose turn is next stands first; no line is empty."""

        self._items: dict[T, None] = {}
        """What waits behind no further name, the first one first."""

    def __len__(self) -> int:
        """Count all that wait."""
        return len(self._items) + sum(map(len, self._lines.values()))

    def __bool__(self) -> bool:
        """Whether anything waits; need not count."""
        return bool(self._items or self._lines)

    def __iter__(self) -> Iterator[T]:
        """Give all that waits, one owner's after the other's."""
        return chain(self._items, *self._lines.values())

    def waiting(self, owner: Owner) -> int:
        """Count what waits of one owner, or of all behind a name."""
        if not owner:
            return len(self)
        line = self._lines.get(owner[0])
        return 0 if line is None else line.waiting(owner[1:])

    def add(self, owner: Owner, item: T) -> None:
        """Have an item wait behind the others of its owner."""
        if owner:
            line = self._lines.get(owner[0])
            if line is None:
                line = self._lines[owner[0]] = WaitingTurns()
            line.add(owner[1:], item)
        else:
            self._items[item] = None

    def remove(self, owner: Owner, item: T) -> bool:
        """Take out an item that need not wait any more; False if it does not wait."""
        if not owner:
            is_waiting = item in self._items
            self._items.pop(item, None)
            return is_waiting
        line = self._lines.get(owner[0])
        if line is None or not line.remove(owner[1:], item):
            return False
        if not line:
            del self._lines[owner[0]]
        return True

    def next(
        self, may: Callable[[Owner, T | None], bool], last: Owner, before: Owner = ()
    ) -> tuple[Owner, T] | None:
        """Give who is next and the item whose turn it is; None: there is none.

        Args:
            may: tells it of one item of an owner, or of everybody behind their names.
            last: who had the last turn, by the names from this line on; they come after
                others, also if those began to wait later. Empty: it was behind
                another name.
        """
        if not may(before, None):
            return None
        for item in self._items:
            if may(before, item):
                return before, item
        found = (
            line.next(may, (), (*before, name))
            for name, line in self._lines.items()
            if name not in last[:1]
        )
        first = next((each for each in found if each is not None), None)
        line = self._lines.get(last[0]) if last else None
        if first is None and line is not None:
            first = line.next(may, last[1:], (*before, last[0]))
        return first

    def take(self, owner: Owner, item: T) -> None:
        """Take out an item whose turn it is; its owner's names come last then."""
        self.remove(owner, item)
        self.move_back(owner)

    def move_back(self, owner: Owner) -> None:
        """Put an owner's names last, each in its line."""
        line = self._lines.get(owner[0]) if owner else None
        if line is not None:
            self._lines.move_to_end(owner[0])
            line.move_back(owner[1:])


class FairQueue(Generic[T]):
    """What waits for one task that takes it, and what it is at work on.

    Args:
        most: how many it may be at work on.
        waiting: how many more may wait.
        owner_of: names the owner of an item.
    """

    def __init__(self, most: int, waiting: int, owner_of: Callable[[T], str]) -> None:
        self._most = most
        self._room = most + waiting
        self._owner_of = owner_of
        self._turns: WaitingTurns[T] = WaitingTurns()
        self._last: Owner = ()
        self._running: set[T] = set()
        self._news = trio.Event()

    @property
    def waiting(self) -> tuple[T, ...]:
        """What waits."""
        return tuple(self._turns)

    @property
    def running(self) -> tuple[T, ...]:
        """What was taken and is not done."""
        return tuple(self._running)

    def may_add(self, owner: str) -> bool:
        """Tell whether one more of an owner may wait."""
        own = self._turns.waiting((owner,)) + self._runs_of(owner)
        is_full = len(self._turns) + len(self._running) >= self._room
        return not is_full and (not owner or own < most_of_one(self._room))

    def add(self, item: T) -> None:
        """Have an item wait."""
        self._turns.add((self._owner_of(item),), item)
        self._news.set()

    def withdraw(self, item: T) -> bool:
        """Take an item back; False if it does not wait any more."""
        return self._turns.remove((self._owner_of(item),), item)

    async def take(self) -> T:
        """Wait for the next item, and for room to begin it; call `done` at its end."""
        while (item := self._next()) is None:
            self._news = trio.Event()
            await self._news.wait()
        self._running.add(item)
        return item

    def done(self, item: T) -> None:
        """Make room."""
        self._running.discard(item)
        self._news.set()

    def abandon(self) -> tuple[T, ...]:
        """Give what was taken and is not done, and forget it; nobody is woken."""
        running = self.running
        self._running.clear()
        return running

    def _next(self) -> T | None:
        if len(self._running) >= self._most:
            return None
        found = self._turns.next(self._may_run, self._last)
        if found is None:
            return None
        self._last, item = found
        self._turns.take(*found)
        return item

    def _may_run(self, owner: Owner, _item: T | None) -> bool:
        return not any(owner) or self._runs_of(owner[0]) < most_of_one(self._most)

    def _runs_of(self, owner: str) -> int:
        return sum(self._owner_of(each) == owner for each in self._running)


class FairLimiter:
    """Places for tasks, given out in turns.

    Args:
        most: how many there are; at least 1.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()
        self._turns: WaitingTurns[trio.Event] = WaitingTurns()
        self._last: Owner = ()

    @asynccontextmanager
    async def place(self, owner: str) -> AsyncGenerator[None]:
        """Wait for a place, and hold it for as long as the block."""
        given = trio.Event()
        self._turns.add((owner,), given)
        self._give()
        try:
            await given.wait()
            yield
        finally:
            if given.is_set():
                self._held[owner] -= 1
                self._held += Counter()  # forgets who holds none
                self._give()
            else:
                self._turns.remove((owner,), given)

    def _give(self) -> None:
        while self._held.total() < self._most and (
            found := self._turns.next(self._may, self._last)
        ):
            self._last, given = found
            self._turns.take(*found)
            self._held[self._last[0]] += 1
            given.set()

    def _may(self, owner: Owner, _given: trio.Event | None) -> bool:
        return not any(owner) or self._held[owner[0]] < most_of_one(self._most)
