"""Keeps one agent's bot going: the listener of that account.

discord.py ends its client over a payload that it does not understand, as over a close
that it takes for final. The client is made anew, ever more slowly; nothing is lost, for
what came meanwhile is read from the channels' histories.

How far each bot has read is marked message by message, and kept in the database. A
message counts as read when it was accepted, not when it came. All before the place was;
of what is behind it some may have been, which the database knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Protocol

import msgspec
import trio

from actors.transport import Ingress
from connectors.chat.accounts import (
    AccountHealth,
    ConnectorShelf,
    KeptRows,
    ReadMarks,
    read_bookmark,
)
from connectors.chat.discord import inbound as slash
from connectors.chat.discord.client import DiscordAccount, DiscordClient
from connectors.chat.discord.events import (
    Came,
    Changed,
    Channel,
    Connected,
    DiscordSkipped,
    Event,
    EventQueue,
    GatewayReady,
    Invoked,
    Parted,
    Removed,
    Resumed,
    at,
    number,
    read,
    span,
)
from connectors.chat.discord.inbound import (
    DiscordCommands,
    DiscordShared,
    DiscordSubmitter,
    MessageInScene,
)
from connectors.chat.inbound import Lanes, Waits
from connectors.chat.requests import (
    BusyError,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
    text,
)
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog

KIND = "discord_place"

# Chosen: chats that are alive; of the others, what was said during an outage alone.
MOST_SIDE_CHANNELS = 500
"""Direct chats and threads that are remembered; the longest silent is forgotten."""


class BotPlace(msgspec.Struct, frozen=True):
    """How far a bot has read; the body of a row."""

    after: int = 0
    """Id up to which all was accepted; 0: it was never here."""

    user: str = ""
    """The bot's own id."""

    side: tuple[str, ...] = ()
    """Channels that Discord does not list at the start: direct chats, and threads,
    which fall asleep; the latest last."""


class DiscordBookmarks(Protocol):
    """Remembers where a bot continues reading after a restart."""

    async def read(self, agent: str) -> BotPlace:
        """Return where a bot stands."""
        ...

    async def write(self, agent: str, place: BotPlace) -> None:
        """Keep where a bot stands; call it only after all before was accepted."""
        ...


class StoredDiscordBookmarks:
    """Keeps them in the database; see the port. Both raise `StoreError`."""

    def __init__(self, shelf: ConnectorShelf) -> None:
        self._places = KeptRows(shelf, KIND, BotPlace)

    async def read(self, agent: str) -> BotPlace:
        """Return where a bot stands; what cannot be read is a beginning."""
        return await self._places.read(agent) or BotPlace()

    async def write(self, agent: str, place: BotPlace) -> None:
        """Keep where a bot stands."""
        # Why it may wait: a place that is a little old only repeats messages, which
        # the database knows.
        await self._places.write(agent, place, may_wait=True)


LOG = EventLog("discord")


