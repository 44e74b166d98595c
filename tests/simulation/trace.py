"""What happened in one simulated run, in order: bounded, and the same for one seed.

Every event goes into the digest; the last few thousand are kept for a look.
"""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Collection

import msgspec

# Chosen: twice the events of the longest run seen.
KEEP = 5_000

# Chosen: what fits on two screens; the digest tells the rest apart.
SHOWN = 80

# Events that may have a part in any failure.
ALWAYS_SHOWN = frozenset({"fault", "life", "phase"})


class Event(msgspec.Struct, frozen=True):
    """One thing that happened."""

    at: float
    """Seconds of virtual time since the run began."""

    kind: str
    subject: str
    """Id of the message or delivery it is about; empty for none."""

    text: str

    def __str__(self) -> str:
        return f"{self.at:10.3f}  {self.kind:9} {self.subject:14} {self.text}"


class Violation(msgspec.Struct, frozen=True):
    """One invariant did not hold."""

    invariant: str
    """As in `checkers.py`: I1, I2, …"""

    text: str
    subjects: tuple[str, ...] = ()
    """Ids of the messages and deliveries concerned, for the minimal trace."""

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}"


class Trace:
    """The events of one run.

    Args:
        now: tells virtual time.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._hash = hashlib.sha256()
        self.events: deque[Event] = deque(maxlen=KEEP)
        self.violations: list[Violation] = []
        self.tolerated: list[Violation] = []
        """What did not hold, but where an actor had died and its work was redone."""

        self.counts: Counter[str] = Counter()

    def note(self, kind: str, subject: str, text: str = "") -> None:
        """Keep one event."""
        event = Event(round(self._now(), 6), kind, subject, text)
        self.events.append(event)
        self.counts[kind] += 1
        self._hash.update(str(event).encode("utf-8", "backslashreplace"))

    def violate(self, invariant: str, text: str, *subjects: str) -> None:
        """Keep that an invariant did not hold."""
        self.violations.append(Violation(invariant, text, subjects))
        self.note("violation", subjects[0] if subjects else "", f"{invariant} {text}")

    def tolerate(self, invariant: str, text: str, *subjects: str) -> None:
        """Keep that an invariant did not hold where that is not promised."""
        self.tolerated.append(Violation(invariant, text, subjects))
        self.note("tolerated", subjects[0] if subjects else "", f"{invariant} {text}")

    @property
    def digest(self) -> str:
        """Tell this run from any other: 16 characters over all events."""
        return self._hash.hexdigest()[:16]

    def minimal(self, subjects: Collection[str]) -> list[str]:
        """Give the last events that concern these subjects, and all faults."""
        wanted = [
            event
            for event in self.events
            if event.kind in ALWAYS_SHOWN
            or event.kind == "violation"
            or any(_concerns(event, each) for each in subjects)
        ]
        return [str(event) for event in wanted[-SHOWN:]]


def _concerns(event: Event, subject: str) -> bool:
    return event.subject.startswith(subject) or subject in event.text
