"""Forgets what is older, or more, than the settings keep; on the kernel's side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import trio

from connectors.web.page.places import in_room
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from connectors.page_config import PageConfig
    from connectors.web.page.figures import PageFigures
    from connectors.web.page.logins import Logins
    from connectors.web.page.talk import Talk
    from runtime.clock import Clock

LOG = EventLog("page")

EVERY = 600.0
"""Seconds between two rounds."""

DAY = 86_400_000
"""Milliseconds."""


class Given(Protocol):
    """What is looked at."""

    @property
    def clock(self) -> Clock:
        """Gives Unix seconds."""
        ...

    @property
    def agents(self) -> Callable[[], tuple[str, ...]]:
        """Names those that people can speak to now."""
        ...

    @property
    def logins(self) -> Logins:
        """Who is logged in."""
        ...

    @property
    def figures(self) -> PageFigures:
        """Where that is shown."""
        ...


class Tidying:
    """Tidies one page up, again and again.

    Args:
        config: its settings.
        given: what is looked at.
        talk: what is said there.
    """

    def __init__(self, config: PageConfig, given: Given, talk: Talk) -> None:
        self._config = config
        self._given = given
        self._talk = talk

    async def run(self) -> None:
        """Tidy up until cancelled."""
        while True:
            await trio.sleep(EVERY)
            try:
                count = await self.once()
            except StoreError as error:
                LOG.warning("old messages not forgotten yet", why=str(error))
            else:
                if count:
                    LOG.info("old messages forgotten", count=count)

    async def once(self) -> int:
        """Forget what has to be; count the messages.

        Raises:
            StoreError: the disk fails; the next round goes on.
        """
        given, talk = self._given, self._talk
        given.figures.sessions(await given.logins.count())
        touched, talk.touched = talk.touched, set()
        cutoff = int(given.clock.wall() * 1000 - self._config.keep_days * DAY)
        count = 0
        for chat in {*self._chats(), *touched}:
            count += await talk.log.clear(chat, cutoff)
            if chat in touched:
                most = self._config.keep_messages
                count += await talk.log.keep_newest(chat, most)
        return count

    def _chats(self) -> Iterator[str]:
        yield from map(in_room, self._config.rooms)
        for person in self._config.people:
            for agent in self._given.agents():
                yield f"{person}/{agent}"
