"""By whose account something is said, and what its refusal means to a courier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.errors import (
    DeliveryBusyError,
    DeliveryRefusedError,
)
from connectors.chat.faults import RefusedError, translated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from connectors.chat.matrix.account import MatrixAccount
    from connectors.chat.matrix.room import Room
    from connectors.chat.matrix.rooms import Rooms

SOON = 1.0
"""Seconds until an account that is starting is asked again."""

NOT_THERE = frozenset({"M_FORBIDDEN", "M_NOT_FOUND"})


class Speakers:
    """The accounts, and which of them speaks.

    Args:
        accounts: by agent, in the order of the settings.
        rooms: which accounts are where.
    """

    def __init__(self, accounts: Mapping[str, MatrixAccount], rooms: Rooms) -> None:
        self._accounts = accounts
        self._rooms = rooms

    async def choose(self, agent: str, room_id: str) -> tuple[MatrixAccount, Room]:
        """Find the account that speaks for an agent in a room.

        Its own if it is there; else, and for the runtime's own words, the first of the
        settings that is: always the same one, so that a repeated message is known.

        Raises:
            DeliveryBusyError: none listens now.
            DeliveryRefusedError: none is in this room, or the room is encrypted.
        """
        ready = [each for each in self._accounts.values() if each.is_open]
        if not ready:
            raise DeliveryBusyError("no account listens now", retry_after=SOON)
        own = self._accounts.get(agent)
        if own is not None and not own.is_open and not own.refused:
            raise DeliveryBusyError(f"{own.user} is starting", retry_after=SOON)
        room = await self._room(room_id, ready)
        if room.is_encrypted:
            raise DeliveryRefusedError("the room is encrypted; nothing is said there")
        for account in ready if own is None else (own, *ready):
            if account.is_open and room.is_in(account.user):
                return account, room
        raise DeliveryRefusedError(f"no account of ours is in {room_id}")

    async def _room(self, room_id: str, ready: Sequence[MatrixAccount]) -> Room:
        for account in ready:
            with translated():
                try:
                    return await self._rooms.get(room_id, account)
                except RefusedError as error:
                    if error.code not in NOT_THERE:
                        raise
        raise DeliveryRefusedError(f"no account of ours can look into {room_id}")


def prefixed(text: str, agent: str, account: MatrixAccount) -> str:
    """Say who speaks, where another's account says it."""
    return text if agent in {"", account.agent} else f"{agent}: {text}"
