"""How far each bot has read: marked message by message, and kept in the database.

A message counts as read when it was accepted, not when it came. All before the place
was; of what is behind it some may have been, which the database knows.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec
import trio

from connectors.chat.bookmarks import ConnectorShelf, KeptRows, ReadMarks, read_bookmark
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from connectors.chat.discord.account import DiscordAccount


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
