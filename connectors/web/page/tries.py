"""How often a client may fail to log in; pure: told the time."""

from __future__ import annotations

MOST_CLIENTS = 1_000
"""Clients remembered; of more, the one that failed first is forgotten."""


class Tries:
    """The logins that failed lately.

    Args:
        limit: of one client; beyond, it is not even looked at what it brings.
        seconds: for which they count, from the first on.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._clients: dict[str, tuple[float, int]] = {}
        """By client: when it is forgotten, and how often it failed."""

    def wait(self, client: str, now: float) -> float:
        """Give the seconds a client must wait; 0: it may try.

        Args:
            client: its address.
            now: seconds, on the caller's clock.
        """
        ends_at, count = self._clients.get(client, (now, 0))
        return max(0.0, ends_at - now) if count >= self._limit else 0.0

    def failed(self, client: str, now: float) -> None:
        """Count one that failed."""
        ends_at, count = self._clients.pop(client, (0.0, 0))
        if ends_at <= now:
            ends_at, count = now + self._seconds, 0
        self._clients[client] = (ends_at, count + 1)
        if len(self._clients) > MOST_CLIENTS:
            del self._clients[next(iter(self._clients))]
