"""How many requests one client may make in a while; pure: told the time.

The windows are fixed: the first request begins one, as in the official server. Whoever
is not remembered any more begins anew, so that strangers fill no memory.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

MOST_CLIENTS = 10_000
"""Clients remembered; beyond, the one that began first is forgotten."""


@dataclass
class Spent:
    """What one client has used of its window."""

    ends_at: float
    """Seconds, on the caller's clock."""

    count: int = 0


class Rate:
    """A limit on the requests of each client.

    Args:
        limit: most of them in a window; 0: any number.
        seconds: length of the window.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self.limit = limit
        self._seconds = seconds
        self._clients: OrderedDict[str, Spent] = OrderedDict()

    def count(self, client: str, now: float) -> Spent:
        """Count one request; the answer says how many there were."""
        spent = self._clients.get(client)
        if spent is None or spent.ends_at <= now:
            self._clients.pop(client, None)
            spent = self._clients[client] = Spent(now + self._seconds)
            if len(self._clients) > MOST_CLIENTS:
                self._clients.popitem(last=False)
        spent.count += 1
        return spent

    def is_over(self, spent: Spent) -> bool:
        """Whether a client has asked once too often."""
        return 0 < self.limit < spent.count

    def headers(self, spent: Spent, now: float) -> dict[str, str]:
        """Say it as the draft standard does (`RateLimit-*`)."""
        if not self.limit:
            return {}
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(max(0, self.limit - spent.count)),
            "RateLimit-Reset": str(max(0, math.ceil(spent.ends_at - now))),
            "RateLimit-Policy": f"{self.limit};w={self._seconds:.0f}",
        }