class BotProgress:
    """How far a bot has read, across restarts of its client."""

    def __init__(self, account: DiscordAccount, bookmarks: DiscordBookmarks) -> None:
        self._account = account
        self._bookmarks = bookmarks
        self._marks: ReadMarks | None = None
        self._side: dict[str, None] = {}
        self._kept = BotPlace()
        self._news = trio.Event()

    async def recall(self) -> None:
        """Read where the bot stood; waits for the disk."""
        read = partial(self._bookmarks.read, self._account.agent)
        place = await read_bookmark(read, LOG)
        self._kept = place
        self._side = dict.fromkeys((*place.side, *self._side))
        # Anew, since what was under way in an earlier life is read again.
        after = max(place.after, self.place)
        self._marks = ReadMarks(after) if after else None
        self._account.user = self._account.user or place.user

    @property
    def is_new(self) -> bool:
        """Whether the bot was never here."""
        return self._marks is None

    def settle(self, place: int) -> None:
        """Begin at an id."""
        self._marks = ReadMarks(place)
        self._news.set()

    @property
    def place(self) -> int:
        """The id up to which all was accepted; 0: it was never here."""
        return self._marks.place if self._marks is not None else 0

    @property
    def side(self) -> tuple[str, ...]:
        """Direct chats and threads, the latest last."""
        return tuple(self._side)

    def note(self, channel: str, *, is_aside: bool) -> None:
        """Remember a channel that Discord does not list, before its message ends."""
        if is_aside:
            self._side.pop(channel, None)
            self._side[channel] = None
            while len(self._side) > MOST_SIDE_CHANNELS:
                del self._side[next(iter(self._side))]

    def hold(self) -> None:
        """Stay: something behind the place may be missing."""
        if self._marks is not None:
            self._marks.hold()

    def caught_up(self) -> None:
        """Go on: nothing is missing any more."""
        if self._marks is not None:
            self._marks.release()
        self._news.set()

    def begin_message(self, message: int) -> None:
        """Note that a message came."""
        if self._marks is not None:
            self._marks.begin(message)

    def end_message(self, message: int) -> None:
        """Note that a message was accepted, or will never be."""
        if self._marks is not None:
            self._marks.end(message)
        self._news.set()

    async def keep(self) -> None:
        """Write down where the bot stands, whenever that changes; until cancelled."""
        while True:
            await self._news.wait()
            self._news = trio.Event()
            place = BotPlace(self.place, self._account.user, self.side)
            if self.is_new or place == self._kept:
                continue
            try:
                await self._bookmarks.write(self._account.agent, place)
            except StoreError as error:
                # After a restart more is read again, and known to the database.
                LOG.warning("place not kept", why=str(error))
            else:
                self._kept = place


# Chosen: Discord's own clocks differ by less, and what is read twice is known.
OVERLAP = 10.0
"""Seconds before a bot's place from which histories are read again."""

LONG_AGO = 3600.0
"""Seconds before the first start that are never looked at; more than clocks differ."""

SETTLED_WITHIN = 15.0
"""Seconds that a bot waits for the others: who is present decides who is asked."""

CHANNELS_AT_ONCE = 8
"""Channels whose messages are brought in side by side."""

MOST_TRIES = 3
"""How often a channel may fail before it is left out."""


