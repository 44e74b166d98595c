"""What all numbers of one connector share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from actors.rules.recent import Recent
from connectors.chat.whatsapp.errands import Errands
from connectors.chat.whatsapp.said import Said
from connectors.chat.whatsapp.windows import Windows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.chat.whatsapp.figures import WhatsAppFigures
    from connectors.chat.whatsapp.number import Number
    from connectors.whatsapp_config import WhatsAppConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource

MOST_CHATS = 20_000
"""Chats whose newest message is remembered."""


@dataclass(frozen=True)
class Shared:
    """One connector as this company sees it."""

    connector: str
    """Its name, as in the settings."""

    config: WhatsAppConfig
    numbers: Mapping[str, Number]
    """By Meta's id."""

    figures: WhatsAppFigures
    clock: Clock
    ids: IdSource
    windows: Windows = field(default_factory=Windows)
    said: Said = field(default_factory=Said)
    errands: Errands = field(default_factory=Errands)
    newest: Recent[str, str] = field(
        default_factory=lambda: Recent[str, str](MOST_CHATS)
    )
    """By chat: the id of the person's newest message."""

    def agent_of(self, number: str) -> str:
        """Give whose number it is; `(unknown)` for one of nobody's."""
        found = self.numbers.get(number)
        return "(unknown)" if found is None else found.agent

    def present(self, chat: str) -> tuple[str, ...]:
        """Give the agents of a chat: who has the number."""
        number, _, _ = chat.partition(":")
        return (self.numbers[number].agent,)
