"""What is counted of hooks; the labels are bounded by the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.metrics import SECONDS

if TYPE_CHECKING:
    from actors.hooks.chain import Action, Trouble
    from runtime.telemetry.metrics import Metrics


class HookFigures:
    """The counters of all hooks."""

    def __init__(self, metrics: Metrics) -> None:
        self._questions = metrics.counter(
            "callboard_hook_questions",
            "What hooks said, by hook; or why one gave no verdict.",
            ("hook", "outcome"),
        )
        self._told = metrics.counter(
            "callboard_hook_notices",
            "Finished turns that hooks were told of, or were not.",
            ("hook", "outcome"),
        )
        self._seconds = metrics.histogram(
            "callboard_hook_seconds",
            "Seconds until a hook gave its verdict.",
            ("hook",),
            SECONDS,
        )
        self._up = metrics.gauge(
            "callboard_hook_up", "1 while a hook can be asked.", ("hook",)
        )

    def count(self, hook: str, outcome: Action | Trouble) -> None:
        """Count a question."""
        self._questions.add(1, hook, outcome)

    def took(self, hook: str, seconds: float) -> None:
        """Count how long a verdict took."""
        self._seconds.observe(seconds, hook)

    def told(self, hook: str, outcome: str) -> None:
        """Count a finished turn."""
        self._told.add(1, hook, outcome)

    def show(self, hook: str, *, is_up: bool) -> None:
        """Show whether a hook can be asked."""
        self._up.set(float(is_up), hook)
