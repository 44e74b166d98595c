"""Keeps one agent's bot going: the listener of that account.

discord.py ends its client over a payload that it does not understand, as over a close
that it takes for final. The client is made anew, ever more slowly; nothing is lost, for
what came meanwhile is read from the channels' histories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from connectors.chat.discord.bot import Bot
from connectors.chat.discord.following import Following
from connectors.chat.discord.standing import Standing
from connectors.chat.faults import BusyError, LostError, PlatformError, ShutOutError
from connectors.chat.waits import Waits
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.transport import Ingress
    from connectors.chat.discord.account import DiscordAccount
    from connectors.chat.discord.shared import Shared
    from connectors.chat.discord.typist import Typist

LOG = EventLog("discord")

WELL_AFTER = 300.0
"""Seconds that a client must have lived for its end to count as a first one."""

# Source: developers' reference, "Session Start Limit": a bot that begins more than
# 1,000 sessions in a day loses its token. At 120 seconds it begins 720.
CALM = 120.0
"""Seconds between two beginnings, after several."""

SEVERAL = 6


class BotListener:
    """One account's listener.

    Args:
        account: which one.
        typist: shows that it is writing; runs as long as it listens.
        shared: what all bots share.
    """

    def __init__(self, account: DiscordAccount, typist: Typist, shared: Shared) -> None:
        self._account = account
        self._typist = typist
        self._shared = shared
        self._standing = Standing(account, shared.bookmarks)
        self._failed: dict[str, int] = {}

    async def listen(self, ingress: Ingress) -> None:
        """Follow the bot until cancelled, or until it is not let in."""
        self._account.refused = ""
        waits, ends = Waits(), 0
        try:
            while True:
                begun = trio.current_time()
                error = await self._live(ingress)
                if isinstance(error, ShutOutError):
                    self._shut_out(error)
                    return
                if trio.current_time() - begun >= WELL_AFTER:
                    waits, ends = Waits(), 0
                ends += 1
                wait = waits.next(asked_to_wait(error))
                wait = max(wait, CALM) if ends > SEVERAL else wait
                self._note(error, wait)
                await trio.sleep(wait)
        finally:
            self._end()

    async def _live(self, ingress: Ingress) -> PlatformError:
        """Live one life of a client; gives what ended it."""
        account, shared = self._account, self._shared
        ended: list[PlatformError] = []
        await self._standing.recall()
        following = Following(account, self._standing, shared, ingress, self._failed)
        bot = Bot(
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
            nursery.start_soon(self._standing.keep)
            nursery.start_soon(self._typist.run)
            try:
                await account.run(bot)
            except PlatformError as error:
                ended.append(error)
            nursery.cancel_scope.cancel()
        account.is_open = False
        return ended[0] if ended else LostError("its client ended by itself")

    def _note(self, error: PlatformError, wait: float) -> None:
        account, figures = self._account, self._shared.figures
        account.trouble = str(error)
        self._standing.was_away = True
        figures.show(account.agent, is_up=False)
        figures.restarted(account.agent)
        LOG.warning(
            "bot begins anew", account=account.agent, why=str(error), after=wait
        )

    def _shut_out(self, error: ShutOutError) -> None:
        name, agent = self._shared.connector, self._account.agent
        self._account.shut_out(error)
        LOG.error(
            "bot not let in; the others go on",
            account=agent,
            why=str(error),
            what_to_do="mend that, put its token where"
            f" connectors.{name}.accounts.{agent} takes it from, and start again",
        )

    def _end(self) -> None:
        account = self._account
        account.is_open = False
        account.trouble = account.refused or "nobody listens to it"
        self._shared.figures.show(account.agent, is_up=False)


def asked_to_wait(error: PlatformError) -> float | None:
    """Give the seconds that Discord asked to wait; None if it did not."""
    return error.retry_after if isinstance(error, BusyError) else None
