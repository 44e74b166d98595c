"""What goes wrong in one run: which classes of faults are on, and when they strike.

Swarm testing: each class is on or off per seed, because faults that always come
together hide what one of them does alone.
"""

from __future__ import annotations

import random  # noqa: TID251  only dice that a seed made are used
from typing import Literal, get_args

import msgspec

FaultClass = Literal[
    "crash",
    "crash_in_send",
    "restart",
    "disk_full",
    "disk_slow",
    "disk_unread",
    "disk_ghost",
    "model_error",
    "model_slow",
    "model_bug",
    "model_odd",
    "model_hang",
    "tool_error",
    "tool_bug",
    "send_error",
    "send_slow",
    "send_bug",
    "send_lost",
    "listener",
    "duplicate",
    "shock",
    "poison",
    "kill",
    "slip",
    "wall",
    "operator",
]

CLASSES: tuple[FaultClass, ...] = tuple(
    kind for kind in get_args(FaultClass) if kind != "model_hang"
)
"""Those that a seed may throw; a model hangs in runs of its own (`hangs.py`)."""

# Classes that strike at moments planned beforehand: fewest and most times.
STRIKES: dict[FaultClass, tuple[int, int]] = {
    "crash": (1, 3),
    "restart": (1, 2),
    "disk_full": (1, 2),
    "disk_slow": (1, 2),
    "disk_unread": (1, 1),
    "listener": (1, 3),
    "duplicate": (1, 5),
    "shock": (1, 4),
    "poison": (1, 2),
    "kill": (1, 1),
    "wall": (1, 3),
    "operator": (1, 6),
}


HOUR = 3600.0

SWINGS = (5.0, HOUR / 3, 5 * HOUR, 48 * HOUR)
"""Seconds by which the wall clock of a swinging seed is ahead, or behind, for a while:
it was set wrong, and is set right again."""

# Chosen: a third of the seeds, of every kind: with rooms and without.
SWINGING = frozenset({0, 4, 8})


def swings(seed: int) -> bool:
    """Whether the wall clock jumps both ways in the runs of a seed."""
    return seed % 9 in SWINGING


class Strike(msgspec.Struct, frozen=True):
    """One planned fault."""

    at: float
    """Seconds since the run began."""

    kind: FaultClass
    seconds: float
    """How long it lasts, where it lasts."""

    roll: float
    """From 0 up to 1: whom it strikes."""

    jump: float = 0.0
    """Seconds by which the wall clock jumps."""


class Faults:
    """The dice of one run.

    Args:
        dice: seeded.
        span: seconds of the safety phase.
        only: the classes that are on; None: each by a throw.
        swings: whether the wall clock jumps both ways, if no classes are named.
    """

    def __init__(
        self,
        dice: random.Random,
        span: float,
        only: frozenset[FaultClass] | None = None,
        *,
        swings: bool = False,
    ) -> None:
        self.dice = dice
        density = dice.choice((0.0, 0.15, 0.35, 0.6))
        thrown = [kind for kind in CLASSES if dice.random() < density]
        self.on = frozenset(thrown) if only is None else only
        self.is_over = False
        """Set when the liveness phase begins: nothing strikes any more."""

        self.hits: list[FaultClass] = []
        """What struck, in order."""

        strikes = [
            self._strike(kind, span)
            for kind, (fewest, most) in STRIKES.items()
            if kind in self.on
            for _ in range(dice.randint(fewest, most))
        ]
        if swings and only is None:
            self.on |= {"wall"}
            strikes += self._swing(span)
        self.strikes = tuple(sorted(strikes, key=lambda strike: strike.at))

    def _strike(self, kind: FaultClass, span: float) -> Strike:
        dice = self.dice
        at, seconds = dice.uniform(0.0, span), dice.choice((0.05, 1.0, 15.0))
        roll = dice.random()
        jump = (roll - 0.5) * HOUR if kind == "wall" else 0.0
        return Strike(at, kind, seconds, roll, jump)

    def _swing(self, span: float) -> tuple[Strike, Strike]:
        """Set the clock wrong, and right again."""
        dice = self.dice
        there, back = sorted((dice.uniform(0.0, span), dice.uniform(0.0, span)))
        jump = dice.choice(SWINGS) * dice.choice((-1.0, 1.0))
        return (
            Strike(there, "wall", 0.0, 0.0, jump),
            Strike(back, "wall", 0.0, 0.0, -jump),
        )

    def hit(self, kind: FaultClass, chance: float) -> bool:
        """Throw the dice for a fault that may strike here and now."""
        if self.is_over or kind not in self.on or self.dice.random() >= chance:
            return False
        self.hits.append(kind)
        return True
