"""Shows in an assistant's thread that an app is writing, as well as it goes.

Source: docs.slack.dev, "assistant.threads.setStatus": only in the threads of an app
that is an assistant; it ends with the answer, or after two minutes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from connectors.chat.faults import PlatformError, RefusedError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.messages import Address
    from connectors.chat.slack.account import SlackAccount

LOG = EventLog("slack")

TYPING_FOR = 100.0
"""Seconds after which it is shown anew; Slack shows it for two minutes."""

STATUS = "is writing…"

MOST_THREADS = 1_000
"""Threads that may wait to be told; for further ones nothing is shown."""

REST = 600.0
"""Seconds for which nothing is shown after Slack refused it."""


class Typist:
    """Tells Slack of one app's writing; the newest word counts.

    Args:
        account: whose.
    """

    def __init__(self, account: SlackAccount) -> None:
        self._account = account
        self._wanted: dict[tuple[str, str], bool] = {}
        self._shown: set[tuple[str, str]] = set()
        self._rests_until = 0.0
        self._news = trio.Event()

    def show(self, address: Address, *, is_over: bool) -> None:
        """Have it shown that the app is writing, or no longer, if it was."""
        place = address.chat, address.thread
        if not (address.thread and address.chat.startswith("D")):
            return  # Slack shows it nowhere else
        if is_over and place not in self._shown and place not in self._wanted:
            return
        if place in self._wanted or len(self._wanted) < MOST_THREADS:
            self._wanted[place] = not is_over
            self._news.set()

    async def run(self) -> None:
        """Tell Slack until cancelled."""
        while True:
            await self._news.wait()
            self._news = trio.Event()
            wanted, self._wanted = self._wanted, {}
            for place, is_typing in wanted.items():
                await self._tell(place, is_typing=is_typing)

    async def _tell(self, place: tuple[str, str], *, is_typing: bool) -> None:
        if trio.current_time() < self._rests_until:
            return
        channel, thread = place
        body = {
            "channel_id": channel,
            "thread_ts": thread,
            "status": STATUS if is_typing else "",
        }
        self._shown.discard(place)
        try:
            await self._account.ask("assistant.threads.setStatus", body)
        except RefusedError as error:
            LOG.debug("status not shown", account=self._account.agent, why=str(error))
            self._rests_until = trio.current_time() + REST
        except PlatformError as error:
            LOG.debug("status not shown", account=self._account.agent, why=str(error))
        else:
            if is_typing and len(self._shown) < MOST_THREADS:
                self._shown.add(place)
