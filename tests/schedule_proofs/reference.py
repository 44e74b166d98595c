"""What the scheduler should do, told in a hundred lines: no actor, no store, no timer.

An entry is a list of times. The world looks at it when the next of them comes, and
once a minute; what it finds then, `_wake` says. Time passes only when somebody says so.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field, replace
from math import inf

LOOK_EVERY = 60.0
WENT_BACK = 60.0
COUNTED = 1000


def rounded(wall: float) -> float:
    """Give the clock's time in whole milliseconds.

    All that happens takes whole milliseconds. Two ways of adding them up differ in the
    last bit of a number, and a slot that is due at this instant must not hang on it.
    """
    return round(wall, 3)


@dataclass
class Entry:
    """One appointment."""

    times: list[int]
    repeats: bool = True
    is_beat: bool = False
    is_every: bool = False
    next_due: float = 0.0
    run_at: float = 0.0
    last: int = 0
    failures: int = 0
    paused: str = ""
    fired: int = 0
    written_at: float = 0.0
    ends: str = "open"
    """What becomes of each of its slots at once."""

    @property
    def wakes(self) -> float:
        """When to look at it; never: infinity."""
        due = inf if self.paused or not self.next_due else self.next_due
        return min(due, self.run_at or inf)


@dataclass
class Reference:
    """A scheduler."""

    wall: float
    catch_up: str = "once"
    most: int = 10
    late_within: float = 60.0
    most_failures: int = 3
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    fired: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    skipped: Counter[str] = field(default_factory=Counter[str])
    states: dict[tuple[str, int], str] = field(
        default_factory=dict[tuple[str, int], str]
    )
    """What became of each slot that was carried out."""

    is_up: bool = True
    _look_in: float = LOOK_EVERY
    _seen: float = 0.0

    # --- what happens to it ---------------------------------------------------------

    def start(self) -> None:
        """Read all that there is; what was written in the future is reckoned anew."""
        self.is_up, self._seen = True, self.wall
        self.read()

    def read(self) -> None:
        """Take up what others wrote."""
        for it in self.entries.values():
            self._turn_back(it)
        self._arm()

    def stop(self) -> None:
        """Do nothing until it is started."""
        self.is_up = False

    def put(self, name: str, it: Entry) -> None:
        """Write an entry."""
        self.entries[name] = replace(it, written_at=self.wall)

    def jump(self, seconds: float) -> None:
        """Set the clock on the wall, and nothing else."""
        self.wall = rounded(self.wall + seconds)

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        while self.is_up and self._look_in <= seconds:
            self.wall = rounded(self.wall + self._look_in)
            seconds -= self._look_in
            self._look()
        self.wall = rounded(self.wall + seconds)
        self._look_in -= seconds

    def settle(self, state: str) -> None:
        """End all that is under way."""
        self.states = {k: state if v == "open" else v for k, v in self.states.items()}

    # --- what it does ---------------------------------------------------------------

    def _arm(self) -> None:
        soonest = min((it.wakes for it in self.entries.values()), default=inf)
        self._look_in = min(max(0.0, soonest - self.wall), LOOK_EVERY)

    def _look(self) -> None:
        went_back = self.wall < self._seen - WENT_BACK
        self._seen = self.wall
        if went_back:
            for it in self.entries.values():
                self._turn_back(it)
        due = [(it.wakes, name) for name, it in self.entries.items()]
        for _, name in sorted(each for each in due if each[0] <= self.wall):
            self._wake(name, self.entries[name])
        self._arm()

    def _turn_back(self, it: Entry) -> None:
        if it.written_at > self.wall + WENT_BACK and it.repeats and it.next_due:
            coming = self.following(it)
            if 0 < coming < it.next_due:
                it.next_due, it.written_at = coming, self.wall

    def following(self, it: Entry) -> float:
        """Give the next time of an entry; 0: there is none."""
        place = bisect_right(it.times, self.wall)
        return float(it.times[place]) if place < len(it.times) else 0.0

    def _wake(self, name: str, it: Entry) -> None:
        it.written_at = self.wall
        before = self._judge(name, it)
        chosen: list[float] = []
        if it.run_at and it.run_at <= self.wall:
            chosen, it.run_at = [it.run_at], 0.0
        if it.next_due and it.next_due <= self.wall and not it.paused:
            due = self._due(it)
            if before == "open":
                self.skipped["busy"] += len(due)
            else:
                chosen += due
            it.next_due = self.following(it) if it.repeats else 0.0
        self._fire(name, it, list(dict.fromkeys(map(int, chosen))))
        if not (it.wakes < inf or it.paused or it.is_beat):
            del self.entries[name]

    def _judge(self, name: str, it: Entry) -> str:
        """Tell how the slot before ended; count it if that is new."""
        before = self.states.get((name, it.last), "none") if it.repeats else "none"
        if before in {"done", "failed"}:
            it.failures = it.failures + 1 if before == "failed" else 0
            it.last = 0
            if before == "failed" and it.failures >= self.most_failures:
                it.paused = "failures"
        return before

    def _fire(self, name: str, it: Entry, chosen: list[int]) -> None:
        new = [slot for slot in chosen if (name, slot) not in self.states]
        self.skipped["again"] += len(chosen) - len(new)
        self.fired += [(name, slot) for slot in new]
        self.states.update(dict.fromkeys(((name, slot) for slot in new), it.ends))
        it.last, it.fired = new[-1] if new else it.last, it.fired + len(new)

    def _due(self, it: Entry) -> list[float]:
        """Give what is made up for; count what was missed."""
        first = bisect_left(it.times, it.next_due)
        passed = list(map(float, it.times[first : bisect_right(it.times, self.wall)]))
        if not it.repeats:
            return passed
        catch_up = "skip" if it.is_beat else self.catch_up
        chosen = passed[-(self.most if catch_up == "all" else 1) :]
        missed = len(passed) - len(chosen)
        self.skipped["missed"] += missed if it.is_every else min(missed, COUNTED)
        if catch_up == "skip" and self.wall - passed[-1] > self.late_within:
            self.skipped["missed"] += len(chosen)
            return []
        return chosen
