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
        self._recalls = metrics.histogram(
            "callboard_recall_seconds",
            "Seconds of one recall, by agent and outcome: ok, late, failed.",
            ("agent", "outcome"),
            SECONDS,
        )
        self._notes = metrics.counter(
            "callboard_memory_notes",
            "Notes by agent, what they were and what came of them.",
            ("agent", "note", "outcome"),
        )
        self._facts = metrics.gauge(
            "callboard_facts",
            "What is remembered, by agent, kind and category.",
            ("agent", "kind", "category"),
        )
        self._embeddings = metrics.counter(
            "callboard_embeddings",
            "Texts by what came of their vectors: ok, busy, refused, dropped.",
            ("agent", "outcome"),
        )
        self._expired = metrics.counter(
            "callboard_facts_expired", "Facts forgotten because their time was over."
        )
        self._logs = metrics.counter(
            "callboard_daily_log",
            "Entries of daily logs by agent and outcome: ok, failed, dropped.",
            ("agent", "outcome"),
        )

        self._logs_removed = metrics.counter(
            "callboard_daily_logs_removed",
            "Files of daily logs removed because their time was over.",
        )

    def recall(self, agent: str, outcome: str, seconds: float) -> None:
        """Observe one recall."""
        self._recalls.observe(seconds, agent, outcome)

    def note(self, agent: str, note: str, outcome: str) -> None:
        """Count what came of a note: saved, known, forgotten, or why it was refused."""
        self._notes.add(1, agent, note, outcome)

    def facts(self, agent: str, kind: str, category: str, count: int) -> None:
        """Show how much is remembered."""
        self._facts.set(count, agent, kind, category)

    def embedding(self, agent: str, outcome: str, count: int = 1) -> None:
        """Count texts that were to get vectors."""
        self._embeddings.add(count, agent, outcome)

    def expired(self, count: int) -> None:
        """Count what was forgotten because its time was over."""
        self._expired.add(count)

    def logs_removed(self, count: int) -> None:
        """Count files of daily logs that went because their time was over."""
        self._logs_removed.add(count)

    def log(self, agent: str, outcome: str) -> None:
        """Count an entry of a daily log."""
        self._logs.add(1, agent, outcome)


@dataclass(frozen=True)
class MemoryKit:
    """What the memories of all agents share."""

    config: MemoryConfig
    metrics: MemoryMetrics
    embedder: Embedder | None = None
    """None: facts are found by their words alone."""

    log_book: LogBook | None = None
    """None: there are no files of daily logs."""
