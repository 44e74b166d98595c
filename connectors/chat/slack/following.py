"""Keeps one app in step with Slack: the listener of that app."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from connectors.chat.faults import BusyError, RefusedError, ShutOutError
from connectors.chat.slack.arrivals import Arrivals
from connectors.chat.slack.calls import Calls
from connectors.chat.slack.catching_up import CatchingUp
from connectors.chat.slack.moments import Mark, at
from connectors.chat.slack.patience import patiently
from connectors.chat.slack.sockets import Sockets
from connectors.chat.waits import LONGEST_WAIT
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from actors.transport import Ingress
    from connectors.chat.faults import PlatformError
    from connectors.chat.slack.account import SlackAccount
    from connectors.chat.slack.shared import Shared
    from connectors.chat.slack.typist import Typist

LOG = EventLog("slack")

INTRODUCED_WITHIN = 10.0
"""Seconds that an app waits until all others have asked who they are: what they said is
no message."""


class Following:
    """One app's listener.

    Args:
        account: which one.
        typist: shows that it is writing; runs as long as it listens.
        shared: what all apps share.
    """

    def __init__(self, account: SlackAccount, typist: Typist, shared: Shared) -> None:
        self._account = account
        self._typist = typist
        self._shared = shared
        self._is_away = False

    async def listen(self, ingress: Ingress) -> None:
        """Follow the app until cancelled, or until it is not let in.

        Raises:
            PlatformError: the way to Slack has ended; begin anew.
        """
        account = self._account
        with self._opened():
            async with self._shared.wire.open() as line, trio.open_nursery() as nursery:
                account.use(line)
                nursery.start_soon(self._typist.run)
                try:
                    await self._follow(ingress, nursery)
                except ShutOutError as error:
                    account.refused = account.trouble = str(error)
                    self._tell_refused()
                nursery.cancel_scope.cancel()

    @contextmanager
    def _opened(self) -> Generator[None]:
        account = self._account
        account.refused = ""
        try:
            yield
        finally:
            account.is_open = False
            account.use(None)
            account.introduced.set()
            account.trouble = account.refused or "nobody listens to it"
            self._shared.figures.show(account.agent, is_up=False)

    def _tell_refused(self) -> None:
        name, agent = self._shared.connector, self._account.agent
        LOG.error(
            "app not let in; the others go on",
            account=agent,
            why=self._account.refused,
            what_to_do="install the app again, put its tokens where"
            f" connectors.{name}.accounts.{agent} takes them from, and start again",
        )

    async def _follow(self, ingress: Ingress, nursery: trio.Nursery) -> None:
        account = self._account
        await self._introduce()
        mark = Mark(await self._bookmark())
        arrivals = Arrivals(account, self._shared, mark, ingress, nursery)
        catching_up = CatchingUp(account, self._shared, mark, arrivals, self.note)
        arrivals.on_overflow = catching_up.want
        account.is_open = True
        LOG.info("app listens", account=account.agent, user=account.user)
        nursery.start_soon(self._keep, mark, arrivals)
        catching_up.want()
        nursery.start_soon(catching_up.run)
        if account.uses_socket:
            sockets = Sockets(account, self._shared, arrivals, self)
            await sockets.follow(catching_up.want, nursery)
        else:
            await self._be_called(arrivals)

    async def _introduce(self) -> None:
        """Learn who the app is; then wait until the others did."""
        account = self._account
        try:
            await patiently(lazily(account.open), self.note)
        finally:
            account.introduced.set()
        with trio.move_on_after(INTRODUCED_WITHIN):
            for each in self._shared.accounts.values():
                await each.introduced.wait()

    async def _be_called(self, arrivals: Arrivals) -> None:
        """Take what Slack sends to the HTTP server."""
        calls = Calls(self._account, self._shared, arrivals)
        place = self._shared.connector, self._account.agent
        try:
            with self._shared.gates.opened(place, calls):
                self.heard()
                await trio.sleep_forever()
        finally:
            calls.end()

    async def _bookmark(self) -> str:
        """Give the moment up to which all is in; at first, that is now."""
        key = self._key
        while True:
            try:
                found = await self._shared.bookmarks.read(key)
                if found:
                    return found
                # What was said before the first start is not answered.
                now = at(self._shared.clock.wall())
                await self._shared.bookmarks.write(key, now)
            except StoreError as error:
                LOG.warning("place not read yet", why=str(error))
                await trio.sleep(1.0)
            else:
                return now

    async def _keep(self, mark: Mark, arrivals: Arrivals) -> None:
        """Store the mark as it moves; the newest counts."""
        kept = mark.ts
        while True:
            await arrivals.moved.wait()
            arrivals.moved = trio.Event()
            if mark.ts == kept:
                continue
            kept = mark.ts
            try:
                await self._shared.bookmarks.write(self._key, kept)
            except StoreError as error:
                # After a restart more is read again, and known to the database.
                LOG.warning("place not kept", why=str(error))

    @property
    def _key(self) -> str:
        return f"{self._account.team}-{self._account.user}"

    def heard(self) -> None:
        """Take note that the app hears Slack."""
        account, figures = self._account, self._shared.figures
        if account.trouble:
            LOG.info("app is in step", account=account.agent)
        self._is_away = False
        account.trouble = ""
        figures.heard(account.agent, self._shared.clock.wall())
        figures.show(account.agent, is_up=True)

    def note(self, error: PlatformError) -> None:
        """Take note of trouble; the log has a line for the first of a row."""
        account = self._account
        account.introduced.set()
        if not self._is_away:
            LOG.warning("slack is away", account=account.agent, why=str(error))
        self._is_away = True
        account.trouble = str(error)
        self._shared.figures.show(account.agent, is_up=False)


def lazily(ask: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    """Make of a refusal something that is tried again, but seldom.

    Why not given up: the operator changes the app's settings at Slack meanwhile.
    """
    return partial(_lazily, ask)


async def _lazily(ask: Callable[[], Awaitable[None]]) -> None:
    try:
        await ask()
    except RefusedError as error:
        raise BusyError(str(error), LONGEST_WAIT) from error
