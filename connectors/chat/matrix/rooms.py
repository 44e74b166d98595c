"""The rooms of all accounts, each asked for when something first happens there."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from connectors.chat.loose_json import tables
from connectors.chat.matrix.homeserver import Call, path_of
from connectors.chat.matrix.room import Room

if TYPE_CHECKING:
    from connectors.chat.matrix.account import MatrixAccount

# Chosen: rooms where something was said of late; a room that is forgotten is asked
# for again.
MOST_ROOMS = 2_000


class Rooms:
    """What is known of rooms; shared by the accounts.

    Args:
        most: rooms that are remembered.
    """

    def __init__(self, most: int = MOST_ROOMS) -> None:
        self._most = most
        self._rooms: OrderedDict[str, Room] = OrderedDict()

    async def get(self, room_id: str, account: MatrixAccount) -> Room:
        """Give a room, asking by this account if nobody knows it.

        Raises:
            RefusedError: this account is not there.
            BusyError: not now.
            LostError: no whole answer came.
            ShutOutError: the account is not let in.
        """
        room = self._rooms.get(room_id)
        if room is None:
            path = path_of("rooms", room_id, "state")
            call = Call(method="GET", path=path, timeout=account.timeout)
            state = tables((await account.ask(call)).get("chunk"))
            # Another account may have been quicker.
            room = self._rooms.get(room_id) or Room()
            room.apply_all(state)
            self._rooms[room_id] = room
        self._rooms.move_to_end(room_id)
        while len(self._rooms) > self._most:
            self._rooms.popitem(last=False)
        return room

    def note_left(self, room_id: str, user: str) -> None:
        """Take in that one of our accounts is no longer in a room."""
        room = self._rooms.get(room_id)
        if room is not None:
            room.note_left(user)

    def note_joined(self, room_id: str, user: str) -> None:
        """Take in that one of our accounts came into a room."""
        room = self._rooms.get(room_id)
        if room is not None:
            room.note_joined(user)
