"""What one bot hears in one life of its client: brought in, in order, and noted."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from connectors.chat.discord import backfill, slash
from connectors.chat.discord.choosing import Choosing
from connectors.chat.discord.handing import Handing, Heard
from connectors.chat.discord.intake import Intake
from connectors.chat.discord.lanes import Lanes
from connectors.chat.discord.payloads import Skipped, read
from connectors.chat.discord.snowflakes import at, number, span
from connectors.chat.discord.wire import (
    Came,
    Changed,
    Channel,
    Connected,
    Invoked,
    Parted,
    Ready,
    Resumed,
)
from connectors.chat.faults import BusyError, LostError, PlatformError
from connectors.chat.loose_json import text
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.transport import Ingress
    from connectors.chat.discord.account import DiscordAccount
    from connectors.chat.discord.bot import Bot
    from connectors.chat.discord.shared import Shared
    from connectors.chat.discord.standing import Standing
    from connectors.chat.discord.wire import Event

LOG = EventLog("discord")

# Chosen: Discord's own clocks differ by less, and what is read twice is known.
OVERLAP = 10.0
"""Seconds before a bot's place from which histories are read again."""

LONG_AGO = 3600.0
"""Seconds before the first start that are never looked at; more than clocks differ."""

SETTLED_WITHIN = 15.0
"""Seconds that a bot waits for the others: who is present decides who is asked."""

MOST_TRIES = 3
"""How often a channel may fail before it is left out."""


