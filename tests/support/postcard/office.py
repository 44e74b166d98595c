"""The platform's other end: an office that keeps what people and agents write."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import trio


@dataclass(frozen=True)
class Card:
    """One postcard from a person."""

    id: str
    sender: str
    text: str


@dataclass
class Office:
    """One office."""

    is_open: bool = True
    """Whether it takes cards of ours."""

    waiting: deque[Card] = field(default_factory=deque[Card])
    """What people wrote and nobody has fetched for good."""

    stamped: list[str] = field(default_factory=list[str])
    """Ids of the cards that were fetched for good."""

    sent: dict[str, str] = field(default_factory=dict[str, str])
    """What agents wrote, by its key: what comes twice stands there once."""

    files: list[bytes] = field(default_factory=list[bytes])
    _changed: trio.Event = field(default_factory=trio.Event)

    def write(self, text: str, key: str = "", sender: str = "zoe") -> None:
        """Have a person write."""
        number = len(self.waiting) + len(self.stamped)
        self.waiting.append(Card(key or f"card-{number}", sender, text))
        self.note_change()

    def note_change(self) -> None:
        """Wake all who wait."""
        self._changed.set()
        self._changed = trio.Event()

    async def wait_change(self) -> None:
        """Wait until something comes or goes."""
        await self._changed.wait()


OFFICES: dict[str, Office] = {}
"""By the name in the settings."""
