"""What all bots of one connector share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from connectors.chat.seen import Seen
    from connectors.chat.telegram.bookmarks import Bookmarks
    from connectors.chat.telegram.bot import Bot
    from connectors.chat.telegram.crowds import Crowds
    from connectors.chat.telegram.figures import TelegramFigures
    from connectors.chat.telegram.moves import Moves
    from connectors.chat.telegram.prints import Prints
    from connectors.chat.telegram.wire import User
    from connectors.gates import Gates
    from connectors.telegram_config import TelegramConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource


@dataclass(frozen=True)
class Shared:
    """The bots as this company sees them."""

    connector: str
    """The name of the connector, as in the settings."""

    config: TelegramConfig
    bots: Mapping[str, Bot]
    """By agent, in the order of the settings."""

    crowds: Crowds
    moves: Moves
    prints: Prints
    seen: Seen
    bookmarks: Bookmarks
    figures: TelegramFigures
    clock: Clock
    ids: IdSource
    gates: Gates
    """Where webhooks come in."""

    leases: Path | None
    """Where it is kept which program on this machine hears which bot."""

    def users(self) -> list[User]:
        """Say who our bots are."""
        return [bot.user for bot in self.bots.values()]

    def agent_of(self, user: int) -> str:
        """Give whose bot somebody is; empty: nobody's."""
        found = (agent for agent, bot in self.bots.items() if bot.id == user)
        return next(found, "")
