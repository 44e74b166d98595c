"""Where one bot stands, and the keeping of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from connectors.chat.discord.bookmarks import MOST_SIDE_CHANNELS, Place
from connectors.chat.discord.marks import Marks
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from connectors.chat.discord.account import DiscordAccount
    from connectors.chat.discord.bookmarks import Bookmarks

LOG = EventLog("discord")

AGAIN_AFTER = 1.0
"""Seconds until a disk that fails is asked again."""


class Standing:
    """Where a bot stands, over all lives of its client.

    Args:
        account: whose.
        bookmarks: where it is kept.
    """

    def __init__(self, account: DiscordAccount, bookmarks: Bookmarks) -> None:
        self._account = account
        self._bookmarks = bookmarks
        self._marks: Marks | None = None
        self._side: dict[str, None] = {}
        self._kept = Place()
        self._news = trio.Event()
        self.was_away = False
        """Whether it did not hear its gateway a while ago."""

    async def recall(self) -> None:
        """Read where the bot stood; waits for the disk."""
        place = await self._read()
        self._kept = place
        self._side = dict.fromkeys((*place.side, *self._side))
        # Anew, since what was under way in an earlier life is read again.
        after = max(place.after, self.place)
        self._marks = Marks(after) if after else None
        self._account.user = self._account.user or place.user

    async def _read(self) -> Place:
        while True:
            try:
                return await self._bookmarks.read(self._account.agent)
            except StoreError as error:
                LOG.warning("place not read yet", why=str(error))
                await trio.sleep(AGAIN_AFTER)

    @property
    def is_new(self) -> bool:
        """Whether the bot was never here."""
        return self._marks is None

    def settle(self, place: int) -> None:
        """Begin at an id."""
        self._marks = Marks(place)
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
        """Remember a channel that Discord does not list."""
        if is_aside:
            if channel not in self._side:
                self._news.set()
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
            place = Place(self.place, self._account.user, self.side)
            if self.is_new or place == self._kept:
                continue
            try:
                await self._bookmarks.write(self._account.agent, place)
            except StoreError as error:
                # After a restart more is read again, and known to the database.
                LOG.warning("place not kept", why=str(error))
            else:
                self._kept = place
