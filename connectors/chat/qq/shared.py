"""What all bots of one connector share: metrics, settings, and what may be answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from actors.rules.text.limits import RecentMap
from connectors.chat.metrics import Family, PlatformCounters, PlatformMetrics
from connectors.chat.qq.events import LONGEST_QUOTE, PlaceKind, QQPlace, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from actors.messages.inbound import Quoted
    from connectors.chat.bookmarks import Bookmarks
    from connectors.chat.qq.api import QQAccount
    from connectors.chat.qq.platform import QQConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource


class AnswerRule(NamedTuple):
    """How a message may be answered."""

    seconds: float
    most: int
    """Answers; more go to another message."""


# Source: "发送消息": 60 minutes for people, else 5; 5 answers, in channels any number.
MOST_ANSWERS = 5
RULES: dict[PlaceKind, AnswerRule] = {
    "user": AnswerRule(3600.0, MOST_ANSWERS),
    "group": AnswerRule(300.0, MOST_ANSWERS),
    "channel": AnswerRule(300.0, 1_000),
    "dm": AnswerRule(300.0, 1_000),
}

# Chosen: chats of a day, and what one writes in an hour.
MOST_CHATS = 20_000
MOST_MESSAGES = 20
MOST_DELIVERIES = 5_000


class Answerable(msgspec.Struct):
    """A message that may be answered."""

    at: float
    """Unix seconds."""

    left: int
    """Answers that it still takes."""


class QQWindows:
    """Which messages of which chats may still be answered, and how often."""

    def __init__(self) -> None:
        self._chats: RecentMap[str, dict[str, Answerable]] = RecentMap(MOST_CHATS)
        self._chosen: RecentMap[str, str] = RecentMap(MOST_DELIVERIES)
        """By delivery: the message that it was sent as an answer to."""

    def heard(self, place: QQPlace, message: str, at: float) -> None:
        """Note that somebody wrote; a message that comes twice changes nothing."""
        known = self._chats.get(place.chat, {})
        known.setdefault(message, Answerable(at, RULES[place.kind].most))
        while len(known) > MOST_MESSAGES:
            del known[next(iter(known))]
        self._chats[place.chat] = known

    def choose(self, place: QQPlace, delivery: str, reply_to: str, now: float) -> str:
        """Return which message a delivery answers; empty: none can be answered.

        The same one at each try: QQ leaves out what answers it twice.

        Args:
            place: where it is said.
            delivery: its id.
            reply_to: the message that it is meant for; one that nobody knows here, as
                after a restart, is taken for answerable.
            now: Unix seconds.
        """
        before = self._chosen.get(delivery, "")
        if before:
            return before
        known = self._chats.get(place.chat, {})
        newest = (reply_to, *reversed(known)) if reply_to else tuple(reversed(known))
        for message in newest:
            found = known.get(message)
            if found is None:
                found = known[message] = Answerable(now, RULES[place.kind].most)
                self._chats[place.chat] = known
            if found.left > 0 and now - found.at < RULES[place.kind].seconds:
                found.left -= 1
                self._chosen[delivery] = message
                return message
        return ""

    def newest(self, chat: str) -> str:
        """Return the newest message of a chat; empty: nobody knows of any."""
        return next(reversed(self._chats.get(chat, {})), "")

    def refused(self, place: QQPlace, delivery: str, message: str) -> None:
        """Note that QQ takes no answers to a message (any more)."""
        self._chosen.pop(delivery, None)
        found = self._chats.get(place.chat, {}).get(message)
        if found is not None:
            found.left = 0


MOST_QUOTES = 5_000


class QQQuotes:
    """What recent messages say, for replies, which name them by id or by index."""

    def __init__(self) -> None:
        self._said: RecentMap[tuple[str, str], tuple[str, Quoted]] = RecentMap(
            MOST_QUOTES
        )

    def learn(self, place: QQPlace, names: tuple[str, str], quoted: Quoted) -> None:
        """Remember a message."""
        short = msgspec.structs.replace(quoted, text=quoted.text[:LONGEST_QUOTE])
        for name in filter(None, names):
            self._said[place.chat, name] = names[0], short

    def find(self, place: QQPlace, name: str) -> tuple[str, Quoted] | None:
        """Return a message's id, and what it says; None: nobody knows."""
        return self._said.get((place.chat, name))


Outcome = (
    Reason
    | Literal[
        "handed_in",
        "refused",
        "lost",
        "media_left_out",
        "window_closed",
        "addresses_left_out",
    ]
)
"""The outcomes of events, beside the reasons to skip one. A message was stored
(`handed_in`), refused by the company for good (`refused`), or not storable (`lost`).
`window_closed`: a message of ours found none that may be answered.
`addresses_left_out`: QQ took one only without its web addresses."""

METRICS = partial(
    PlatformCounters,
    events=Family(
        "callboard_qq_events",
        "What became of what QQ sent, by account (the agent's name).",
        "outcome",
    ),
    heard=Family(
        "callboard_qq_heard_timestamp_seconds",
        "When a bot last had something from QQ for us, in Unix seconds.",
    ),
    up=Family("callboard_qq_up", "1 while a bot hears its gateway."),
    reconnects=Family(
        "callboard_qq_reconnects",
        "How often a bot heard its gateway again after trouble.",
    ),
    gaps=Family(
        "callboard_qq_gaps",
        "Times without a connection: filled by QQ, or left open.",
        "outcome",
    ),
)
"""Registers the metrics of all connectors of this platform."""


@dataclass(frozen=True)
class QQShared:
    """All that the bots of one connector share."""

    connector: str
    """Its name, as in the settings."""

    config: QQConfig
    accounts: Mapping[str, QQAccount]
    """By agent, in the order of the settings."""

    bookmarks: Bookmarks
    metrics: PlatformMetrics[Outcome]
    clock: Clock
    ids: IdSource
    network: httpx.AsyncBaseTransport | None = None
    windows: QQWindows = field(default_factory=QQWindows)
    quotes: QQQuotes = field(default_factory=QQQuotes)
