"""What all numbers of one connector share: metrics, settings, and caches."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import trio

from actors.messages.inbound import Quoted
from actors.rules.text.limits import RecentMap
from connectors.chat.errors import PlatformError
from connectors.chat.metrics import Family, PlatformCounters, PlatformMetrics
from connectors.chat.whatsapp.events import Reason
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from connectors.chat.whatsapp.account import WhatsAppAccount
    from connectors.chat.whatsapp.platform import WhatsAppConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource

LOG = EventLog("whatsapp")

# Chosen: a burst of a thousand messages has its ticks; at 0.2 s each, 4 at a time keep
# up with 20 messages a second.
MOST_WAITING = 1_000
WORKERS = 4

TIMEOUT = 10.0
"""Seconds one may take; later, it would be wrong."""

BackgroundTask = tuple[str, "Callable[[], Awaitable[object]]"]


class BackgroundTasks:
    """Small requests that run in the background; nobody waits for them."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[BackgroundTask](
            MOST_WAITING
        )

    def add(self, what: str, run: Callable[[], Awaitable[object]]) -> bool:
        """Have something done soon; False: there is no room for it.

        Args:
            what: is told should it fail.
            run: does it; may raise a `PlatformError`.
        """
        try:
            self._send.send_nowait((what, run))
        except trio.WouldBlock:
            return False
        return True

    async def run(self) -> None:
        """Do what comes until cancelled."""
        async with trio.open_nursery() as nursery:
            for _ in range(WORKERS):
                nursery.start_soon(self._work)

    async def _work(self) -> None:
        while True:
            what, run = await self._receive.receive()
            with trio.move_on_after(TIMEOUT) as scope:
                try:
                    await run()
                except PlatformError as error:
                    LOG.warning("not done", what=what, why=str(error))
            if scope.cancelled_caught:
                LOG.warning("not done", what=what, why="it took too long")


# Chosen: an hour of answers of a busy number.
MOST = 5_000

LONGEST_QUOTE = 2_000
"""Characters of a message that somebody may reply to."""


class WhatsAppSent:
    """Our own messages by marker, and the text of all recent messages by id."""

    def __init__(self, most: int = MOST) -> None:
        self._sent: RecentMap[str, str] = RecentMap(most)
        self._chats: RecentMap[str, str] = RecentMap(most)
        self._quotes: RecentMap[tuple[str, str], Quoted] = RecentMap(most)
        self._awaited: dict[str, trio.Event] = {}

    def find(self, marker: str) -> str:
        """Return the id of a message of ours; empty: nobody knows of it."""
        return self._sent.get(marker, "")

    def intend(self, marker: str, chat: str) -> None:
        """Note where a message is about to be said."""
        self._chats[marker] = chat

    def chat_of(self, marker: str) -> str:
        """Return the chat of a message of ours; empty: nobody knows."""
        return self._chats.get(marker, "")

    def note(self, marker: str, message_id: str) -> None:
        """Note that WhatsApp has a message of ours."""
        self._sent[marker] = message_id
        awaited = self._awaited.get(marker)
        if awaited is not None:
            awaited.set()

    async def wait(self, marker: str, seconds: float) -> str:
        """Wait for a sign that WhatsApp has a message; empty: none came in time."""
        awaited = self._awaited.setdefault(marker, trio.Event())
        try:
            with trio.move_on_after(seconds):
                if not self.find(marker):
                    await awaited.wait()
        finally:
            self._awaited.pop(marker, None)
        return self.find(marker)

    def learn(
        self, chat: str, message_id: str, text: str, name: str = "", agent: str = ""
    ) -> None:
        """Remember a message's words, for who replies to it."""
        quoted = Quoted(text=text[:LONGEST_QUOTE], sender_name=name, agent=agent)
        self._quotes[chat, message_id] = quoted

    def quote(self, chat: str, message_id: str) -> Quoted | None:
        """Return what a message of a chat says; None: nobody knows.

        Why the chat: what somebody replies to is for their phone to say, and another's
        may say anything.
        """
        return self._quotes.get((chat, message_id))


OPEN_FOR = 86_400.0
"""Seconds."""

# Chosen: people of a day; who is forgotten is simply asked about.
MOST_CHATS = 20_000
"""Chats whose newest message, and its time, are remembered."""

CLOSED = float("-inf")


class ReplyWindows:
    """The time of each person's last message: they may be answered for 24 hours."""

    def __init__(self, most: int = MOST_CHATS) -> None:
        self._heard: RecentMap[str, float] = RecentMap(most)

    def heard(self, chat: str, at: float) -> None:
        """Note that somebody wrote.

        Args:
            chat: whose chat.
            at: Unix seconds, as WhatsApp says; an older one than is known changes
                nothing.
        """
        self._heard[chat] = max(at, self._heard.get(chat, CLOSED))

    def refused(self, chat: str) -> None:
        """Note that WhatsApp says the window is closed."""
        self._heard[chat] = CLOSED

    def is_closed(self, chat: str, now: float) -> bool:
        """Return whether the window is surely closed at `now` (Unix seconds)."""
        return now - self._heard.get(chat, now) >= OPEN_FOR


Outcome = (
    Reason
    | Literal[
        "handed_in",
        "seen",
        "refused",
        "lost",
        "waits",
        "media_left_out",
        "errand_left_out",
        "window_closed",
        "template",
    ]
)
"""The outcomes of messages, beside the reasons to skip one. A message was stored
(`handed_in`), refused by the company for good (`refused`), not storable (`lost`), or
waits for the store (`waits`). `seen`: it came before. `errand_left_out`: no room for a
tick, typing or a notice. `window_closed`: a message of ours came after the 24 hours.
`template`: it, or its beginning, went as a template."""

METRICS = partial(
    PlatformCounters,
    events=Family(
        "callboard_whatsapp_events",
        "What became of what WhatsApp sent, by account (the agent's name).",
        "outcome",
    ),
    statuses=Family(
        "callboard_whatsapp_statuses",
        "What WhatsApp said of our messages: sent, delivered, read, failed.",
        "status",
    ),
    heard=Family(
        "callboard_whatsapp_heard_timestamp_seconds",
        "When WhatsApp last called for an account, in Unix seconds.",
    ),
    up=Family("callboard_whatsapp_up", "1 while an account's token is taken."),
)
"""Registers the metrics of all connectors of this platform."""


@dataclass(frozen=True)
class WhatsAppShared:
    """All that the numbers of one connector share."""

    connector: str
    """Its name, as in the settings."""

    config: WhatsAppConfig
    numbers: Mapping[str, WhatsAppAccount]
    """By Meta's id."""

    metrics: PlatformMetrics[Outcome]
    clock: Clock
    ids: IdSource
    windows: ReplyWindows = field(default_factory=ReplyWindows)
    said: WhatsAppSent = field(default_factory=WhatsAppSent)
    tasks: BackgroundTasks = field(default_factory=BackgroundTasks)
    newest: RecentMap[str, str] = field(
        default_factory=lambda: RecentMap[str, str](MOST_CHATS)
    )
    """By chat: the id of the person's newest message."""

    def agent_of(self, number: str) -> str:
        """Return whose number it is; `(unknown)` for one of nobody's."""
        found = self.numbers.get(number)
        return "(unknown)" if found is None else found.agent

    def present(self, chat: str) -> tuple[str, ...]:
        """Return the agents of a chat: who has the number."""
        number, _, _ = chat.partition(":")
        return (self.numbers[number].agent,)
