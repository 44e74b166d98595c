"""Who is logged in; the kernel's side, in front of the rows of `login_rows.py`.

Asked at every request, so that a browser that was logged out, or a link that was used
elsewhere, is out at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from connectors.web.page.login_rows import (
    LINK,
    SESSION,
    TOKEN_BYTES,
    Link,
    Session,
    entry,
    new_token,
    read,
    row_id,
    surplus,
)
from runtime.errors import SequenceConflictError
from runtime.rows import Commit

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectors.page_config import PageConfig
    from runtime.clock import Clock
    from runtime.entries import Entry
    from runtime.store import Store

PAGE = 1000


class LoggedIn(msgspec.Struct, frozen=True):
    """A browser that has just been logged in."""

    person: str
    cookie: str
    seconds: int
    """For how long."""


class Logins:
    """The links and the sessions of one connector.

    Args:
        connector: its name.
        config: its settings.
        store: the database.
        clock: gives Unix seconds.
        random_bytes: gives so many that nobody can guess.
    """

    def __init__(
        self,
        connector: str,
        config: PageConfig,
        store: Store,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._connector = connector
        self._config = config
        self._store = store
        self._clock = clock
        self._random_bytes = random_bytes

    async def enter(self, token: str) -> LoggedIn | None:
        """Use a link up, and log a browser in; None: the link does not hold.

        Of several who use it at the same moment, one gets in.

        Raises:
            StoreError: the disk fails; the link still holds.
        """
        name, now = row_id(self._connector, token), self._clock.wall()
        found = await self._store.entry(LINK, name)
        link = None if found is None else read(found, Link)
        if found is None or link is None or not self._holds(link, now):
            return None
        cookie = new_token(self._random_bytes(TOKEN_BYTES))
        seconds = self._config.session_hours * 3600
        session = Session(link.person, now + seconds, now)
        entries = (
            entry(LINK, name, None, found.version),
            entry(SESSION, row_id(self._connector, cookie), session, 0),
            *await self._too_many(now),
        )
        try:
            await self._store.commit(Commit(at=now, entries=entries))
        except SequenceConflictError:
            return None
        return LoggedIn(link.person, cookie, int(seconds))

    async def find(self, cookie: str) -> Session | None:
        """Say who has a cookie; None: nobody (any more).

        Raises:
            StoreError: the disk fails.
        """
        found = await self._store.entry(SESSION, row_id(self._connector, cookie))
        session = None if found is None else read(found, Session)
        if session is None or not self._holds(session, self._clock.wall()):
            return None
        return session

    async def leave(self, cookie: str) -> None:
        """Log a browser out.

        Raises:
            StoreError: the disk fails; it is still logged in.
        """
        gone = entry(SESSION, row_id(self._connector, cookie), None)
        await self._store.commit(Commit(at=self._clock.wall(), entries=(gone,)))

    async def count(self) -> int:
        """Count the browsers that are logged in, and forget those that were.

        Raises:
            StoreError: the disk fails.
        """
        now = self._clock.wall()
        rows = await self._store.entries(SESSION, self._connector, "", PAGE)
        gone = surplus(rows, Session, now, self._config.max_sessions)
        if gone:
            await self._store.commit(Commit(at=now, entries=tuple(gone)))
        return len(rows) - len(gone)

    def _holds(self, row: Link | Session, now: float) -> bool:
        # Whoever the settings do not name any more is out.
        return row.until > now and row.person in self._config.people

    async def _too_many(self, now: float) -> tuple[Entry, ...]:
        rows = await self._store.entries(SESSION, self._connector, "", PAGE)
        return tuple(surplus(rows, Session, now, self._config.max_sessions - 1))