class DiscordArrivals:
    """Takes what a bot hears, during one life of its client."""

    def __init__(
        self,
        account: DiscordAccount,
        progress: BotProgress,
        shared: DiscordShared,
        ingress: Ingress,
        failed: dict[str, int],
        health: AccountHealth,
    ) -> None:
        self._account = account
        self._progress = progress
        self._shared = shared
        self._ingress = ingress
        self._failed = failed
        self._health = health
        self._submitter = DiscordSubmitter(account, shared)
        self._choosing = DiscordCommands(account, shared)
        self.intake = EventQueue(shared.bridge, self._overrun, shared.most_events)
        self._early: list[Came] | None = None
        """What came before the channels were known; None: they are."""

        self._has_missed = False

    async def run(self, nursery: trio.Nursery) -> None:
        """Take what the bot hears, until cancelled.

        Raises:
            PlatformError: histories cannot be fetched now.
        """
        lanes = Lanes(nursery, at_once=CHANNELS_AT_ONCE)
        while True:
            await self._take(await self.intake.next(), lanes, nursery)
            if self._has_missed and self._early is None and not self.intake.waiting:
                await self._catch_up(await self._account.ask(channels_of), lanes)

    async def _take(self, event: Event, lanes: Lanes, nursery: trio.Nursery) -> None:
        self._shared.metrics.heard(self._account.agent, self._shared.clock.wall())
        match event:
            case Connected(user=user):
                self._connect(user)
            case GatewayReady(channels=channels):
                await self._begin(channels, lanes, nursery)
            case Resumed():
                self._hears()
            case Parted():
                self._health.lost("its connection is gone; a new one is being made")
            case Invoked():
                nursery.start_soon(self._choosing.take, event, self._ingress)
            case Removed(channel=channel, said=said):
                self._shared.metrics.event(self._account.agent, "deleted")
                # Behind the message itself, which may still be on its way.
                await lanes.put(channel, partial(self._withdraw, said))
            case Came() | Changed():
                await self._take_message(event, lanes)

    async def _take_message(self, event: Came | Changed, lanes: Lanes) -> None:
        if isinstance(event, Changed):
            self._shared.metrics.event(self._account.agent, "edit")
        elif self._early is not None:
            self._hear_early(event, self._early)
        elif self._has_missed:
            # It comes with what was missed, and so in its place among that.
            self._shared.metrics.event(self._account.agent, "overrun")
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
        self._progress.hold()
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
        if self._progress.is_new:
            self._progress.settle(self._first_place(channels))
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
        first = min(map(id_of, self._early or ()), default=last + 1)
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
        """Bring in what was said after the bot's place."""
        self._has_missed = False
        after = self._progress.place
        place = max(0, after - span(OVERLAP))
        listed = {each.id: each for each in channels}
        aside = [each for each in self._progress.side if each not in listed]
        for channel in listed.values():
            if channel.last > max(after, channel.since):
                await self._fill(channel, max(place, channel.since), lanes)
        for known in aside:
            await self._fill(await self._looked_at(known), place, lanes)
        if not self._has_missed:
            self._progress.caught_up()

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
            missed, is_whole = await fetch_missed(channel, after, most, self._account)
        except (BusyError, LostError) as error:
            self._failed[channel.id] = self._failed.get(channel.id, 0) + 1
            if self._failed[channel.id] < MOST_TRIES:
                raise
            missed, is_whole = [], False
            LOG.warning("channel left out", channel=channel.id, why=str(error))
        else:
            self._failed.pop(channel.id, None)
        # What is read again for safety was no gap.
        place = self._progress.place
        new = sum(id_of(each) > place for each in missed)
        if new or not is_whole:
            self._shared.metrics.gap(agent, is_filled=is_whole)
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
        if isinstance(said, DiscordSkipped):
            self._shared.metrics.event(self._account.agent, said.reason)
            return
        self._progress.note(said.channel, is_aside=not said.guild or is_thread(came))
        self._progress.begin_message(number(said.id))
        await lanes.put(
            said.channel, partial(self._submit, MessageInScene(said, came.scene))
        )

    async def _withdraw(self, said: str) -> None:
        """Have nobody work any longer on a message that was deleted."""
        try:
            await self._ingress.withdraw(self._shared.connector, said)
        except StoreError as error:
            LOG.warning("message not withdrawn", message=said, why=str(error))

    async def _submit(self, heard: MessageInScene) -> None:
        shared, known = self._shared, heard.said.id
        if await shared.seen.claim(known):
            try:
                await self._submitter.submit(heard, self._ingress)
                shared.seen.done(known)
            finally:
                shared.seen.give_back(known)
        else:
            shared.metrics.event(self._account.agent, "seen")
        self._progress.end_message(number(known))

    def _overrun(self) -> None:
        """Note that something came which there was no room for."""
        self._shared.metrics.event(self._account.agent, "overrun")
        self._has_missed = True
        self._progress.hold()

    def _hears(self) -> None:
        if self._health.heard():
            self._shared.metrics.count("reconnects", self._account.agent)


def is_thread(came: Came) -> bool:
    """Return whether something was said in a thread, or in what may be one."""
    return bool(came.scene.parent) or not came.scene.is_known


async def channels_of(bot: DiscordClient) -> tuple[Channel, ...]:
    """Return what a bot can read now."""
    return bot.channels()


WELL_AFTER = 300.0
"""Seconds that a client must have lived for its end to count as a first one."""

# Source: developers' reference, "Session Start Limit": a bot that begins more than
# 1,000 sessions in a day loses its token. At 120 seconds it begins 720.
CALM = 120.0
"""Seconds between two beginnings, after several."""

SEVERAL = 6

CURE = "mend that, put its token where {place} takes it from, and start again"


