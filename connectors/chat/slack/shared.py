"""What all apps of one workspace share: metrics, settings, and caches."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import trio

from actors.messages.inbound import Quoted
from actors.rules.text.limits import RecentMap
from connectors.chat.metrics import Family, PlatformCounters, PlatformMetrics
from connectors.chat.slack.events import Ours, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.chat.bookmarks import Bookmarks
    from connectors.chat.gates import Gates
    from connectors.chat.inbound import SeenMessages
    from connectors.chat.slack.account import SlackAccount
    from connectors.chat.slack.api import SlackWire
    from connectors.chat.slack.inbound import SlackPeople
    from connectors.chat.slack.platform import SlackConfig
    from connectors.chat.slack.senders import SlackChannels
    from runtime.clock import Clock
    from runtime.ids import IdSource

MOST_SAID = 2_000
"""Messages of ours that are remembered, by receipt and by delivery."""

MOST_COMMANDS = 1_000
"""Slash commands of which is remembered where they may be answered."""

LONGEST_QUOTE = 2_000
"""Characters of each."""


class SlackSent:
    """Messages that our apps sent recently."""

    def __init__(self, most: int = MOST_SAID) -> None:
        self._most = most
        self._said: OrderedDict[str, Quoted] = OrderedDict()
        self._receipts: OrderedDict[str, str] = OrderedDict()

    def note(self, delivery_id: str, receipt: str, text: str, agent: str) -> None:
        """Remember a message that an agent's app sent."""
        self._receipts[delivery_id] = receipt
        self._said[receipt] = Quoted(text[:LONGEST_QUOTE], agent=agent)
        for each in (self._receipts, self._said):
            while len(each) > self._most:
                each.popitem(last=False)

    def receipt_of(self, delivery_id: str) -> str | None:
        """Return the receipt of a delivery; None: it is not known."""
        return self._receipts.get(delivery_id)

    def others(self, delivery_id: str) -> frozenset[str]:
        """Return the receipts of all deliveries but one."""
        known = self._receipts.items()
        return frozenset(receipt for each, receipt in known if each != delivery_id)

    def quote(self, receipt: str) -> Quoted | None:
        """Return what a message of ours said; None: it is none, or is forgotten."""
        return self._said.get(receipt)


Outcome = (
    Reason
    | Literal[
        "handed_in",
        "seen",
        "refused",
        "lost",
        "overflow",
        "gone",
        "media_left_out",
    ]
)
"""The outcomes of events, beside the reasons to skip one. A message was stored
(`handed_in`), refused by the company for good (`refused`), or not storable (`lost`).
`seen`: another app submitted it, or it came again. `overflow`: too many waited, and
Slack sends it again. `gone`: not even the channel's history has it any more. The HTTP
server counts calls with a wrong signature."""

SETTLED_WITHIN = 10.0
"""Seconds that an app waits for the others before it hears anything."""

METRICS = partial(
    PlatformCounters,
    events=Family(
        "callboard_slack_events",
        "What became of what Slack sent, by account (the agent's name).",
        "outcome",
    ),
    heard=Family(
        "callboard_slack_heard_timestamp_seconds",
        "When an app last heard from Slack, in Unix seconds.",
    ),
    up=Family("callboard_slack_up", "1 while an app can hear Slack."),
    reconnects=Family(
        "callboard_slack_reconnects",
        "Connections after the first: asked for by Slack, or after trouble.",
        "why",
    ),
    gaps=Family(
        "callboard_slack_gaps",
        "Gaps in a channel's messages: filled, or left open.",
        "outcome",
    ),
)
"""Registers the metrics of all connectors of this platform."""


@dataclass(frozen=True)
class SlackShared:
    """All that the apps in one workspace share."""

    connector: str
    """The name of the connector, as in the settings."""

    config: SlackConfig
    accounts: Mapping[str, SlackAccount]
    """By agent, in the order of the settings."""

    wire: SlackWire
    rooms: SlackChannels
    people: SlackPeople
    seen: SeenMessages
    bookmarks: Bookmarks
    metrics: PlatformMetrics[Outcome]
    gates: Gates
    clock: Clock
    ids: IdSource
    said: SlackSent = field(default_factory=SlackSent)
    response_urls: RecentMap[str, str] = field(
        default_factory=lambda: RecentMap[str, str](MOST_COMMANDS)
    )
    """By a slash command's id: where it may be answered. Forgotten at a stop; it is
    then answered in the channel."""

    def ours(self) -> Ours:
        """Return by what our own apps are known, as far as they were let in."""
        known = [each for each in self.accounts.values() if each.user]
        return Ours(
            users={each.user: each.agent for each in known},
            bots=frozenset(each.bot for each in known),
        )

    async def wait_all_introduced(self) -> None:
        """Wait a while until all apps have asked who they are.

        What they say themselves is no message.
        """
        with trio.move_on_after(SETTLED_WITHIN):
            for each in self.accounts.values():
                await each.introduced.wait()

    async def wait_all_placed(self) -> None:
        """Wait a while until all apps have asked in which channels they are.

        Who of those that a message calls is there decides who is asked.
        """
        with trio.move_on_after(SETTLED_WITHIN):
            for each in self.accounts.values():
                await each.placed.wait()
