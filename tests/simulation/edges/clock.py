"""Time of a run: it stands still while anything can happen, then jumps ahead.

As trio's `MockClock` with `autojump_threshold=0`, in half the rounds of its loop.
"""

from __future__ import annotations

from math import inf
from typing import Any

import trio


class SimulatedClock(trio.abc.Clock):
    """A clock of which nothing but the next deadline moves the hand."""

    def __init__(self) -> None:
        self._now = 0.0
        self._runner: Any = None

    def start_clock(self) -> None:
        """Begin with a run."""
        # Private: pinned by test_trio_seam.py.
        self._runner = trio._core._run.GLOBAL_RUN_CONTEXT.runner

    def current_time(self) -> float:
        """Give the seconds since the run began."""
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Say how long to wait for I/O: trio asks when no task can run.

        What was left for the loop by `run_sync_soon`, and tasks that wait for all
        others to be blocked, come before any later moment.
        """
        runner = self._runner
        left = runner.entry_queue
        if deadline <= self._now or left.queue or left.idempotent_queue:
            return 0.0
        if deadline == inf or runner.waiting_for_idle:
            return inf
        self._now = deadline
        return 0.0
