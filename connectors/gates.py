"""Who takes what chat platforms bring to the HTTP server, by connector and account.

A transport opens its gates while it listens; `web/gate_keeper.py` has the address. A
gate looks at who brings something before a byte of it is read.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

Place = tuple[str, str]
"""Connector and account."""


class Gate(Protocol):
    """Who takes what a platform brings for one account."""

    def lets_in(self, headers: Mapping[str, str]) -> bool:
        """Tell whether a request comes from the platform; fails closed.

        Called on the server's thread: looks at nothing that changes.

        Args:
            headers: by their names in small letters.
        """
        ...

    async def take(self, body: bytes) -> bool:
        """Have what came stored; in a trio task.

        Returns:
            Whether the platform may forget it.
        """
        ...


class Gates:
    """The gates that are open.

    Read on the server's thread, so that the map is replaced and never changed.
    """

    def __init__(self) -> None:
        self._open: Mapping[Place, Gate] = {}

    def find(self, place: Place) -> Gate | None:
        """Give a gate; None: there is none, or nobody is behind it now."""
        return self._open.get(place)

    @contextmanager
    def opened(self, place: Place, gate: Gate) -> Generator[None]:
        """Let in what comes to a place until the block ends."""
        self._open = {**self._open, place: gate}
        try:
            yield
        finally:
            if self._open.get(place) is gate:
                kept = {key: each for key, each in self._open.items() if key != place}
                self._open = kept
