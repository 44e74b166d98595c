"""Edits of our own messages, and reactions to others'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.chat.discord import content
from connectors.chat.discord.speaking import prefixed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from actors.deliveries import Edit, Reaction
    from actors.messages import Address
    from connectors.chat.discord.account import DiscordAccount
    from connectors.chat.discord.bot import Bot
    from connectors.chat.discord.choices import Choices
    from connectors.chat.discord.speaking import Speakers


class DiscordPresence:
    """What the bots show beside messages.

    Args:
        speakers: the bots.
        choices: commands that were chosen, which are no messages.
    """

    def __init__(self, speakers: Speakers, choices: Choices) -> None:
        self._speakers = speakers
        self._choices = choices

    async def edit(self, edit: Edit) -> None:
        """Let a message read otherwise; see the port."""
        channel = channel_of(edit.address)

        def order(account: DiscordAccount) -> Callable[[Bot], Awaitable[None]]:
            if not edit.text:
                return lambda bot: bot.take_back(channel, edit.receipt)
            changed = content.changed(prefixed(edit.text, edit.agent, account))
            return lambda bot: bot.alter(channel, edit.receipt, changed)

        await self._speakers.do(edit.agent, channel, order)

    async def react(self, reaction: Reaction) -> None:
        """Put a sign at a message, in the place of an earlier one; see the port."""
        if reaction.message in self._choices:
            return
        channel = channel_of(reaction.address)
        await self._speakers.do(
            reaction.agent, channel, lambda _: lambda bot: put(bot, channel, reaction)
        )


async def put(bot: Bot, channel: str, reaction: Reaction) -> None:
    """Have a bot put its sign; on the edge."""
    if reaction.sign:
        await bot.sign(channel, reaction.message, reaction.sign)
    if reaction.instead_of and reaction.instead_of != reaction.sign:
        await bot.unsign(channel, reaction.message, reaction.instead_of)


def channel_of(address: Address) -> str:
    """Give the channel of an address: a thread is one."""
    return address.thread or address.chat
