"""How fast a count grows; pure."""

from __future__ import annotations

from collections import deque

# Chosen: long enough to be calm, short enough to see what is going on now.
WINDOW = 60.0
"""Seconds over which a pace is told."""

MOST_SAMPLES = 120


class Pace:
    """How fast a count grows, told from the last times it was looked at.

    Never holds more than `MOST_SAMPLES`: of those in the same half second one is kept.
    """

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque(maxlen=MOST_SAMPLES)

    def look(self, count: float, now: float) -> float | None:
        """Take one look.

        Args:
            count: as it is now; one that has shrunk begins anew.
            now: seconds on the caller's monotonic clock.

        Returns:
            By how much it grows in a minute; None: it was not looked at before.
        """
        samples = self._samples
        if samples and (count < samples[-1][1] or now < samples[-1][0]):
            samples.clear()
        while len(samples) > 1 and samples[1][0] <= now - WINDOW:
            samples.popleft()
        if not samples or now - samples[-1][0] >= WINDOW / MOST_SAMPLES:
            samples.append((now, count))
        since, before = samples[0]
        return (count - before) / (now - since) * 60.0 if now > since else None
