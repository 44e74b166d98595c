"""Fetches the messages that were written while nobody listened.

Source: docs.slack.dev, "conversations.history": newest first, in pages; answers in
threads are not among them, only their number and the newest one's `ts` at the message
they belong to.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from connectors.chat.errors import RefusedError, ShutOutError
from connectors.chat.lenient_json import Json, table, tables, text
from connectors.chat.requests import until_answered
from connectors.chat.slack.events import after, is_ts, order
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Ask = Callable[[str, Json], Awaitable[Json]]
    "Calls a method until it answers."
    from collections.abc import Callable, Iterable

    from connectors.chat.errors import PlatformError
    from connectors.chat.lenient_json import Json
    from connectors.chat.slack.account import SlackAccount
    from connectors.chat.slack.events import Mark
    from connectors.chat.slack.inbound import SlackArrivals
    from connectors.chat.slack.shared import SlackShared

PAGE = 100
"""Messages of one page; so many are also looked at for threads that went on."""

MOST_THREADS = 50
"""Threads of one channel that are looked into."""

MOST_PAGES = 200
"""Pages of the list of channels: beyond, the rest is left out."""


class SlackGap:
    """The gap in one channel's messages.

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
    """Return where the next page begins; empty: there is none."""
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


LOG = EventLog("slack")


class CatchingUp:
    """Fills the gaps of one app while it goes on listening.

    Args:
        account: which one.
        shared: what all apps share.
        mark: up to where all is in; it stands still until the gaps are filled.
        arrivals: takes what was missed.
        note: is told of trouble.
    """

    def __init__(
        self,
        account: SlackAccount,
        shared: SlackShared,
        mark: Mark,
        arrivals: SlackArrivals,
        note: Callable[[PlatformError], object],
    ) -> None:
        self._account = account
        self._shared = shared
        self._mark = mark
        self._arrivals = arrivals
        self._note = note
        self._wanted = trio.Event()
        self._held: set[str] = set()

    def want(self) -> None:
        """Have all gaps since the mark filled."""
        held = after(self._mark.ts)
        self._held.add(held)
        self._mark.begin(held)
        self._wanted.set()

    async def run(self) -> None:
        """Fill gaps whenever that is wanted, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = trio.Event()
            held, self._held = self._held, set()
            left = self._arrivals.left()
            try:
                if await self._fill_all(self._mark.ts):
                    self._give_up(left)
            except (RefusedError, ShutOutError) as error:
                LOG.warning(
                    "what was missed is not known",
                    account=self._account.agent,
                    why=str(error),
                )
                self._shared.metrics.gap(self._account.agent, is_filled=False)
            for each in held - self._held:
                self._mark.end(each)
            self._arrivals.moved.set()

    def _give_up(self, left: Iterable[str]) -> None:
        """Hold the mark no longer for what history does not have any more."""
        count = self._arrivals.give_up(left)
        if count:
            LOG.info(
                "messages that were too many are gone",
                account=self._account.agent,
                count=count,
            )

    async def _fill_all(self, since: str) -> bool:
        """Fill the gaps of all channels; tell whether nothing is left open."""
        try:
            channels = await channels_of(self._ask)
            self._shared.rooms.note_all(self._account.agent, channels)
        finally:
            self._account.placed.set()
        await self._shared.wait_all_placed()
        if not self._shared.config.backfill:
            return False
        is_whole = True
        for channel in channels:
            gap = SlackGap(channel, since, self._shared.config.backfill)
            await self._fill(gap)
            is_whole = is_whole and gap.is_filled
        return is_whole

    async def _fill(self, gap: SlackGap) -> None:
        messages: list[Json] = []
        why = "there is more"
        try:
            messages = await gap.fetch(self._ask)
        except RefusedError as error:
            why, gap.is_filled = str(error), False
        for message in messages:
            await self._arrivals.bring_in(message)
        if messages or not gap.is_filled:
            self._shared.metrics.gap(self._account.agent, is_filled=gap.is_filled)
            LOG.info(
                "gap in a channel",
                channel=gap.channel,
                account=self._account.agent,
                fetched=len(messages),
                left_open="" if gap.is_filled else why,
            )

    async def _ask(self, method: str, body: Json) -> Json:
        return await until_answered(
            partial(self._account.ask, method, body), self._note_waiting
        )

    def _note_waiting(self, error: PlatformError) -> None:
        """Take note that a question waits; whether Slack is heard, others know."""
        LOG.debug("history waits", account=self._account.agent, why=str(error))
