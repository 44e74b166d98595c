"""One agent's bot, as the trio side knows it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import trio

from connectors.chat.accounts import TYPING_TIMEOUT, AgentAccount
from connectors.chat.discord.errors import FAULTS, read_error
from connectors.chat.errors import BusyError, LostError
from connectors.files.blobs import seconds_for

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from connectors.asyncio_bridge.bridge import Bridge
    from connectors.chat.discord.client import DiscordClient
    from connectors.chat.discord.platform import DiscordAccountConfig

T = TypeVar("T")

LEAVE_WITHIN = 3.0
"""Seconds that the gateway may take to say goodbye."""


class DiscordAccount(AgentAccount):
    """The bot of one agent, whether it runs or not.

    Args:
        agent: whose it is.
        config: its token.
        bridge: leads to where it runs.
        timeout: seconds a request may take.
    """

    kind = "bot"

    def __init__(
        self, agent: str, config: DiscordAccountConfig, bridge: Bridge, timeout: float
    ) -> None:
        super().__init__(agent, "Discord")
        self.user = ""
        """Its own id; empty before it was ever let in."""

        self.bot: DiscordClient | None = None
        """What runs now."""

        self.settled = trio.Event()
        """Set once it is known whether, and as whom, it is let in."""

        token = config.token
        self._token = token.reveal().strip() if token is not None else ""
        self._bridge = bridge
        self._timeout = timeout

    async def run(self, bot: DiscordClient) -> None:
        """Follow the gateway until cancelled or until it ends.

        Raises:
            ShutOutError: it is not let in.
            PlatformError: anything else; a new bot may have more luck.
        """
        self.bot = bot
        try:
            await self._bridge.call(bot.run_on_edge, self._token)
        except FAULTS as error:
            raise read_error(error) from error
        finally:
            self.bot = None
            await self._end(bot)

    async def _end(self, bot: DiscordClient) -> None:
        """Close a bot's connections, whatever happens meanwhile."""
        with trio.CancelScope(shield=True), suppress(*FAULTS):
            with trio.move_on_after(LEAVE_WITHIN):
                await self._bridge.call(bot.end_on_edge)
                return
            with trio.move_on_after(LEAVE_WITHIN):
                await self._bridge.call(bot.cut_on_edge)

    async def ask(
        self, do: Callable[[DiscordClient], Awaitable[T]], size: int = 0
    ) -> T:
        """Run a request of the bot on the asyncio loop.

        Args:
            do: what.
            size: bytes of the file that goes with it.

        Raises:
            BusyError: not now.
            LostError: nobody knows whether it was done.
            RefusedError: never.
            ShutOutError: it is not let in.
        """
        bot = self.bot
        if bot is None:
            raise BusyError(self.refused or "the bot does not run now")
        within = seconds_for(size, self._timeout)
        with trio.move_on_after(within):
            try:
                return await self._bridge.call(do, bot)
            except FAULTS as error:
                raise read_error(error) from error
        raise LostError(f"not done after {within:g} s")

    async def show_typing(self, channel: str, **_: object) -> None:
        """Show for some seconds that it is writing; raises as `ask`."""
        with trio.move_on_after(TYPING_TIMEOUT):
            await self.ask(lambda bot: bot.show_typing(channel))
