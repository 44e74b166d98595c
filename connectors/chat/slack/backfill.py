"""Fetches what was said while nobody listened.

Source: docs.slack.dev, "conversations.history": newest first, in pages; answers in
threads are not among them, only their number and the newest one's `ts` at the message
they belong to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.chat.loose_json import Json, table, tables, text
from connectors.chat.slack.moments import is_ts, order

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Ask = Callable[[str, Json], Awaitable[Json]]
    """Calls a method until it answers."""

PAGE = 100
"""Messages of one page; so many are also looked at for threads that went on."""

MOST_THREADS = 50
"""Threads of one channel that are looked into."""

MOST_PAGES = 200
"""Pages of the list of channels: beyond, the rest is left out."""


class Gap:
    """What is missing of one channel.

    Args:
        channel: which.
        since: the `ts` of the last message that is known.
        most: messages that are fetched.
    """

    def __init__(self, channel: str, since: str, most: int) -> None:
        self.channel = channel
        self.since = since
        self.most = most
        self.is_filled = False
        """Whether all was fetched."""

        self._found: dict[str, Json] = {}
        self._threads: list[str] = []

    async def fetch(self, ask: Ask) -> list[Json]:
        """Fetch the messages, oldest first, as events would have told of them.

        Raises:
            GoneError, RefusedError, ShutOutError: they cannot be had.
        """
        cursor = ""
        while len(self._found) < self.most:
            page, following = await self._page("conversations.history", {}, cursor, ask)
            for each in page:
                self._look_at(each)
            if following is None or not self._is_new(page[-1]):
                self.is_filled = True
                break
            cursor = following
        await self._look_into_threads(ask)
        return [self._found[ts] for ts in sorted(self._found, key=order)]

    async def _look_into_threads(self, ask: Ask) -> None:
        if len(self._threads) > MOST_THREADS:
            self.is_filled = False
        for thread in self._threads[:MOST_THREADS]:
            body: Json = {"ts": thread, "oldest": self.since}
            cursor: str | None = ""
            while cursor is not None:
                page, cursor = await self._page(
                    "conversations.replies", body, cursor, ask
                )
                for each in page:
                    if self._is_new(each):
                        self._keep(each)

    async def _page(
        self, method: str, body: Json, cursor: str, ask: Ask
    ) -> tuple[tuple[Json, ...], str | None]:
        """Fetch one page, and say where the next begins; None: there is none."""
        asked = {"channel": self.channel, "limit": PAGE, **body}
        if cursor:
            asked["cursor"] = cursor
        answer = await ask(method, asked)
        page = tables(answer.get("messages"))
        return page, (next_cursor(answer) or None) if page else None

    def _look_at(self, message: Json) -> None:
        if self._is_new(message):
            self._keep(message)
        latest, ts = text(message.get("latest_reply")), text(message.get("ts"))
        if is_ts(latest) and is_ts(ts) and order(latest) > order(self.since):
            self._threads.append(ts)

    def _keep(self, message: Json) -> None:
        ts = text(message.get("ts"))
        self._found[ts] = {**message, "channel": self.channel, "type": "message"}

    def _is_new(self, message: Json) -> bool:
        ts = text(message.get("ts"))
        return is_ts(ts) and order(ts) > order(self.since)


def next_cursor(answer: Json) -> str:
    """Give where the next page begins; empty: there is none."""
    return text(table(answer.get("response_metadata")).get("next_cursor"))


async def channels_of(ask: Ask) -> list[str]:
    """List the channels, groups and direct chats that an app is in.

    Raises:
        GoneError, RefusedError, ShutOutError: they cannot be had.
    """
    found: list[str] = []
    body: Json = {
        "types": "public_channel,private_channel,mpim,im",
        "exclude_archived": True,
        "limit": 200,
    }
    for _ in range(MOST_PAGES):
        answer = await ask("users.conversations", dict(body))
        channels = tables(answer.get("channels"))
        found += [text(each.get("id")) for each in channels if each.get("id")]
        body["cursor"] = next_cursor(answer)
        if not body["cursor"]:
            break
    return found
