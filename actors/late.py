"""What comes new in chats of which something is to be taken up soon."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.protocol import StopCaused
    from actors.unheard import Unheard
    from runtime.rows import StoredMessage

    Left = StoredMessage | Unheard | StopCaused
    """What the router hands out again, in the order of its chat."""


class Late:
    """Messages, and what stops some, that wait for what was left before them.

    All of it came within the second until the router hands out what was left, and each
    message stands in the store, where it is found with the others.
    """

    def __init__(self) -> None:
        self._unheard: dict[str, Unheard] = {}
        self._stops: dict[str, list[StopCaused]] = {}
        """By the message that each came behind."""

        self._newest: dict[str, str] = {}
        """By chat: the id of its newest message."""

    def __contains__(self, chat: str) -> bool:
        """Tell whether something of a chat waits."""
        return chat in self._newest

    @property
    def chats(self) -> Iterable[str]:
        """Those in which something waits, in the order of writing."""
        return self._newest

    def add(self, chat: str, unheard: Unheard) -> None:
        """Let a message wait."""
        self._unheard[unheard.inbound.id] = unheard
        self._newest[chat] = unheard.inbound.id

    def stop(self, chat: str, stop: StopCaused) -> None:
        """Have it stop also what waits in its chat now."""
        if chat in self._newest:
            self._stops.setdefault(self._newest[chat], []).append(stop)

    def put_in(self, row: StoredMessage) -> tuple[Left, ...]:
        """Give a row that was found, as it came in, and what came behind it."""
        return (self._unheard.get(row.id, row), *self._stops.get(row.id, ()))
