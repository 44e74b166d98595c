"""Who is writing in one chat, as its platform shows it; nobody does so for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

if TYPE_CHECKING:
    from actors.deliveries import Typing
    from actors.services import Services
    from actors.transport import Transport
    from runtime.actor import Actor
    from runtime.timers import Timer

# Chosen: two that get lost make nobody stop.
MISSED = 3
"""Signs of life that fail to come until somebody counts as gone."""

MOST = 64
"""Answers of one chat that are shown being written; of more, nothing is shown."""


class TypingDue(msgspec.Struct, frozen=True):
    """A courier's note to itself: see who has stopped without a word."""


class Typists:
    """The answers that are shown as being written; the courier comes with the calls.

    Args:
        transport: who shows it.
        services: how often a sign of life comes.
    """

    __slots__ = ("_known", "_services", "_timer", "_transport")

    def __init__(self, transport: Transport, services: Services) -> None:
        self._transport = transport
        self._services = services
        self._known: dict[str, tuple[Typing, float]] = {}
        self._timer: Timer | None = None

    @property
    def _patience(self) -> float:
        return MISSED * self._services.presence.typing_every

    @property
    def is_empty(self) -> bool:
        """Whether nobody is shown writing."""
        return not self._known

    def take(self, typing: Typing, courier: Actor) -> None:
        """Show that somebody writes, or does not any more."""
        is_new = typing.reply_id not in self._known
        if typing.is_over:
            self._end(typing)
            return
        if is_new and len(self._known) >= MOST:
            return
        self._known[typing.reply_id] = (typing, trio.current_time() + self._patience)
        if is_new or self._transport.abilities.typing_for:
            self._transport.show_typing(typing)
        if self._timer is None:
            self._timer = courier.after(self._patience, TypingDue())

    def wake(self, courier: Actor) -> None:
        """Show no longer that those write of whom nothing is heard."""
        self._timer = None
        now = trio.current_time()
        for typing, until in tuple(self._known.values()):
            if until <= now:
                self._end(typing)
        if self._known:
            first = min(until for _, until in self._known.values())
            self._timer = courier.after(max(0.0, first - now), TypingDue())

    def _end(self, typing: Typing) -> None:
        if self._known.pop(typing.reply_id, None) is None:
            return
        if not self._known:
            self._known = {}  # an emptied one is three times as large
        # A platform shows who writes, and not what: of two answers one may go on.
        goes_on = any(each.agent == typing.agent for each, _ in self._known.values())
        if self._transport.abilities.ends_typing and not goes_on:
            over = msgspec.structs.replace(typing, is_over=True)
            self._transport.show_typing(over)
