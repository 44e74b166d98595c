"""How the company is doing: sums of its metrics, and rows that wait."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from connectors.admin.queue import OVER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runtime.store.database import Inspection
    from runtime.store.rows import DeliveryState
    from runtime.telemetry.metrics import Figure


DEAD: tuple[DeliveryState, ...] = ("dead",)

ACCEPTED = "accepted"
"""What becomes of a message that is taken in, before all else."""


class MetricSums(msgspec.Struct, frozen=True):
    """Sums of metrics since the start."""

    messages: dict[str, int]
    """By what became of them."""

    connectors: dict[str, int]
    """Messages that were taken in, by connector."""

    turns: dict[str, int]
    """By how they ended."""

    model_calls: dict[str, int]
    """By how they ended."""

    tokens: dict[str, int]
    """By direction."""

    cost: float
    """US dollars."""

    restarts: dict[str, int]
    """Of actors, by what made them necessary."""

    killed: int
    """Actors killed by hand."""

    letters: dict[str, int]
    """Messages between actors that nobody handled, by reason."""

    watchdog: dict[str, int]
    """What the watchdog did."""

    lag: float
    """Seconds the kernel's loop took for its last sign of life."""

    started_at: float
    """Unix seconds; 0: the system does not say."""


class WaitingCounts(msgspec.Struct, frozen=True):
    """How many messages and deliveries are in each state."""

    inbox: dict[str, int]
    outbox: dict[str, int]
    """Of the dead, those that have not failed are `over`; see `OVER` in `queue.py`."""

    @property
    def open(self) -> int:
        """Messages that wait, or are worked on."""
        return self.inbox.get("accepted", 0) + self.inbox.get("running", 0)

    @property
    def unsaid(self) -> int:
        """Deliveries that are still to be said."""
        return self.outbox.get("pending", 0) + self.outbox.get("sending", 0)

    @property
    def dead(self) -> int:
        """Messages and deliveries that were given up."""
        return self.inbox.get("dead", 0) + self.outbox.get("dead", 0)


def read_waiting(rows: Inspection) -> WaitingCounts:
    """Count what stands in the database."""
    counts, failed = rows.counts(), rows.count_deliveries(DEAD, OVER)
    outbox = {str(state): count for state, count in counts.outbox.items()}
    if over := outbox.get("dead", 0) - failed:
        outbox |= {"dead": failed, "over": over}
    return WaitingCounts(
        {str(state): count for state, count in counts.inbox.items()}, outbox
    )


def sum_figures(figures: Iterable[Figure]) -> MetricSums:
    """Sum up figures of `runtime.telemetry.metrics.Metrics`."""
    kept: dict[str, list[Figure]] = {}
    for each in figures:
        kept.setdefault(each.name, []).append(each)

    def by(name: str, label: str, outcome: str = "") -> dict[str, int]:
        counted: Counter[str] = Counter()
        for each in kept.get(name, ()):
            if outcome in {"", each.labels.get("outcome")}:
                counted[each.labels.get(label, "")] += int(each.value)
        return dict(counted.most_common())

    def total(name: str) -> float:
        return sum(each.value for each in kept.get(name, ()))

    return MetricSums(
        messages=by("callboard_messages_total", "outcome"),
        connectors=by("callboard_messages_total", "connector", ACCEPTED),
        turns=by("callboard_turns_total", "outcome"),
        model_calls=by("callboard_model_call_seconds_count", "outcome"),
        tokens=by("callboard_model_tokens_total", "direction"),
        cost=total("callboard_cost_dollars_total"),
        restarts=by("callboard_actor_restarts_total", "reason"),
        killed=int(total("callboard_actors_killed_total")),
        letters=by("callboard_dead_letters_total", "reason"),
        watchdog=by("callboard_watchdog_actions_total", "action"),
        lag=total("callboard_loop_lag_seconds"),
        started_at=total("process_start_time_seconds"),
    )