class Following:
    """One life of a bot's client.

    Args:
        account: whose.
        standing: how far it has read.
        shared: what all bots share.
        ingress: where messages are handed in.
        failed: how often channels have failed, over all lives.
    """

    def __init__(
        self,
        account: DiscordAccount,
        standing: Standing,
        shared: Shared,
        ingress: Ingress,
        failed: dict[str, int],
    ) -> None:
        self._account = account
        self._standing = standing
        self._shared = shared
        self._ingress = ingress
        self._failed = failed
        self._handing = Handing(account, shared)
        self._choosing = Choosing(account, shared)
        self.intake = Intake(shared.bridge, self._overrun, shared.most_events)
        self._early: list[Came] | None = None
        """What came before the channels were known; None: they are."""

        self._has_missed = False

    async def run(self, nursery: trio.Nursery) -> None:
        """Take what the bot hears, until cancelled.

        Raises:
            PlatformError: histories cannot be fetched now.
        """
        lanes = Lanes(nursery)
        while True:
            await self._take(await self.intake.next(), lanes, nursery)
            if self._has_missed and self._early is None and not self.intake.waiting:
                await self._catch_up(await self._account.ask(channels_of), lanes)

    async def _take(self, event: Event, lanes: Lanes, nursery: trio.Nursery) -> None:
        self._shared.figures.heard(self._account.agent, self._shared.clock.wall())
        match event:
            case Connected(user=user):
                self._connect(user)
            case Ready(channels=channels):
                await self._begin(channels, lanes, nursery)
            case Resumed():
                self._hears()
            case Parted():
                self._parted()
            case Invoked():
                nursery.start_soon(self._choosing.take, event, self._ingress)
            case Came() | Changed():
                await self._take_message(event, lanes)

    async def _take_message(self, event: Came | Changed, lanes: Lanes) -> None:
        if isinstance(event, Changed):
            self._shared.figures.event(self._account.agent, "edit")
        elif self._early is not None:
            self._hear_early(event, self._early)
        elif self._has_missed:
            # It comes with what was missed, and so in its place among that.
            self._shared.figures.event(self._account.agent, "overrun")
        else:
            await self._bring(event, lanes)

    def _hear_early(self, came: Came, early: list[Came]) -> None:
        if len(early) < self._shared.most_events:
            early.append(came)
        else:
            self._overrun()

    def _connect(self, user: str) -> None:
        """Note that a session has begun: something may be missing."""
        self._account.user = user or self._account.user
        self._standing.hold()
        self._early = self._early or []

    async def _begin(
        self, channels: tuple[Channel, ...], lanes: Lanes, nursery: trio.Nursery
    ) -> None:
        """Bring in what is missing, then what came meanwhile."""
        account = self._account
        account.settled.set()
        with trio.move_on_after(SETTLED_WITHIN):
            for other in self._shared.accounts.values():
                await other.settled.wait()
        account.is_open = True
        if self._standing.is_new:
            self._standing.settle(self._first_place(channels))
        else:
            await self._catch_up(channels, lanes)
        early, self._early = self._early or [], None
        for each in early:
            await self._bring(each, lanes)
        self._hears()
        LOG.info("bot listens", account=account.agent, user=account.user)
        if self._shared.config.slash_commands:
            nursery.start_soon(self._make_known)

    def _first_place(self, channels: Iterable[Channel]) -> int:
        """Say where a bot begins that was never here: nothing old is answered."""
        long_ago = at(self._shared.clock.wall() - LONG_AGO)
        last = max((each.last for each in channels), default=0)
        first = min(map(backfill.id_of, self._early or ()), default=last + 1)
        return max(long_ago, min(last, first - 1))

    async def _make_known(self) -> None:
        commands = slash.commands()
        try:
            is_new = await self._account.ask(lambda bot: bot.make_known(commands))
        except PlatformError as error:
            LOG.warning("commands not made known", why=str(error))
        else:
            LOG.info("commands known", account=self._account.agent, is_new=is_new)

    async def _catch_up(self, channels: Iterable[Channel], lanes: Lanes) -> None:
        """Bring in what was said after the bot's place.

        Raises:
            PlatformError: not now; the place stays where it is.
        """
        self._has_missed = False
        after = self._standing.place
        place = max(0, after - span(OVERLAP))
        listed = {each.id: each for each in channels}
        aside = [each for each in self._standing.side if each not in listed]
        for channel in listed.values():
            if channel.last > max(after, channel.since):
                await self._fill(channel, max(place, channel.since), lanes)
        for known in aside:
            await self._fill(await self._looked_at(known), place, lanes)
        if not self._has_missed:
            self._standing.caught_up()

    async def _looked_at(self, known: str) -> Channel:
        try:
            found = await self._account.ask(lambda bot: bot.look_at(known))
        except (BusyError, LostError):
            raise
        except PlatformError:
            return Channel(known, 0)
        last, guild = text(found.get("last_message_id")), text(found.get("guild_id"))
        return Channel(known, number(last), guild)

    async def _fill(self, channel: Channel, after: int, lanes: Lanes) -> None:
        if channel.last and channel.last <= after:
            return
        most, agent = self._shared.config.backfill, self._account.agent
        try:
            missed, is_whole = await backfill.fetch(channel, after, most, self._account)
        except (BusyError, LostError) as error:
            self._failed[channel.id] = self._failed.get(channel.id, 0) + 1
            if self._failed[channel.id] < MOST_TRIES:
                raise
            missed, is_whole = [], False
            LOG.warning("channel left out", channel=channel.id, why=str(error))
        else:
            self._failed.pop(channel.id, None)
        # What is read again for safety was no gap.
        place = self._standing.place
        new = sum(backfill.id_of(each) > place for each in missed)
        if new or not is_whole:
            self._shared.figures.gap(agent, is_filled=is_whole)
            say = LOG.info if is_whole else LOG.warning
            say(
                "gap in a channel",
                channel=channel.id,
                account=agent,
                fetched=new,
                is_filled=is_whole,
            )
        for each in missed:
            await self._bring(each, lanes)

    async def _bring(self, came: Came, lanes: Lanes) -> None:
        """Put a message behind those of its channel."""
        said = read(came.message, self._shared.ours)
        if isinstance(said, Skipped):
            self._shared.figures.event(self._account.agent, said.reason)
            return
        self._standing.note(said.channel, is_aside=not said.guild or is_thread(came))
        self._standing.begin_message(number(said.id))
        await lanes.put(said.channel, partial(self._hand_in, Heard(said, came.scene)))

    async def _hand_in(self, heard: Heard) -> None:
        shared, known = self._shared, heard.said.id
        if await shared.seen.claim(known):
            try:
                await self._handing.hand_in(heard, self._ingress)
                shared.seen.done(known)
            finally:
                shared.seen.give_back(known)
        else:
            shared.figures.event(self._account.agent, "seen")
        self._standing.end_message(number(known))

    def _overrun(self) -> None:
        """Note that something came which there was no room for."""
        self._shared.figures.event(self._account.agent, "overrun")
        self._has_missed = True
        self._standing.hold()

    def _hears(self) -> None:
        account, figures = self._account, self._shared.figures
        if self._standing.was_away:
            self._standing.was_away = False
            figures.reconnected(account.agent)
        account.trouble = ""
        figures.show(account.agent, is_up=True)

    def _parted(self) -> None:
        self._standing.was_away = True
        self._account.trouble = "its connection is gone; a new one is being made"
        self._shared.figures.show(self._account.agent, is_up=False)


def is_thread(came: Came) -> bool:
    """Tell whether something was said in a thread, or in what may be one."""
    return bool(came.scene.parent) or not came.scene.is_known


async def channels_of(bot: Bot) -> tuple[Channel, ...]:
    """Give what a bot can read now."""
    return bot.channels()
