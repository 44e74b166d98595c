"""The words of a measurement: what is measured, how much of it, what came out.

Everything else in this folder speaks in these. Knows no clock and no subject.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

OURS = "callboard"
"""The subject that peers are compared with."""


class Plan(msgspec.Struct, frozen=True):
    """How much one round does."""

    size: int
    """How many messages, asks, actors or commits; each benchmark says which."""

    seed: int
    """Every order and every byte that chance decides comes from this."""

    def dice(self) -> random.Random:
        """Give the round's own source of chance."""
        return random.Random(self.seed)  # noqa: S311  a repeatable order, no secret


class Figure(msgspec.Struct, frozen=True):
    """One number that one round gave."""

    name: str
    value: float
    unit: str
    """Whatever is per second ends in `/s`; more of that is better, less of anything
    else."""


Round = Callable[[Plan], list[Figure]]
"""Measures once, from nothing, and leaves nothing behind."""


class Benchmark(msgspec.Struct, frozen=True):
    """Something worth a number, and how Callboard does it."""

    name: str
    """One noun; peers that can do the same answer to the same name."""

    about: str
    """One line for the reader of the table."""

    full: Plan
    quick: Plan
    """Just enough to see that it runs; its numbers mean nothing."""

    measure: Round
    most_runs: int | None = None
    """Rounds at most, if each takes minutes; None: as many as are asked for."""

    warms_up: bool = True
    """Whether a first round goes uncounted; rounds that start a fresh process see
    to it themselves, or want the cold."""


def is_rate(unit: str) -> bool:
    """Whether more of this unit is better."""
    return unit.endswith("/s")
