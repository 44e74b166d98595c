"""What a session knows of its past: lines for the model, and what was answered.

Pure. Rebuilt from the session's journal stream, event by event.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.messages import Inbound, Line

# Chosen: answered messages remembered, to tell one that is handed in once more while
# its answer is being stored; that is a matter of seconds.
REMEMBERED = 64


class History:
    """The past of one session, as far as its journal goes.

    Args:
        max_history: most lines of it that a prompt holds.
    """

    __slots__ = ("_answered", "_most", "lines", "version")

    def __init__(self, max_history: int) -> None:
        # Why twice: the prompt's rules cut by whole turns and merge lines.
        self._most = 2 * max_history + 2
        self._answered: deque[str] = deque(maxlen=REMEMBERED)
        self.lines: tuple[Line, ...] = ()
        """Newest last; no more than a prompt could ever hold."""

        self.version = 0
        """Number of the journal's last event."""

    def add(self, sequence: int, inbound_id: str, lines: tuple[Line, ...]) -> None:
        """Take up one event; one that was taken up before changes nothing."""
        if sequence > self.version:
            self.version = sequence
            self.lines = (*self.lines, *lines)[-self._most :]
            self._answered.append(inbound_id)

    def note_answered(self, inbound_id: str) -> None:
        """Take up that a message was answered without an event."""
        self._answered.append(inbound_id)

    def has_answered(self, inbound_id: str) -> bool:
        """Whether this message was answered, as far as that is remembered."""
        return inbound_id in self._answered

    def brought(self, inbound: Inbound) -> tuple[Line, ...]:
        """Lines that a stateless client brought along, if this is the beginning."""
        return inbound.history if self.version == 0 else ()
