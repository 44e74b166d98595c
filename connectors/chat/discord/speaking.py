"""By whose bot something is said, and what its refusal means to a courier."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from actors.errors import (
    DeliveryBusyError,
    DeliveryRefusedError,
)
from connectors.chat.faults import RefusedError, translated

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from connectors.chat.discord.account import DiscordAccount
    from connectors.chat.discord.bot import Bot
    from connectors.chat.discord.homes import Homes

T = TypeVar("T")

SOON = 1.0
"""Seconds until a bot that is starting is asked again."""

# Source: developers' reference, "JSON Error Codes": unknown channel, missing access,
# cannot edit a message of another user, missing permissions.
NOT_THERE = frozenset({"10003", "50001", "50005", "50013"})


class Speakers:
    """The bots, and which of them speaks.

    Args:
        accounts: by agent, in the order of the settings.
        homes: which bots are where.
    """

    def __init__(self, accounts: Mapping[str, DiscordAccount], homes: Homes) -> None:
        self._accounts = accounts
        self._homes = homes

    async def do(
        self,
        agent: str,
        channel: str,
        order: Callable[[DiscordAccount], Callable[[Bot], Awaitable[T]]],
        size: int = 0,
    ) -> T:
        """Have done what an agent is to do in a channel.

        By its own bot if that is there; else, and for the runtime's own words, by the
        first of the settings that is: always the same one, so that a repeated message
        is known.

        Args:
            agent: which; empty: the runtime itself.
            channel: where.
            order: says what a bot is to do.
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
        ready = [each for each in self._accounts.values() if each.is_open]
        if not ready:
            raise DeliveryBusyError("no bot listens now", retry_after=SOON)
        own = self._accounts.get(agent)
        if own is not None and not own.is_open and not own.refused:
            raise DeliveryBusyError(f"{agent}'s bot is starting", retry_after=SOON)
        present = self._homes.present(channel)
        there = [each for each in ready if each.agent in present] or ready
        if own is None or own not in ready:
            return there
        return [own, *(each for each in there if each is not own)]


def prefixed(text: str, agent: str, account: DiscordAccount) -> str:
    """Say who speaks, where another's bot says it."""
    return text if agent in {"", account.agent} else f"{agent}: {text}"
