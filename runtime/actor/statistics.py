"""What an operator may know of an actor and of a system, as plain records.

Metrics and any page that shows the actor tree are made from these.
"""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["starting", "running", "passivating", "stopping", "down", "dead"]
"""`down`: between two incarnations; its mailbox keeps what comes."""


class ActorStatistics(msgspec.Struct, frozen=True, gc=False):
    """One actor, now."""

    name: str
    kind: str
    """The actor's class: the bounded label of metrics."""

    supervisor: str
    """Name of its supervisor; empty for an actor that has none."""

    state: State
    depth: int
    """User messages waiting."""

    limit: int
    """User messages that may wait at most."""

    weight: int
    """Bytes of user messages waiting, where the mailbox weighs them."""

    handled: int
    """Messages handled since the actor was first started."""

    failed: int
    """Handlers that raised, since the actor was first started."""

    restarts: int
    age: float
    """Seconds since this incarnation started."""

    busy_for: float
    """Seconds that the present `async` handler has run; 0 when there is none."""

    handling: str
    """Kind of the message that the present `async` handler is about; empty: none."""

    last_end: str
    """How its last incarnation ended, if that was a failure or a kill; else empty. It
    may contain secrets: redact it before it is shown.
    """

    is_idle: bool
    """Running, with nothing to handle and nothing being handled."""


class SystemStatistics(msgspec.Struct, frozen=True):
    """A whole system, now."""

    actors: int
    run_queue: int
    """Actors waiting for their turn."""

    foreign_waiting: int
    """Messages from other threads that have not arrived yet."""

    timers: int
    handled: int
    """Messages handled since the system opened, by living and ended actors."""

    handled_by: dict[str, int]
    """Messages handled by actors that have ended, by kind."""

    dead_letters: dict[str, int]
    """Reason → count."""

    restarts: dict[tuple[str, str], int]
    """(kind, reason) → count."""

    watchdog: dict[tuple[str, str], int]
    """(kind, action) → count."""

    loop_lag: float
    """Seconds that the loop took for its last sign of life to the watchdog."""
