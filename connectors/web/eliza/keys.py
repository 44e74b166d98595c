"""Access: API keys with their scopes and channels, and rate limits; pure.

Rate limits have fixed windows, as in the official server: a client's first request
begins one. The number of clients is bounded, so that strangers cannot fill the memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from actors.rules.text.globs import Globs, globs
from actors.rules.text.limits import RecentMap
from connectors.web.eliza.messages import ElizaChannel, forbidden
from connectors.web.eliza.platform import Scope, WebConfig
from connectors.web.server import ApiError
from runtime.secret import Secret

EVERYTHING: frozenset[Scope] = frozenset({"read", "write", "manage", "act", "operate"})


class ApiCaller(msgspec.Struct, frozen=True):
    """The holder of a key, or anybody where no key is needed."""

    name: str
    """The key's name in the settings; empty: the key that may do everything."""

    scopes: frozenset[Scope] = EVERYTHING
    entity: str = ""
    """The only id it may speak for; empty: any."""

    channels: Globs = globs(("*",))
    address: str = ""
    """Where it calls from; see `caller_at`."""

    traceparent: str = ""
    """Of its request, as in `Inbound`."""

    @property
    def sharer(self) -> str:
        """As whom it shares places with others, see `Inbound.caller`.

        By its key; a key without a name may be everybody's, so by its address then.
        """
        return f"key {self.name}" if self.name else self.address

    def may_enter(self, channel: ElizaChannel) -> bool:
        """Whether it may see a channel."""
        is_in = not self.entity or self.entity in channel.participants
        return is_in and bool(self.channels.fit(channel.id))

    @property
    def sees_all(self) -> bool:
        """Whether it may see all channels."""
        return not self.entity and any(way == "*" for way, _ in self.channels.patterns)

    def may_know(self, entity: str) -> bool:
        """Whether it may see what somebody told in private, in any channel."""
        return self.entity == entity if self.entity else self.sees_all

    def need(self, scope: Scope) -> None:
        """Check that it has a scope.

        Raises:
            ApiError: 403.
        """
        if scope not in self.scopes:
            raise forbidden(f"this key lacks the scope {scope!r}; use another key")

    def speaker(self, claimed: str) -> str:
        """Give the id it speaks for.

        Args:
            claimed: the id in the request; empty: none.

        Raises:
            ApiError: 403: it may not speak for them.
        """
        if not self.entity or "act" in self.scopes:
            return claimed or self.entity
        if claimed and claimed != self.entity:
            raise forbidden(f"this key speaks for {self.entity} and for nobody else")
        return self.entity


NOBODY = ApiCaller("", frozenset())
"""A caller without a key, on a route that needs none."""


class Keys:
    """The keys of one connector."""

    def __init__(self, config: WebConfig) -> None:
        self._keys: list[tuple[Secret, ApiCaller]] = []
        if config.api_key is not None:
            self._keys.append((config.api_key, ApiCaller("")))
        for name, each in config.keys.items():
            caller = ApiCaller(
                name,
                frozenset(each.scopes),
                each.entity.lower(),
                globs(each.channels),
            )
            self._keys.append((each.key, caller))

    @property
    def are_needed(self) -> bool:
        """Whether requests need a key."""
        return bool(self._keys)

    def caller(self, offered: str) -> ApiCaller | None:
        """Give the caller with this key; None: it is unknown.

        All keys are compared, so that the duration reveals nothing.
        """
        found = [caller for key, caller in self._keys if key.matches(offered)]
        if found:
            return found[0]
        return None if self.are_needed else ApiCaller("")


def offered_key(headers: Iterable[tuple[str, str]]) -> str:
    """Find the key among the headers: `X-API-KEY`, or a bearer token."""
    found = ""
    for name, value in headers:
        if name.lower() == "x-api-key":
            return value.strip()
        scheme, _, token = value.partition(" ")
        if name.lower() == "authorization" and scheme.lower() == "bearer":
            found = token.strip()
    return found


def not_let_in() -> ApiError:
    """Make the error for a missing or wrong key."""
    text = "API key required: send the header X-API-KEY with a key of this server"
    return ApiError(401, text, code="invalid_api_key")


MOST_CLIENTS = 10_000
"""Clients remembered; of more, the one with the oldest window is dropped."""


@dataclass
class RateWindow:
    """The requests of one client in its current window."""

    ends_at: float
    """Seconds, on the caller's clock."""

    count: int = 0


class RateLimit:
    """A limit on the requests of each client.

    Args:
        limit: requests allowed in a window; 0: any number.
        seconds: the length of a window.
    """

    def __init__(self, limit: int, seconds: float) -> None:
        self.limit = limit
        self._seconds = seconds
        self._clients: RecentMap[str, RateWindow] = RecentMap(MOST_CLIENTS)

    def count(self, client: str, now: float) -> RateWindow:
        """Count a request, and give the client's window."""
        spent = self._clients.get(client)
        if spent is None or spent.ends_at <= now:
            spent = self._clients[client] = RateWindow(now + self._seconds)
        spent.count += 1
        return spent

    def is_over(self, spent: RateWindow) -> bool:
        """Whether a client has exceeded the limit."""
        return 0 < self.limit < spent.count

    def headers(self, spent: RateWindow, now: float) -> dict[str, str]:
        """Give the headers of the draft standard (`RateLimit-*`)."""
        if not self.limit:
            return {}
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(max(0, self.limit - spent.count)),
            "RateLimit-Reset": str(max(0, math.ceil(spent.ends_at - now))),
            "RateLimit-Policy": f"{self.limit};w={self._seconds:.0f}",
        }
