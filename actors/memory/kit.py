"""What the memories of all agents share: settings, embedder, log book, figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from actors.metrics import SECONDS

if TYPE_CHECKING:
    from actors.config.memory import MemoryConfig
    from actors.ports import Embedder, LogBook
    from runtime.telemetry.metrics import Metrics


class MemoryMetrics:
    """The metrics of memory; all labels are bounded."""

    def __init__(self, metrics: Metrics) -> None:
        self.recalls = metrics.histogram(
            "callboard_recall_seconds",
            "Seconds of one recall, by agent and outcome: ok, late, failed.",
            ("agent", "outcome"),
            SECONDS,
        )
        self.notes = metrics.counter(
            "callboard_memory_notes",
            "Notes by agent, what they were and what came of them.",
            ("agent", "note", "outcome"),
        )
        self.facts = metrics.gauge(
            "callboard_facts",
            "What is remembered, by agent, kind and category.",
            ("agent", "kind", "category"),
        )
        self.embeddings = metrics.counter(
            "callboard_embeddings",
            "Texts by what came of their vectors: ok, busy, refused, dropped.",
            ("agent", "outcome"),
        )
        self.expired = metrics.counter(
            "callboard_facts_expired", "Facts forgotten because their time was over."
        )
        self.logs = metrics.counter(
            "callboard_daily_log",
            "Entries of daily logs by agent and outcome: ok, failed, dropped.",
            ("agent", "outcome"),
        )
        self.logs_removed = metrics.counter(
            "callboard_daily_logs_removed",
            "Files of daily logs removed because their time was over.",
        )


@dataclass(frozen=True)
class MemoryKit:
    """What the memories of all agents share."""

    config: MemoryConfig
    metrics: MemoryMetrics
    embedder: Embedder | None = None
    """None: facts are found by their words alone."""

    log_book: LogBook | None = None
    """None: there are no files of daily logs."""