class DiscordListener:
    """Listens to one bot; restarts its client when it ends."""

    def __init__(self, account: DiscordAccount, shared: DiscordShared) -> None:
        self._account = account
        self._shared = shared
        self._health = AccountHealth(account, shared.metrics, shared.clock, LOG)
        self._progress = BotProgress(account, shared.bookmarks)
        self._failed: dict[str, int] = {}

    async def listen(self, ingress: Ingress) -> None:
        """Follow the bot until cancelled."""
        await self._health.keep_listening(partial(self._listen, ingress))

    async def _listen(self, ingress: Ingress) -> None:
        waits, ends = Waits(), 0
        with self._health.listening():
            while True:
                begun = trio.current_time()
                error = await self._live(ingress)
                if isinstance(error, ShutOutError):
                    self._health.shut_out(error, self._shared.connector, CURE)
                    self._account.settled.set()
                    return
                if trio.current_time() - begun >= WELL_AFTER:
                    waits, ends = Waits(), 0
                ends += 1
                wait = waits.next(asked_to_wait(error))
                wait = max(wait, CALM) if ends > SEVERAL else wait
                self._note(error, wait)
                await trio.sleep(wait)

    async def _live(self, ingress: Ingress) -> PlatformError:
        """Live one life of a client; gives what ended it."""
        account, shared = self._account, self._shared
        ended: list[PlatformError] = []
        await self._progress.recall()
        following = DiscordArrivals(
            account, self._progress, shared, ingress, self._failed, self._health
        )
        bot = DiscordClient(
            account.agent,
            shared.config,
            shared.bots,
            following.intake.hear,
            shared.ready_after,
        )
        async with trio.open_nursery() as nursery:

            async def follow() -> None:
                try:
                    await following.run(nursery)
                except PlatformError as error:
                    ended.append(error)
                    nursery.cancel_scope.cancel()

            nursery.start_soon(follow)
            nursery.start_soon(self._progress.keep)
            nursery.start_soon(self._account.typing.run)
            try:
                await account.run(bot)
            except PlatformError as error:
                ended.append(error)
            nursery.cancel_scope.cancel()
        account.is_open = False
        return ended[0] if ended else LostError("its client ended by itself")

    def _note(self, error: PlatformError, wait: float) -> None:
        account = self._account
        self._health.lost(str(error))
        self._shared.metrics.count("restarts", account.agent)
        LOG.warning(
            "bot begins anew", account=account.agent, why=str(error), after=wait
        )


def asked_to_wait(error: PlatformError) -> float | None:
    """Return the seconds that Discord asked to wait; None if it did not."""
    return error.retry_after if isinstance(error, BusyError) else None


PAGE = 100
"""Messages of one request; Discord gives no more."""

# Chosen: Discord's usual faults are shorter. After that all is begun anew, and a
# channel that fails again and again is left out, so that it keeps nobody else waiting.
PAGE_WITHIN = 60.0
"""Seconds that one page is asked for."""


async def fetch_missed(
    channel: Channel, after: int, most: int, account: DiscordAccount
) -> tuple[list[Came], bool]:
    """Fetch what was said in a channel after an id.

    Args:
        after: id; nothing up to it is given.
        most: messages; those before are left out.

    Returns:
        The messages, oldest first, and whether these are all.

    Raises:
        BusyError: not now.
        LostError: no answer came.
        ShutOutError: the bot is not let in.
    """
    found: list[Came] = []
    before = 0
    while len(found) < most:
        size = min(PAGE, most - len(found))
        try:
            page = await ask_patiently(channel, before, size, account)
        except RefusedError as error:
            # It may not look there (any more), and so nobody speaks to it there.
            LOG.info("history not given", channel=channel.id, why=str(error))
            return found[::-1], True
        new = [each for each in page if id_of(each) > after]
        found += new
        before = min((id_of(each) for each in new), default=0)
        if len(new) < size or not before:
            return found[::-1], True
    return found[::-1], False


def id_of(came: Came) -> int:
    """Return the id of a message; 0 if it has none."""
    return number(text(came.message.get("id")))


async def ask_patiently(
    channel: Channel, before: int, size: int, account: DiscordAccount
) -> list[Came]:
    """Ask for a page again and again, for a while; raises as `fetch_missed`."""
    until = trio.current_time() + PAGE_WITHIN
    waits = Waits()
    while True:
        try:
            return await account.ask(partial(ask_page, channel, before, size))
        except (BusyError, LostError) as error:
            asked = error.retry_after if isinstance(error, BusyError) else None
            wait = waits.next(asked)
            if trio.current_time() + wait > until:
                raise
            LOG.warning("history waits", channel=channel.id, why=str(error))
        await trio.sleep(wait)


async def ask_page(
    channel: Channel, before: int, size: int, bot: DiscordClient
) -> list[Came]:
    """Ask for a page once."""
    return await bot.history(channel, before, size)
