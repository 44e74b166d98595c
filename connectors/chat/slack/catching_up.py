"""Brings in what was said while an app heard nothing."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from connectors.chat.faults import RefusedError, ShutOutError
from connectors.chat.slack.backfill import Gap, channels_of
from connectors.chat.slack.moments import after
from connectors.chat.slack.patience import patiently
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from connectors.chat.faults import PlatformError
    from connectors.chat.loose_json import Json
    from connectors.chat.slack.account import SlackAccount
    from connectors.chat.slack.arrivals import Arrivals
    from connectors.chat.slack.moments import Mark
    from connectors.chat.slack.shared import Shared

LOG = EventLog("slack")


class CatchingUp:
    """Fills the gaps of one app, beside what comes meanwhile.

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
        shared: Shared,
        mark: Mark,
        arrivals: Arrivals,
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
                self._shared.figures.gap(self._account.agent, is_filled=False)
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
        channels = await channels_of(self._ask)
        self._shared.rooms.note_all(self._account.agent, channels)
        if not self._shared.config.backfill:
            return False
        is_whole = True
        for channel in channels:
            gap = Gap(channel, since, self._shared.config.backfill)
            await self._fill(gap)
            is_whole = is_whole and gap.is_filled
        return is_whole

    async def _fill(self, gap: Gap) -> None:
        messages: list[Json] = []
        why = "there is more"
        try:
            messages = await gap.fetch(self._ask)
        except RefusedError as error:
            why, gap.is_filled = str(error), False
        for message in messages:
            await self._arrivals.bring_in(message)
        if messages or not gap.is_filled:
            self._shared.figures.gap(self._account.agent, is_filled=gap.is_filled)
            LOG.info(
                "gap in a channel",
                channel=gap.channel,
                account=self._account.agent,
                fetched=len(messages),
                left_open="" if gap.is_filled else why,
            )

    async def _ask(self, method: str, body: Json) -> Json:
        return await patiently(
            partial(self._account.ask, method, body), self._note_waiting
        )

    def _note_waiting(self, error: PlatformError) -> None:
        """Take note that a question waits; whether Slack is heard, others know."""
        LOG.debug("history waits", account=self._account.agent, why=str(error))
