"""What all apps of one workspace share."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from connectors.chat.slack.events import Ours

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.chat.bookmarks import Bookmarks
    from connectors.chat.seen import Seen
    from connectors.chat.slack.account import SlackAccount
    from connectors.chat.slack.figures import SlackFigures
    from connectors.chat.slack.people import People
    from connectors.chat.slack.rooms import Rooms
    from connectors.chat.slack.wire import Wire
    from connectors.gates import Gates
    from connectors.slack_config import SlackConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource

MOST_SAID = 2_000
"""Messages of ours that are remembered, by receipt and by delivery."""

LONGEST_QUOTE = 2_000
"""Characters of each."""


class Said:
    """What our apps said of late.

    Args:
        most: messages that are remembered.
    """

    def __init__(self, most: int = MOST_SAID) -> None:
        self._most = most
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._receipts: OrderedDict[str, str] = OrderedDict()

    def note(self, delivery_id: str, receipt: str, text: str) -> None:
        """Remember a message."""
        self._receipts[delivery_id] = receipt
        self._texts[receipt] = text[:LONGEST_QUOTE]
        for each in (self._receipts, self._texts):
            while len(each) > self._most:
                each.popitem(last=False)

    def receipt_of(self, delivery_id: str) -> str | None:
        """Give the receipt of a delivery; None: it is not known."""
        return self._receipts.get(delivery_id)

    def others(self, delivery_id: str) -> frozenset[str]:
        """Give the receipts of all deliveries but one."""
        known = self._receipts.items()
        return frozenset(receipt for each, receipt in known if each != delivery_id)

    def text_of(self, receipt: str) -> str:
        """Give what a message of ours said; empty if it is not known."""
        return self._texts.get(receipt, "")


@dataclass(frozen=True)
class Shared:
    """One workspace as this company sees it."""

    connector: str
    """The name of the connector, as in the settings."""

    config: SlackConfig
    accounts: Mapping[str, SlackAccount]
    """By agent, in the order of the settings."""

    wire: Wire
    rooms: Rooms
    people: People
    seen: Seen
    bookmarks: Bookmarks
    figures: SlackFigures
    gates: Gates
    clock: Clock
    ids: IdSource
    said: Said = field(default_factory=Said)

    def ours(self) -> Ours:
        """Give by what our own apps are known, as far as they were let in."""
        known = [each for each in self.accounts.values() if each.user]
        return Ours(
            users={each.user: each.agent for each in known},
            bots=frozenset(each.bot for each in known),
        )
