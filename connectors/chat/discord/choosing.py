"""Takes the choice of a command: handed in first, then Discord is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors.errors import ChatError
from connectors.chat.discord import slash
from connectors.chat.discord.choices import Choice
from connectors.chat.discord.handing import Handing, Heard
from connectors.chat.discord.payloads import command_of
from connectors.chat.faults import PlatformError
from connectors.chat.loose_json import Json, text
from runtime.errors import KernelError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.messages import Inbound
    from actors.transport import Ingress
    from connectors.chat.discord.account import DiscordAccount
    from connectors.chat.discord.shared import Shared
    from connectors.chat.discord.wire import Invoked, Said

LOG = EventLog("discord")

MOST_AT_ONCE = 50
"""Choices that are taken side by side; further ones Discord reports as failed."""

NOT_LET_IN = "You may not write here."
TRY_AGAIN = "Nothing was done; please try again."


class Choosing:
    """The way of one bot's commands into the company.

    Args:
        account: which one.
        shared: what all bots share.
    """

    def __init__(self, account: DiscordAccount, shared: Shared) -> None:
        self._account = account
        self._shared = shared
        self._handing = Handing(account, shared)
        self._under_way = 0

    async def take(self, invoked: Invoked, ingress: Ingress) -> None:
        """Take a choice; never fails."""
        agent, figures = self._account.agent, self._shared.figures
        said = command_of(invoked.interaction)
        if said is None:
            figures.event(agent, "malformed")
        elif said.id in self._shared.choices:
            figures.event(agent, "seen")
        elif self._under_way >= MOST_AT_ONCE:
            figures.event(agent, "overrun")
        else:
            self._under_way += 1
            try:
                token = text(invoked.interaction.get("token"))
                inbound = await self._handing.bare(
                    Heard(said, invoked.scene), agent=agent
                )
                await self._answer(said, token, inbound, ingress)
            finally:
                self._under_way -= 1

    async def _answer(
        self, said: Said, token: str, inbound: Inbound, ingress: Ingress
    ) -> None:
        until = trio.current_time() + slash.LIVES_FOR
        choice = Choice(token, said.channel, self._account.agent, inbound.id, until)
        # Why before it is stored: its answer may be there before `accept` returns.
        self._shared.choices.add(said.id, choice)
        words = await self._hand_in(inbound, ingress)
        answer: Json = slash.refusal(words) if words else slash.thinking()
        is_shown = not words
        try:
            await self._account.ask(lambda bot: bot.respond(said.id, token, answer))
        except PlatformError as error:
            LOG.warning("command not answered", choice=said.id, why=str(error))
            is_shown = False
        if not is_shown:
            self._shared.choices.drop(said.id)
            choice.until = 0.0
        choice.is_shown.set()

    async def _hand_in(self, inbound: Inbound, ingress: Ingress) -> str:
        """Have a command stored.

        Returns:
            Why it is not; empty: it is.
        """
        agent, figures = self._account.agent, self._shared.figures
        words = TRY_AGAIN
        with trio.move_on_after(slash.ANSWERED_WITHIN):
            try:
                words = "" if await ingress.accept(inbound) else NOT_LET_IN
            except (ChatError, KernelError) as error:
                LOG.warning(
                    "command not taken", choice=inbound.platform_id, why=str(error)
                )
                words = f"⚠️ {error}. {TRY_AGAIN}"
        figures.event(agent, "command_refused" if words else "command")
        return words
