"""What all bots of one connector share: metrics, settings, and caches."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

from connectors.chat.discord.client import READY_AFTER, DiscordClient
from connectors.chat.discord.commands import CommandChoices
from connectors.chat.discord.events import MOST_EVENTS, Reason
from connectors.chat.discord.senders import ChannelMembers
from connectors.chat.inbound import SeenMessages
from connectors.chat.metrics import Family, PlatformCounters, PlatformMetrics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.asyncio_bridge.bridge import Bridge
    from connectors.chat.discord.account import DiscordAccount
    from connectors.chat.discord.bookmarks import DiscordBookmarks
    from connectors.chat.discord.platform import DiscordConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource


Outcome = (
    Reason
    | Literal[
        "edit",
        "deleted",
        "handed_in",
        "seen",
        "refused",
        "lost",
        "overrun",
        "command",
        "command_refused",
        "media_left_out",
    ]
)
"""The outcomes of events, beside the reasons to skip a payload. A message was stored
(`handed_in`), refused by the company for good (`refused`), or not storable (`lost`).
`edit`, `deleted`: of an earlier message. `seen`: another bot submitted it. `overrun`:
too many came at once, so that it is fetched later. The rest: commands, files."""

METRICS = partial(
    PlatformCounters,
    events=Family(
        "callboard_discord_events",
        "What became of what Discord sent, by account (the agent's name).",
        "outcome",
    ),
    heard=Family(
        "callboard_discord_heard_timestamp_seconds",
        "When a bot last had something from Discord for us, in Unix seconds.",
    ),
    up=Family("callboard_discord_up", "1 while a bot hears its gateway."),
    reconnects=Family(
        "callboard_discord_reconnects",
        "How often a bot heard its gateway again after trouble.",
    ),
    restarts=Family(
        "callboard_discord_restarts",
        "How often a bot's client had ended and was made anew.",
    ),
    gaps=Family(
        "callboard_discord_gaps",
        "Gaps in a channel's messages: filled, or left open.",
        "outcome",
    ),
)
"""Registers the metrics of all connectors of this platform."""


@dataclass(frozen=True)
class DiscordShared:
    """All that the bots of one connector share."""

    connector: str
    """The name of the connector, as in the settings."""

    config: DiscordConfig
    accounts: Mapping[str, DiscordAccount]
    """By agent, in the order of the settings."""

    bridge: Bridge
    bookmarks: DiscordBookmarks
    metrics: PlatformMetrics[Outcome]
    clock: Clock
    ids: IdSource
    seen: SeenMessages = field(default_factory=SeenMessages)
    members: ChannelMembers = field(default_factory=ChannelMembers)
    choices: CommandChoices = field(default_factory=CommandChoices)
    ready_after: float = READY_AFTER
    """Seconds; see there."""

    most_events: int = MOST_EVENTS
    """See there."""

    bots: dict[str, DiscordClient] = field(default_factory=dict[str, DiscordClient])
    """Those that run, by agent; touched on the edge only."""

    @property
    def ours(self) -> dict[str, str]:
        """Our agents by the ids of their bots, as far as they are known."""
        return {each.user: each.agent for each in self.accounts.values() if each.user}
