"""What all bots of one connector share: metrics, settings, and caches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from connectors.chat.metrics import Family, PlatformCounters, PlatformMetrics
from connectors.chat.telegram.events import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from connectors.chat.gates import Gates
    from connectors.chat.inbound import SeenMessages
    from connectors.chat.telegram.account import TelegramAccount
    from connectors.chat.telegram.groups import (
        GroupMembers,
        GroupMoves,
        MessageNumbers,
        TelegramBookmarks,
    )
    from connectors.chat.telegram.platform import TelegramConfig
    from connectors.chat.telegram.types import User
    from runtime.clock import Clock
    from runtime.ids import IdSource


Outcome = (
    Reason
    | Literal[
        "handed_in",
        "seen",
        "refused",
        "lost",
        "later",
        "button",
        "unknown_button",
        "moved",
        "membership",
        "media_left_out",
    ]
)
"""The outcomes of updates, beside the reasons to skip one. A message was stored
(`handed_in`), refused by the company for good (`refused`), or not storable (`lost`).
`seen`: another bot submitted it. `later`: the webhook is to bring it again. The rest is
about buttons, groups and files."""

METRICS = partial(
    PlatformCounters,
    events=Family(
        "callboard_telegram_updates",
        "What became of what Telegram sent, by account (the agent's name).",
        "outcome",
    ),
    heard=Family(
        "callboard_telegram_polled_timestamp_seconds",
        "When a bot last heard from Telegram, in Unix seconds.",
    ),
    up=Family("callboard_telegram_up", "1 while a bot hears Telegram."),
    reconnects=Family(
        "callboard_telegram_reconnects",
        "How often a bot heard from Telegram again after trouble.",
    ),
    conflicts=Family(
        "callboard_telegram_conflicts",
        "How often another program asked for a bot's messages.",
    ),
    plain=Family(
        "callboard_telegram_plain",
        "Messages whose markup Telegram refused: said again as plain text.",
    ),
)
"""Registers the metrics of all connectors of this platform."""


@dataclass(frozen=True)
class TelegramShared:
    """All that the bots of one connector share."""

    connector: str
    """The name of the connector, as in the settings."""

    config: TelegramConfig
    bots: Mapping[str, TelegramAccount]
    """By agent, in the order of the settings."""

    members: GroupMembers
    moves: GroupMoves
    numbers: MessageNumbers
    seen: SeenMessages
    bookmarks: TelegramBookmarks
    metrics: PlatformMetrics[Outcome]
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
        """Return whose bot somebody is; empty: nobody's."""
        found = (agent for agent, bot in self.bots.items() if bot.id == user)
        return next(found, "")
