"""What was said of late, for whoever replies to it."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec
import trio

from actors.messages import Quoted
from connectors.chat.faults import PlatformError, ShutOutError
from connectors.chat.loose_json import Json, table, text
from connectors.chat.matrix.events import relations, without_fallback
from connectors.chat.matrix.homeserver import Call, path_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.chat.matrix.account import MatrixAccount
    from connectors.chat.matrix.room import Room

MOST_QUOTES = 2_000
"""Messages that are remembered."""

LONGEST_QUOTE = 2_000
"""Characters of each."""

FETCH_TIMEOUT = 5.0
"""Seconds: a message is not held back for long because of what it replies to."""


class Line(msgspec.Struct, frozen=True):
    """Who said what."""

    sender: str
    text: str


class Quotes:
    """The messages of late, by room and id: nothing is quoted elsewhere.

    Args:
        users: our agents by the ids of their accounts.
        most: messages that are remembered.
    """

    def __init__(self, users: Mapping[str, str], most: int = MOST_QUOTES) -> None:
        self._users = users
        self._most = most
        self._lines: OrderedDict[tuple[str, str], Line] = OrderedDict()

    def learn(self, room_id: str, event_id: str, sender: str, words: str) -> None:
        """Remember a message."""
        place = room_id, event_id
        self._lines[place] = Line(sender, words[:LONGEST_QUOTE])
        self._lines.move_to_end(place)
        while len(self._lines) > self._most:
            self._lines.popitem(last=False)

    def learn_event(self, room_id: str, event: Json) -> None:
        """Remember an event, if it is a message; what was edited reads as before."""
        event_id, sender = text(event.get("event_id")), text(event.get("sender"))
        content = table(event.get("content"))
        body = text(content.get("body"))
        if event_id and sender and body and event.get("type") == "m.room.message":
            _, reply_to = relations(content)
            words = without_fallback(body) if reply_to else body
            self.learn(room_id, event_id, sender, words)

    def sender_of(self, room_id: str, event_id: str) -> str:
        """Give who wrote a message; empty if nobody knows."""
        line = self._lines.get((room_id, event_id))
        return line.sender if line is not None else ""

    def forget(self, room_id: str, event_id: str) -> None:
        """Forget what was taken back."""
        self._lines.pop((room_id, event_id), None)

    async def quote(
        self, event_id: str, room_id: str, room: Room, account: MatrixAccount
    ) -> Quoted | None:
        """Give what a message says that somebody replied to; None if nobody knows.

        Raises:
            ShutOutError: the account is not let in.
        """
        place = room_id, event_id
        if place not in self._lines:
            path = path_of("rooms", room_id, "event", event_id)
            call = Call(method="GET", path=path, timeout=FETCH_TIMEOUT)
            try:
                self.learn_event(room_id, await account.ask(call))
            except ShutOutError:
                raise
            except PlatformError:
                await trio.lowlevel.checkpoint()
        line = self._lines.get(place)
        if line is None:
            return None
        return Quoted(
            text=line.text,
            sender_name=room.name_of(line.sender),
            agent=self._users.get(line.sender, ""),
        )
