"""Chooses whose bot sends, edits or reacts, and finds messages that it sent before.

Discord remembers for some minutes which messages were sent (`enforce_nonce`). Before a
message is sent again later, as after a long outage or a restart, `SentBefore` looks
for it in the channel.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

import trio

from actors.errors import DeliveryRefusedError
from actors.rules.text.limits import RecentMap
from connectors.chat.accounts import prefixed, ready_accounts
from connectors.chat.discord import markup
from connectors.chat.discord.events import Channel, number, seconds_of
from connectors.chat.requests import Json, RefusedError, table, tables, text, translated

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from actors.messages.deliveries import Delivery, Edit, Reaction
    from actors.messages.inbound import Address
    from connectors.chat.discord.client import DiscordAccount, DiscordClient
    from connectors.chat.discord.inbound import CommandChoices


MOST_CHANNELS = 5_000
"""Channels that are remembered; the longest silent is forgotten."""


class ChannelMembers:
    """The bots that can read a channel, and what a thread belongs to."""

    def __init__(self, most: int = MOST_CHANNELS) -> None:
        self._present: RecentMap[str, tuple[str, ...]] = RecentMap(most)
        self._parents: RecentMap[str, str] = RecentMap(most)

    def learn(self, channel: str, present: tuple[str, ...]) -> None:
        """Remember who can read a channel."""
        self._present[channel] = present

    def learn_parent(self, channel: str, parent: str) -> None:
        """Remember what a channel belongs to; empty: it is no thread."""
        self._parents[channel] = parent

    def present(self, channel: str) -> tuple[str, ...]:
        """Return who can read a channel; empty: nobody knows."""
        return self._present.get(channel, ())

    def parent(self, channel: str) -> str | None:
        """Return what a channel belongs to; None: nobody knows."""
        return self._parents.get(channel)


T = TypeVar("T")

# Source: developers' reference, "JSON Error Codes": unknown channel, missing access,
# cannot edit a message of another user, missing permissions.
NOT_THERE = frozenset({"10003", "50001", "50005", "50013"})


class DiscordSenders:
    """Chooses which bot sends."""

    def __init__(
        self, accounts: Mapping[str, DiscordAccount], members: ChannelMembers
    ) -> None:
        self._accounts = accounts
        self._members = members

    async def do(
        self,
        agent: str,
        channel: str,
        order: Callable[[DiscordAccount], Callable[[DiscordClient], Awaitable[T]]],
        size: int = 0,
    ) -> T:
        """Carry out an agent's request in a channel.

        By its own bot if that is there; else, and for the runtime's own words, by the
        first of the settings that is: always the same one, so that a repeated message
        is known.

        Args:
            agent: which; empty: the runtime itself.
            size: bytes of the file that goes with it.

        Raises:
            DeliveryBusyError: none listens now, or it has too much to do.
            DeliveryRefusedError: none can do it.
            DeliveryUnknownError: nobody knows whether it was done.
        """
        refused: RefusedError | None = None
        for account in self._choose(agent, channel):
            with translated():
                try:
                    return await account.ask(order(account), size)
                except RefusedError as error:
                    if error.code not in NOT_THERE:
                        raise
                    refused = refused or error
        raise DeliveryRefusedError(f"no bot of ours can: {refused}") from refused

    def _choose(self, agent: str, channel: str) -> list[DiscordAccount]:
        ready = ready_accounts(self._accounts, agent)
        present = self._members.present(channel)
        there = [each for each in ready if each.agent in present] or ready
        own = [each for each in ready if each.agent == agent]
        return [*own, *(each for each in there if each not in own)]


# Source: developers' reference: "in the past few minutes"; the shortest that is meant.
REMEMBERED_FOR = 120.0
"""Seconds."""

LOOKED_AT = 50
"""Messages that are looked through."""

MOST_DELIVERIES = 5_000
"""Deliveries that are remembered; older ones were said, or given up."""


class SentBefore:
    """Deliveries that this process tried and sent.

    Args:
        began_at: when it began, in Unix seconds.
    """

    def __init__(self, began_at: float) -> None:
        self._began_at = began_at
        self._tried: RecentMap[str, float] = RecentMap(MOST_DELIVERIES)
        self._receipts: RecentMap[str, None] = RecentMap(MOST_DELIVERIES)

    def is_unsure(self, delivery: Delivery) -> bool:
        """Return whether a delivery may have been sent before; notes this try."""
        now = trio.current_time()
        first = self._tried.get(delivery.id)
        if first is None:
            first = self._tried[delivery.id] = now
        if now - first > REMEMBERED_FOR:
            return True
        asked = number(delivery.reply_to)
        return first == now and asked > 0 and seconds_of(asked) < self._began_at

    def note(self, receipt: str) -> None:
        """Note that a message is a delivery's."""
        self._receipts[receipt] = None

    async def find(
        self, bot: DiscordClient, channel: str, message: Json, asked: str
    ) -> str:
        """Look for what was said before; on the edge.

        Args:
            asked: the id of the message it answers; it was said after that.

        Returns:
            Its id; empty: it was not said.
        """
        user = str(bot.user.id) if bot.user is not None else ""
        for each in await bot.history(Channel(channel, 0), 0, LOOKED_AT):
            known = text(each.message.get("id"))
            is_ours = text(table(each.message.get("author")).get("id")) == user
            is_same = text(each.message.get("content")) == message["content"]
            is_same = is_same and files_of(each.message) == files_of(message)
            is_later = number(known) > number(asked)
            if is_ours and is_same and is_later and known not in self._receipts:
                return known
        return ""


def files_of(message: Json) -> list[str]:
    """Return the names of a message's files, as Discord writes them."""
    found = tables(message.get("attachments"))
    return [re.sub(r"[^A-Za-z0-9._-]+", "_", text(x.get("filename"))) for x in found]


class DiscordPresence:
    """Edits and reactions by the bots."""

    def __init__(
        self,
        senders: DiscordSenders,
        choices: CommandChoices,
        shown: Callable[[str], str],
    ) -> None:
        self._name = shown
        self._senders = senders
        self._choices = choices

    async def edit(self, edit: Edit) -> None:
        """Change the text of a message; see the port."""
        channel = channel_of(edit.address)

        def order(
            account: DiscordAccount,
        ) -> Callable[[DiscordClient], Awaitable[None]]:
            if not edit.text:
                return lambda bot: bot.take_back(channel, edit.receipt)
            changed = markup.changed(prefixed(edit, account.agent, self._name))
            return lambda bot: bot.alter(channel, edit.receipt, changed)

        await self._senders.do(edit.agent, channel, order)

    async def react(self, reaction: Reaction) -> None:
        """Put a sign at a message, in the place of an earlier one; see the port."""
        if reaction.message in self._choices:
            return
        channel = channel_of(reaction.address)
        await self._senders.do(
            reaction.agent, channel, lambda _: lambda bot: put(bot, channel, reaction)
        )


async def put(bot: DiscordClient, channel: str, reaction: Reaction) -> None:
    """Have a bot put its sign; on the edge."""
    if reaction.sign:
        await bot.sign(channel, reaction.message, reaction.sign)
    if reaction.instead_of and reaction.instead_of != reaction.sign:
        await bot.unsign(channel, reaction.message, reaction.instead_of)


def channel_of(address: Address) -> str:
    """Return the channel of an address: a thread is one."""
    return address.thread or address.chat
