"""What all bots of one connector share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from connectors.chat.discord.bot import READY_AFTER, Bot
from connectors.chat.discord.choices import Choices
from connectors.chat.discord.homes import Homes
from connectors.chat.discord.intake import MOST_EVENTS
from connectors.chat.seen import Seen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.bridge import Bridge
    from connectors.chat.discord.account import DiscordAccount
    from connectors.chat.discord.bookmarks import Bookmarks
    from connectors.chat.discord.figures import DiscordFigures
    from connectors.discord_config import DiscordConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource


@dataclass(frozen=True)
class Shared:
    """Discord as this company sees it."""

    connector: str
    """The name of the connector, as in the settings."""

    config: DiscordConfig
    accounts: Mapping[str, DiscordAccount]
    """By agent, in the order of the settings."""

    bridge: Bridge
    bookmarks: Bookmarks
    figures: DiscordFigures
    clock: Clock
    ids: IdSource
    seen: Seen = field(default_factory=Seen)
    homes: Homes = field(default_factory=Homes)
    choices: Choices = field(default_factory=Choices)
    ready_after: float = READY_AFTER
    """Seconds; see there."""

    most_events: int = MOST_EVENTS
    """See there."""

    bots: dict[str, Bot] = field(default_factory=dict[str, Bot])
    """Those that run, by agent; touched on the edge only."""

    @property
    def ours(self) -> dict[str, str]:
        """Our agents by the ids of their bots, as far as they are known."""
        return {each.user: each.agent for each in self.accounts.values() if each.user}
