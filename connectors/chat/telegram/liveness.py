"""Whether a bot hears Telegram: told to the log, the figures and `/readyz`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.chat.telegram.errors import ConflictError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from connectors.chat.faults import PlatformError
    from connectors.chat.telegram.bot import Bot
    from connectors.chat.telegram.shared import Shared

LOG = EventLog("telegram")


class Liveness:
    """Takes note of how it goes.

    Args:
        bot: of which one.
        shared: what all bots share.
    """

    def __init__(self, bot: Bot, shared: Shared) -> None:
        self._bot = bot
        self._figures = shared.figures
        self._clock = shared.clock
        self._was_away = False

    def heard(self) -> None:
        """Note that Telegram answered."""
        bot, figures = self._bot, self._figures
        if bot.trouble:
            LOG.info("bot hears Telegram", bot=bot.agent)
        if self._was_away:
            self._was_away = False
            figures.reconnected(bot.agent)
        bot.trouble = ""
        figures.polled(bot.agent, self._clock.wall())
        figures.show(bot.agent, is_up=True)

    def note(self, error: PlatformError) -> None:
        """Note trouble; the log has a line for the first of a row."""
        bot = self._bot
        if isinstance(error, ConflictError):
            self._figures.conflict(bot.agent)
        if not self._was_away:
            LOG.warning("Telegram away", bot=bot.agent, why=str(error))
        self._was_away = True
        bot.trouble = str(error)
        self._figures.show(bot.agent, is_up=False)

    def ended(self) -> None:
        """Note that nobody listens any more."""
        self._bot.trouble = self._bot.refused or "nobody listens to it"
        self._figures.show(self._bot.agent, is_up=False)
