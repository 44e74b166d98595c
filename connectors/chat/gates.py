"""Gates: who takes the HTTP calls of chat platforms, by connector and account.

A transport opens its gates while it listens; `connectors/web/platform_webhooks.py` has
the address. A gate looks at who brings something before a byte of it is read, or before
it is taken.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

import msgspec

Place = tuple[str, str]
"""Connector and account; no account: the platform has one address for all of them."""


class TokenGate(Protocol):
    """Takes the calls for one account; a secret header shows that they are genuine."""

    def lets_in(self, headers: Mapping[str, str]) -> bool:
        """Return whether a request comes from the platform; fails closed.

        Called on the server's thread: looks at nothing that changes.

        Args:
            headers: by their names in small letters.
        """
        ...

    async def take(self, body: bytes) -> bool:
        """Store the messages of a call; in a trio task.

        Returns:
            Whether the platform may forget it.
        """
        ...


class PlatformCall(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request of a platform, as it came."""

    method: str = "POST"
    """`GET` only where the gate's `Terms` say so."""

    query: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """What stands behind the `?`, without what came twice."""

    headers: Mapping[str, str]
    """By their names in small letters; none that came twice, so that nobody who adds
    one decides anything by it."""

    body: bytes = b""
    """Every byte, as signatures are over them."""


class PlatformAnswer(msgspec.Struct, frozen=True):
    """The HTTP answer to a platform."""

    status: int
    """With 401 and 503 the server says the rest."""

    body: bytes = b""
    media_type: str = "application/json"

    retry_after: float | None = None
    """Seconds after which it is to be brought again, with 503."""

    refused: str = ""
    """Why somebody was not let in, in one bounded word: put on record."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests the server may read for a gate."""

    methods: tuple[str, ...] = ("POST",)
    media_types: tuple[str, ...] = ("application/json",)

    most_bytes: int | None = None
    """Longest body; None: what the server reads of anybody's."""


@runtime_checkable
class SignedGate(Protocol):
    """A gate whose platform signs the body and reads the answer."""

    @property
    def terms(self) -> Terms:
        """What is read for it; constant for its life."""
        ...

    def lets_in(self, headers: Mapping[str, str]) -> bool:
        """Return whether a body is to be read at all; as `TokenGate.lets_in`."""
        ...

    def check(self, call: PlatformCall) -> PlatformAnswer | None:
        """Let a request in, or answer it at once: 401 if it is not the platform's.

        Called on threads of the server's, so that strangers cost the actors nothing:
        looks at nothing that changes. Fails closed.

        Returns:
            None: it comes from the platform, and goes on to `answer`.
        """
        ...

    async def answer(self, call: PlatformCall) -> PlatformAnswer:
        """Store the messages of a call; in a trio task."""
        ...


AnyGate = TokenGate | SignedGate


class Gates:
    """All open gates.

    Read on the server's thread, so that the map is replaced and never changed.
    """

    def __init__(self) -> None:
        self._open: Mapping[Place, AnyGate] = {}

    def find(self, place: Place) -> AnyGate | None:
        """Return a gate; None: there is none, or nobody is behind it now."""
        return self._open.get(place)

    @contextmanager
    def opened(self, place: Place, gate: AnyGate) -> Generator[None]:
        """Open a gate until the block ends."""
        self._open = {**self._open, place: gate}
        try:
            yield
        finally:
            if self._open.get(place) is gate:
                kept = {key: each for key, each in self._open.items() if key != place}
                self._open = kept
